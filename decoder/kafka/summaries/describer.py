"""Kafka's messages in words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice

import orjson

from decoder.explain.describer import About, Describer
from decoder.fields import Json, integer, items, natural, struct
from decoder.kafka.apis import ApiKey
from decoder.kafka.errors import is_without_errors
from decoder.kafka.extractors.exchanges import topic_ids
from decoder.kafka.extractors.offsets import offset_events
from decoder.kafka.summaries import cluster, groups, offsets, subjects
from decoder.kafka.summaries.pieces import Exchange, answered, joined, listed, parts, span
from decoder.model import Message, OffsetEvent

_DESCRIPTIONS: dict[int, Callable[[Exchange], str]] = {
    int(key): in_words for module in (offsets, groups, cluster) for key, in_words in module.DESCRIPTIONS.items()
}
_MOST_NAMES = 100_000
"""Topic ids that are remembered."""
_NAMING = frozenset(map(int, (ApiKey.METADATA, ApiKey.CREATE_TOPICS, ApiKey.DESCRIBE_TOPIC_PARTITIONS)))
_SHARING = frozenset(map(int, (ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE)))


class KafkaDescriber(Describer):
    """See Describer. Topics that are given by their id (KIP-516) are named once a response named it."""

    def __init__(self, response_errors: Callable[[str], Sequence[tuple[int, str]]]) -> None:
        super().__init__(response_errors)
        self._names: dict[str, str] = {}

    def note(self, request: Message | None, response: Message | None) -> None:
        """See decoder.explain.describer.Describer."""
        del request
        if response is None or response.api_key not in _NAMING:
            return
        for fact in topic_ids(response.api_key, response.body):
            if len(self._names) < _MOST_NAMES:
                self._names[fact.topic_id] = fact.topic

    def topic_of(self, topic_id: str) -> str | None:
        """See decoder.explain.describer.Describer."""
        return self._names.get(topic_id)

    def describe(self, request: Message | None, response: Message | None) -> str:
        """See decoder.explain.describer.Describer."""
        exchange = self._exchange(request, response)
        message = request or response
        in_words = None if message is None or message.api_key is None else _DESCRIPTIONS.get(message.api_key)
        if in_words is not None and (exchange.asked or exchange.answer):
            return in_words(exchange).lstrip()
        return self._of_other(exchange)

    def _exchange(self, request: Message | None, response: Message | None) -> Exchange:
        asked, answer = request.body if request else {}, response.body if response else None
        return Exchange(asked, answer, self._names, request, response)

    def _of_other(self, exchange: Exchange) -> str:
        """Of an api without words of its own: what it is about, and its errors."""
        asked = exchange.asked
        some = dict.fromkeys(name for name, _ in islice(subjects.places_of(asked, self._names), 1000))
        words = joined(listed([*filter(None, subjects.groups_of(asked))]), listed([*some]))
        found = [] if not exchange.answer else list(dict.fromkeys(islice(subjects.errors_of(exchange.answer), 1000)))
        return (words + answered(exchange, listed(found) or "ok")).strip() if exchange.answer != {} else words

    def errors(self, response: Message) -> Sequence[str]:
        """See decoder.explain.describer.Describer."""
        if _has_no_errors(response.body):
            return []
        return list(dict.fromkeys(subjects.errors_of(response.body)))

    def about(self, request: Message | None, response: Message | None) -> About:
        """See decoder.explain.describer.Describer."""
        found: set[tuple[str, int | None]] = set()
        named: set[str] = set()
        for message in (request, response):
            if message is not None:
                found.update(subjects.places_of(message.body, self._names))
                for one in message.embedded:
                    found.update(subjects.places_of(struct(one, "body"), self._names))
                named.update(filter(None, subjects.groups_of(message.body)))
        return About(frozenset(named), frozenset(found))

    def of_offset(self, request: Message | None, response: Message | None, topic: str, partition: int, at: int) -> str:
        """See Describer. A commit is about the offset it names, and the one before: that was read."""
        message = request or response
        if message is None or message.api_key is None:
            return ""
        exchange = self._exchange(request, response)
        if message.api_key in _SHARING:
            return _of_share(exchange, f"{topic}-{partition}", at)
        answer = exchange.answer
        if answer is None and message.api_key == ApiKey.OFFSET_COMMIT:
            return ""  # without a verdict a commit shows nothing
        events = offset_events(message.api_key, exchange.version, exchange.asked, answer)
        words = (
            _of_event(event, at)
            for event in events
            if event.partition == partition
            and topic in (event.topic, event.topic_id, self._names.get(event.topic_id or ""))
        )
        handed = _handed_out(exchange, f"{topic}-{partition}", at) if message.api_key == ApiKey.FETCH else ""
        return ", ".join(dict.fromkeys(filter(None, [*words, handed])))


def _has_no_errors(body: Json) -> bool:
    """Whether that shows in the JSON text, which takes a tenth of the time of a walk; False where it has none."""
    try:
        return is_without_errors(orjson.dumps(body).decode())
    except TypeError:
        return False


def _handed_out(exchange: Exchange, place: str, at: int) -> str:
    for part in parts(exchange, exchange.answer, "responses", "partitions", "partitionIndex"):
        for batch in items(part.fields, "recordBatches") if part.place == place else ():
            first, last = integer(batch, "baseOffset"), integer(batch, "lastOffset")
            if first is not None and last is not None and first <= at <= last:
                return "handed out" if first == last else f"handed out in batch {span(first, last)}"
    return ""


def _of_event(event: OffsetEvent, at: int) -> str:
    offset, end = event.offset, event.next_offset
    match event.kind:
        case "produced" if offset is not None and offset <= at < (end if end is not None else offset + 1):
            return f"produced, one of @{offset}..{end - 1}" if end is not None and end > offset + 1 else "produced"
        case "fetched" | "fetch_rejected" if offset == at:
            return "asked for" + (f": {event.error_name}" if event.error_code else "")
        case "listed" if offset == at:
            return "listed"
        case "fetched_commit" if offset in (at, at + 1):
            return f"committed offset @{offset}: " + ("the next to read" if offset == at else "read")
        case "committed" | "txn_committed" | "commit_rejected" | "txn_commit_rejected" if offset in (at, at + 1):
            commit = (
                f"committed @{offset} by {event.group_id}"
                if not event.error_code
                else (f"commit @{offset} by {event.group_id} refused: {event.error_name}")
            )
            return f"{commit}: " + ("the next to read" if offset == at else "read")
        case _:
            return ""


def _holds(offsets: Json, at: int) -> bool:
    first, last = natural(offsets, "firstOffset"), natural(offsets, "lastOffset")
    return first is not None and last is not None and first <= at <= last


def _of_share(exchange: Exchange, place: str, at: int) -> str:
    words = []
    for part in parts(exchange, exchange.asked, "topics", "partitions", "partitionIndex"):
        batches = items(part.fields, "acknowledgementBatches")
        if part.place == place and any(_holds(one, at) for one in batches):
            words.append("acknowledged")
    for part in parts(exchange, exchange.answer, "responses", "partitions", "partitionIndex"):
        found = [one for one in items(part.fields, "acquiredRecords") if _holds(one, at)]
        if part.place == place and found:
            words.append(f"acquired, delivery {found[0].get('deliveryCount', '?')}")
    return ", ".join(words)
