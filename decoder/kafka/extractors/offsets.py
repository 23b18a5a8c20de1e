"""What one exchange states about offsets: a pure function of its two bodies.

The bodies are those of ``Codec.decode``; either may be None (not seen, no response) or end early (partial frames), so
that every field is optional here, and read by its type (decoder.fields): an error code that is missing is not known,
and never "no error". Values that Kafka writes as "-1: unknown" become None, as do sums that 64 bits do not hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from decoder.fields import LARGEST_INT32, Json, as_int64, count, integer, integers, items, natural, struct, text
from decoder.kafka.apis import ApiKey
from decoder.kafka.errors import NO_ERROR, error_name
from decoder.model import OffsetEvent

ISOLATION: dict[int | None, str] = {0: "read_uncommitted", 1: "read_committed"}


class FetchSession(NamedTuple):
    """The fetch session (KIP-227) that a Fetch belongs to, and its epoch there; None and None outside of one."""

    id: int | None
    epoch: int | None


class At(NamedTuple):
    """A partition as requests and responses name it: by topic or, in newer versions, by topic id."""

    topic: str | None
    topic_id: str | None
    partition: int


def offset_events(
    api_key: int, api_version: int, request: Json | None, response: Json | None, client_id: str | None = None
) -> list[OffsetEvent]:
    """What an exchange states about each partition that it names, in the order of the bodies.

    Args:
        api_key, api_version: of the request.
        request, response: bodies; None if there is none.
        client_id: of the request's header.
    """
    extract = _EXTRACTORS.get(api_key)
    if extract is None:
        return []
    seen: dict[tuple[object, ...], int] = {}
    events = []
    for event in extract(api_version, request or {}, response):
        place = event[:4]
        ordinal = seen.get(place, 0)
        seen[place] = ordinal + 1
        named = error_name(event.error_code) if event.error_code is not None else None
        events.append(event._replace(ordinal=ordinal, client_id=client_id, error_name=named))
    return events


# --- one function for each api; `response` is None where none was seen ---------------------------------------------


def _produce(version: int, request: Json, response: Json | None) -> Iterator[OffsetEvent]:
    answers = dict(produce_responses(response or {}))
    for at, part in produce_requests(request):
        batches = items(part, "recordBatches")
        last = batches[-1] if batches else {}
        answer = answers.get(at)  # None: acks=0, or the response was not seen
        code = None if answer is None else integer(answer, "errorCode")
        offset = natural(answer, "baseOffset") if answer is not None and code == NO_ERROR else None
        span = _sum(map(offset_span, batches))
        yield OffsetEvent(
            *at,
            kind="produce_rejected" if code else "produced",
            ordinal=0,
            offset=offset,
            next_offset=as_int64(offset + span) if offset is not None and span is not None else None,
            records=_sum(count(b, "recordsCount") for b in batches),
            log_start_offset=None if answer is None else natural(answer, "logStartOffset"),
            error_code=code,
            producer_id=natural(last, "producerId"),
            producer_epoch=natural(last, "producerEpoch"),
            transactional_id=text(request, "transactionalId"),
        )


def _fetch(version: int, request: Json, response: Json | None) -> Iterator[OffsetEvent]:
    session = session_of(request, response)
    for event in _fetched_and_forgotten(version, request, response):
        yield event if session.id is None else event._replace(session_id=session.id, session_epoch=session.epoch)


def _fetched_and_forgotten(version: int, request: Json, response: Json | None) -> Iterator[OffsetEvent]:
    replica = integer(request if "replicaId" in request else struct(request, "replicaState"), "replicaId")
    # A follower's fetch is no evidence of a consumer.
    isolation = _isolation(version, 4, request) if replica is None or replica < 0 else None
    asked = dict(fetch_requests(request))
    failed = fetch_error(version, response)
    answered = set()
    for at, part in fetch_responses(response or {}):
        answered.add(at)
        yield _fetched(at, part, asked.get(at), isolation)
    for at, part in asked.items():
        if at in answered:
            continue  # an incremental answer leaves out what has no news (KIP-227): the position is news to us
        yield OffsetEvent(
            *at,
            kind="fetch_rejected" if failed else "fetched",
            ordinal=0,
            offset=natural(part, "fetchOffset"),
            leader_epoch=natural(part, "currentLeaderEpoch"),
            isolation_level=isolation,
            error_code=failed,
        )
    for topic in items(request, "forgottenTopicsData"):
        for partition in integers(topic, "partitions"):
            where = At(text(topic, "topic"), text(topic, "topicId"), partition)
            if is_partition(partition) and (where.topic is not None or where.topic_id is not None):
                yield OffsetEvent(
                    *where, kind="fetch_forgotten", ordinal=0, isolation_level=isolation, error_code=failed
                )


def _isolation(version: int, since: int, request: Json) -> str | None:
    """What a request asks for; versions before ``since`` have but one. None: it is not known."""
    return ISOLATION.get(0 if version < since else integer(request, "isolationLevel"))


def fetch_error(version: int, response: Json | None) -> int | None:
    """The error code of a whole Fetch, which has one since v7; None: it is not known."""
    return None if response is None else integer(response, "errorCode") if version >= 7 else NO_ERROR


def session_of(request: Json, response: Json | None) -> FetchSession:
    """The session of a Fetch: one that it begins (epoch 0; the answer names it) or continues with.

    Epoch -1 fetches outside of a session; where it names one, it ends it.
    """
    epoch = integer(request, "sessionEpoch")
    if epoch == 0:
        begun = integer(response or {}, "sessionId") or None
        return FetchSession(begun, 0 if begun else None)
    asked = integer(request, "sessionId") or None
    return FetchSession(asked, epoch) if asked is not None and epoch and epoch > 0 else FetchSession(None, None)


def _fetched(at: At, part: Json, asked: Json | None, isolation: str | None) -> OffsetEvent:
    code = integer(part, "errorCode")
    found = items(part, "recordBatches")
    batches = [b for b in found if natural(b, "lastOffset") is not None]
    whole = [b for b in batches if b.get("status") in (None, "ok")]
    data = [b for b in whole if not b.get("isControlBatch")]
    last = data[-1] if data else {}
    question = asked or {}
    return OffsetEvent(
        *at,
        kind="fetch_rejected" if code else "fetched",
        ordinal=0,
        offset=natural(question, "fetchOffset"),
        next_offset=as_int64(whole[-1]["lastOffset"] + 1) if whole else None,
        records=_sum(count(b, "recordsCount") for b in (found if _is_removed(found) else data)),
        high_watermark=natural(part, "highWatermark"),
        last_stable_offset=natural(part, "lastStableOffset"),
        log_start_offset=natural(part, "logStartOffset"),
        leader_epoch=natural(question, "currentLeaderEpoch"),
        isolation_level=isolation,
        error_code=code,
        producer_id=natural(last, "producerId"),
        producer_epoch=natural(last, "producerEpoch"),
    )


def _list_offsets(version: int, request: Json, response: Json | None) -> Iterator[OffsetEvent]:
    asked = dict(listed_partitions(request))
    replica = integer(request, "replicaId")
    isolation = _isolation(version, 2, request) if replica is None or replica < 0 else None
    for at, part in listed_partitions(response or {}):
        code = integer(part, "errorCode")
        old = integers(part, "oldStyleOffsets")[:1]  # v0: the newest first
        yield OffsetEvent(
            *at,
            kind="listed",
            ordinal=0,
            offset=known(old[0] if old else integer(part, "offset")) if code == NO_ERROR else None,
            leader_epoch=natural(part, "leaderEpoch"),
            isolation_level=isolation,
            error_code=code,
            list_timestamp=integer(asked.get(at) or {}, "timestamp"),
        )


def _offset_commit(version: int, request: Json, response: Json | None) -> Iterator[OffsetEvent]:
    return _commits("committed", "commit_rejected", request, response)


def _txn_offset_commit(version: int, request: Json, response: Json | None) -> Iterator[OffsetEvent]:
    return _commits("txn_committed", "txn_commit_rejected", request, response)


def _commits(accepted: str, rejected: str, request: Json, response: Json | None) -> Iterator[OffsetEvent]:
    """Each partition of a commit with its verdict; without a verdict a commit shows nothing.

    Args:
        accepted, rejected: kinds of the events.
    """
    answers = listed_partitions(response or {})
    codes = {at: integer(part, "errorCode") for at, part in answers}
    group_id, member_id = text(request, "groupId"), text(request, "memberId")
    generation = natural(request, "generationIdOrMemberEpoch")
    producer_id, producer_epoch = natural(request, "producerId"), natural(request, "producerEpoch")
    transactional_id = text(request, "transactionalId")
    for at, part in listed_partitions(request):
        code = codes.get(at)
        if code is not None:
            yield OffsetEvent(
                *at,
                kind=rejected if code else accepted,
                ordinal=0,
                offset=natural(part, "committedOffset"),
                leader_epoch=natural(part, "committedLeaderEpoch"),
                group_id=group_id,
                member_id=member_id,
                generation=generation,
                metadata=text(part, "committedMetadata"),
                error_code=code,
                producer_id=producer_id,
                producer_epoch=producer_epoch,
                transactional_id=transactional_id,
            )


def _offset_fetch(version: int, request: Json, response: Json | None) -> Iterator[OffsetEvent]:
    if response is None:
        return
    if version >= 8:  # several groups in one request (KIP-709)
        asked = {text(g, "groupId"): g for g in items(request, "groups")}
        groups = [(asked.get(text(g, "groupId"), {}), g) for g in items(response, "groups")]
    else:
        groups = [(request, response)]
    for question, answer in groups:
        group_id = text(answer, "groupId") or text(question, "groupId")
        failed = integer(answer, "errorCode")
        for at, part in listed_partitions(answer):
            code = integer(part, "errorCode")
            yield OffsetEvent(
                *at,
                kind="fetched_commit",
                ordinal=0,
                offset=None if code is None else natural(part, "committedOffset"),
                leader_epoch=natural(part, "committedLeaderEpoch"),
                group_id=group_id,
                member_id=text(question, "memberId"),
                generation=natural(question, "memberEpoch"),
                error_code=failed if failed and code == NO_ERROR else code,
                metadata=text(part, "metadata"),
            )


_EXTRACTORS: dict[int, Callable[[int, Json, Json | None], Iterator[OffsetEvent]]] = {
    int(ApiKey.PRODUCE): _produce,
    int(ApiKey.FETCH): _fetch,
    int(ApiKey.LIST_OFFSETS): _list_offsets,
    int(ApiKey.OFFSET_COMMIT): _offset_commit,
    int(ApiKey.OFFSET_FETCH): _offset_fetch,
    int(ApiKey.TXN_OFFSET_COMMIT): _txn_offset_commit,
}

OFFSET_APIS = tuple(_EXTRACTORS)


# --- walking the bodies -------------------------------------------------------------------------------------------


def produce_requests(body: Json) -> Iterator[tuple[At, Json]]:
    """Partitions of a Produce request."""
    return _partitions(body, "topicData", "name", "partitionData", "index")


def produce_responses(body: Json) -> Iterator[tuple[At, Json]]:
    """Partitions of a Produce response."""
    return _partitions(body, "responses", "name", "partitionResponses", "index")


def fetch_requests(body: Json) -> Iterator[tuple[At, Json]]:
    """Partitions of a Fetch request."""
    return _partitions(body, "topics", "topic", "partitions", "partition")


def fetch_responses(body: Json) -> Iterator[tuple[At, Json]]:
    """Partitions of a Fetch response."""
    return _partitions(body, "responses", "topic", "partitions", "partitionIndex")


def listed_partitions(body: Json) -> Iterator[tuple[At, Json]]:
    """Partitions of a body of ListOffsets, or of a commit."""
    return _partitions(body, "topics", "name", "partitions", "partitionIndex")


def _partitions(body: Json, topics: str, name: str, partitions: str, index: str) -> Iterator[tuple[At, Json]]:
    """All partitions of ``body``; a partition or topic whose identity was cut off is left out."""
    for topic in items(body, topics):
        topic_name, topic_id = text(topic, name), text(topic, "topicId")
        if topic_name is None and topic_id is None:
            continue
        for part in items(topic, partitions):
            number = natural(part, index)
            if number is not None and number <= LARGEST_INT32:
                yield At(topic_name, topic_id, number), part


def is_partition(number: int) -> bool:
    """Whether a partition may have this index: 32 bits, from 0 on."""
    return 0 <= number <= LARGEST_INT32


def known(value: int | None) -> int | None:
    """An offset or epoch, None where Kafka writes -1 for unknown."""
    return None if value is None or value < 0 else value


def _sum(values: Iterable[int | None]) -> int | None:
    """The sum; None as soon as one part is unknown, or if 64 bits do not hold it."""
    total = 0
    for value in values:
        if value is None:
            return None
        total += value
    return as_int64(total)


def _is_removed(batches: list[Json]) -> bool:
    """Whether the payload policy left nothing of a records field but its size."""
    return any(batch.get("status") == "removed" for batch in batches)


def offset_span(batch: Json) -> int | None:
    """How many offsets a produced batch takes."""
    first, last = natural(batch, "baseOffset"), natural(batch, "lastOffset")
    if batch.get("magic") == 2 and first is not None and last is not None:
        return last - first + 1 if first <= last else None
    return count(batch, "recordsCount")
