"""Exchanges in words: a row of ``silver.exchanges`` in the words of ``wirelake decode``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

import orjson

from decoder.explain.describer import Describer
from decoder.kafka.apis import ApiKey
from decoder.model import Message, Status
from decoder.protocols import protocol_of, protocols


class ProtocolDescribers:
    """The ``decoder.explain.describer.Describer`` of each protocol, made when it is first asked for."""

    def __init__(self) -> None:
        self._describers: dict[str, Describer] = {}

    def of(self, protocol: str) -> Describer:
        """That of a protocol, by its name."""
        found = self._describers.get(protocol)
        if found is None:
            found = self._describers[protocol] = protocol_of(protocol).describer()
        return found

    def note_topics(self, topics: Iterable[Mapping[str, Any]]) -> None:
        """Note the id of each topic: rows of ``silver.topics``, as if a Metadata response named them."""
        named = [{"errorCode": 0, "name": row["topic"], "topicId": row["topic_id"]} for row in topics]
        self.of("kafka").note(None, Message({}, {"topics": named}, "ok", api_key=int(ApiKey.METADATA)))


def halves(row: Mapping[str, Any]) -> tuple[Message | None, Message | None]:
    """Request and response of a row of ``silver.exchanges``; None for one that was not seen."""
    return _half(row, "request"), _half(row, "response")


def described(row: Mapping[str, Any], describers: ProtocolDescribers) -> str:
    """An exchange in words, without the api's name; empty where nothing of it is known.

    Args:
        row: of ``silver.exchanges``, with its bodies.
        describers: whose words to use.
    """
    request, response = halves(row)
    if row["protocol"] not in protocols() or (request is None and response is None):
        return ""
    try:
        return describers.of(row["protocol"]).describe(request, response)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return ""  # a body that no decoder of ours wrote


def _half(row: Mapping[str, Any], side: str) -> Message | None:
    if row[f"{side}_size"] is None:
        return None
    return Message(
        _object(row.get(f"{side}_header")),
        _object(row[f"{side}_body"]),
        cast("Status", row[f"{side}_status"] or "ok"),
        api_key=row["api_key"],
        api_version=row["api_version"],
        api_name=row["api_name"],
        client_id=row["client_id"] if side == "request" else None,
        embedded=_list(row.get(f"{side}_embedded")),
    )


def _object(text: str | None) -> dict[str, Any]:
    value = _json(text)
    return value if isinstance(value, dict) else {}


def _list(text: str | None) -> list[dict[str, Any]]:
    value = _json(text)
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _json(text: str | None) -> Any:
    try:
        return orjson.loads(text) if text else None
    except orjson.JSONDecodeError:
        return None
