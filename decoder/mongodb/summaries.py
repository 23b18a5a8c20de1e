"""What a MongoDB message states, in a line for people: names of fields, never the values of documents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from decoder.explain.describer import About, Describer
from decoder.fields import items
from decoder.model import FrameFlags, Message
from decoder.mongodb.codec.wire import is_command_collection
from decoder.mongodb.extractors import CommandFacts, Half, command_facts, handshake, request_document

_MOST = 5
"""Names of fields that are shown."""
_STATEMENTS = ("updates", "deletes")
_SHOWN = ("filter", "query", "sort", "projection")


class MongoDescriber(Describer):
    """See decoder.explain.describer.Describer."""

    def describe(self, request: Message | None, response: Message | None) -> str:
        """See decoder.explain.describer.Describer: ``shop.orders filter{status} → 101 docs, cursor open``."""
        facts = _facts(request, response)
        words = _question(facts, request) if request is not None else facts.command or ""
        if response is None:
            return words
        return f"{words} → {_answer(facts, response)}".strip()

    def errors(self, response: Message) -> Sequence[str]:
        """See decoder.explain.describer.Describer."""
        facts = _facts(None, response)
        if facts.error_code is None and facts.ok is not False:
            return ()
        return (_error(facts),)

    def about(self, request: Message | None, response: Message | None) -> About:
        """See decoder.explain.describer.Describer: a collection's place is its namespace."""
        namespace = _namespace(_facts(request, response))
        return About(places=frozenset({(namespace, None)} if namespace else ()))


def _facts(request: Message | None, response: Message | None) -> CommandFacts:
    halves = [None if one is None else Half(one.header, one.body, _flags(one)) for one in (request, response)]
    return command_facts(*halves)


def _flags(message: Message) -> int:
    if message.status == "redacted":
        return int(FrameFlags.REDACTED)
    return int(FrameFlags.PAYLOAD_DROPPED) if message.error_code == "payload_removed" else 0


def _namespace(facts: CommandFacts) -> str:
    return ".".join(name for name in (facts.database, facts.collection) if name)


def _question(facts: CommandFacts, request: Message) -> str:
    document = request_document(request.body)
    is_legacy = (request.api_name or "").startswith("OP_")
    words = [facts.command or "" if is_legacy else "", _namespace(facts)]
    if (hello := handshake(Half(request.header, request.body))) is not None:
        driver = " ".join(text for text in (hello.driver, hello.driver_version) if text)
        words += [f"app {hello.application}" if hello.application else "", f"driver {driver}" if driver else ""]
    words += _shapes(document, request.body)
    if facts.command == "getMore" and facts.cursor_id:
        words.append(f"cursor {facts.cursor_id}")
    if facts.cursors_killed:
        words.append(f"cursors {', '.join(map(str, facts.cursors_killed[:_MOST]))}")
    if facts.documents_in is not None:
        words.append(_counted(facts.documents_in, "doc" if facts.command == "insert" else "statement"))
    words += [f"{name} {document[name]}" for name in ("limit", "batchSize", "maxTimeMS") if _is_number(document, name)]
    if facts.is_transaction and facts.txn_number is not None:
        words.append(f"txn {facts.txn_number}")
    return " ".join(word for word in words if word)


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _is_number(document: dict[str, Any], name: str) -> bool:
    return isinstance(document.get(name), (int, float)) and not isinstance(document.get(name), bool) and document[name]


def _shapes(document: dict[str, Any], body: dict[str, Any]) -> list[str]:
    """``filter{status} sort{at}``, and the stages of a pipeline."""
    if "query" in body and not is_command_collection(str(body.get("fullCollectionName"))):
        return [f"filter{_names(document)}"] if document else []
    shown = (name for name in _SHOWN if isinstance(document.get(name), dict) and document[name])
    shapes = [f"{name}{_names(document[name])}" for name in shown]
    pipeline = document.get("pipeline")
    if isinstance(pipeline, list) and pipeline:
        stages = [next(iter(stage), "?") for stage in pipeline if isinstance(stage, dict)]
        shapes.append(f"[{', '.join(map(str, stages[:_MOST]))}{', …' if len(stages) > _MOST else ''}]")
    for name in _STATEMENTS:
        first = next(iter(_statements(document, body, name)), None)
        if isinstance(first, dict) and isinstance(first.get("q"), dict):
            shapes.append(f"filter{_names(first['q'])}")
    if isinstance(body.get("selector"), dict):
        shapes.append(f"filter{_names(body['selector'])}")
    return shapes


def _statements(document: dict[str, Any], body: dict[str, Any], name: str) -> list[Any]:
    if isinstance(document.get(name), list):
        return list(document[name])
    for section in items(body, "sections"):
        if section.get("identifier") == name:
            return items(section, "documents")
    return []


def _names(document: dict[str, Any]) -> str:
    """The names of a document's fields."""
    names = [str(name) for name in document][: _MOST + 1]
    return "{" + ", ".join(names[:_MOST]) + (", …" if len(names) > _MOST else "") + "}"


def _answer(facts: CommandFacts, response: Message) -> str:
    if facts.ok is False:
        return _error(facts)
    words = []
    if facts.documents_out is not None:
        words.append(_counted(facts.documents_out, "doc"))
    elif facts.n is not None:
        words.append(f"n {facts.n}" + (f", modified {facts.n_modified}" if facts.n_modified is not None else ""))
    if facts.cursor_left:
        words.append(f"cursor open {facts.cursor_left}")
    elif facts.cursor_left == 0 and facts.command == "getMore":
        words.append("cursor done")
    if facts.error_code is not None:
        count = f"{_counted(facts.write_errors, 'write error')}, " if facts.write_errors else ""
        words.append(f"{count}{_error(facts)}")
    if facts.is_answered_later:
        words.append("more to come")
    return ", ".join(words) or _state(facts, response)


def _state(facts: CommandFacts, response: Message) -> str:
    if facts.ok is None and response.status == "redacted":
        return "outcome not stored"
    return "ok" if response.body else ""


def _error(facts: CommandFacts) -> str:
    return facts.error_name or (f"error {facts.error_code}" if facts.error_code is not None else "failed")
