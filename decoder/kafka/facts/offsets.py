"""What does one exchange state about offsets? A pure function of its two bodies.

The bodies are those of ``Codec.decode``; either may be None (not seen, no response) or end early (partial frames), so
that every field is optional here. Values that Kafka writes as "-1: unknown" become None.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from decoder.kafka.apis import ApiKey
from decoder.kafka.errors import NO_ERROR, error_name
from decoder.model import OffsetEvent
from decoder.reader import as_int64

Json = dict[str, Any]

ISOLATION = {0: "read_uncommitted", 1: "read_committed"}


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
    seen: Counter[tuple[At, str]] = Counter()
    events = []
    for event in extract(api_version, request or {}, response):
        place = (At(event.topic, event.topic_id, event.partition), event.kind)
        named = error_name(event.error_code) if event.error_code is not None else None
        events.append(event._replace(ordinal=seen[place], client_id=client_id, error_name=named))
        seen[place] += 1
    return events


# --- one function for each api; `response` is None where none was seen ---------------------------------------------


def _produce(version: int, request: Json, response: Json | None) -> Iterator[OffsetEvent]:
    answers = dict(produce_responses(response or {}))
    for at, part in produce_requests(request):
        batches = items(part, "recordBatches")
        last = batches[-1] if batches else {}
        answer = answers.get(at)  # None: acks=0, or the response was not seen
        code = None if answer is None else answer.get("errorCode", NO_ERROR)
        offset = known(answer.get("baseOffset")) if answer is not None and code == NO_ERROR else None
        span = _sum(map(offset_span, batches))
        yield OffsetEvent(
            *at,
            kind="produce_rejected" if code else "produced",
            ordinal=0,
            offset=offset,
            next_offset=known(as_int64(offset + span)) if offset is not None and span is not None else None,
            records=_sum(b.get("recordsCount") for b in batches),
            log_start_offset=None if answer is None else known(answer.get("logStartOffset")),
            error_code=code,
            producer_id=known(last.get("producerId")),
            producer_epoch=known(last.get("producerEpoch")),
            transactional_id=request.get("transactionalId"),
        )


def _fetch(version: int, request: Json, response: Json | None) -> Iterator[OffsetEvent]:
    session = session_of(request, response)
    for event in _fetched_and_forgotten(request, response):
        yield event if session.id is None else event._replace(session_id=session.id, session_epoch=session.epoch)


def _fetched_and_forgotten(request: Json, response: Json | None) -> Iterator[OffsetEvent]:
    replica = request.get("replicaId", (request.get("replicaState") or {}).get("replicaId", -1))
    # A follower's fetch is no evidence of a consumer.
    isolation = ISOLATION.get(request.get("isolationLevel", 0)) if replica < 0 else None
    asked = dict(fetch_requests(request))
    failed = (response or {}).get("errorCode", NO_ERROR)
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
            offset=known(part.get("fetchOffset")),
            leader_epoch=known(part.get("currentLeaderEpoch")),
            isolation_level=isolation,
            error_code=failed if response is not None else None,
        )
    for topic in items(request, "forgottenTopicsData"):
        for partition in topic.get("partitions") or []:
            where = At(topic.get("topic"), topic.get("topicId"), partition)
            if where.topic is not None or where.topic_id is not None:
                yield OffsetEvent(
                    *where,
                    kind="fetch_forgotten",
                    ordinal=0,
                    isolation_level=isolation,
                    error_code=failed if response is not None else None,
                )


def session_of(request: Json, response: Json | None) -> FetchSession:
    """The session of a Fetch: one that it begins (epoch 0; the answer names it) or goes on with.

    Epoch -1 fetches outside of a session; where it names one, it ends it.
    """
    epoch = request.get("sessionEpoch", -1)
    if epoch == 0:
        begun = (response or {}).get("sessionId") or None
        return FetchSession(begun, 0 if begun else None)
    asked = request.get("sessionId") or None
    return FetchSession(asked, epoch) if asked is not None and epoch > 0 else FetchSession(None, None)


def _fetched(at: At, part: Json, asked: Json | None, isolation: str | None) -> OffsetEvent:
    code = part.get("errorCode", NO_ERROR)
    found = items(part, "recordBatches")
    batches = [b for b in found if b.get("lastOffset") is not None]
    whole = [b for b in batches if b.get("status", "ok") == "ok"]
    data = [b for b in whole if not b.get("isControlBatch")]
    last = data[-1] if data else {}
    return OffsetEvent(
        *at,
        kind="fetch_rejected" if code else "fetched",
        ordinal=0,
        offset=known((asked or {}).get("fetchOffset")),
        next_offset=known(as_int64(whole[-1]["lastOffset"] + 1)) if whole else None,
        records=_sum(b.get("recordsCount") for b in (found if _is_removed(found) else data)),
        high_watermark=known(part.get("highWatermark")),
        last_stable_offset=known(part.get("lastStableOffset")),
        log_start_offset=known(part.get("logStartOffset")),
        leader_epoch=known((asked or {}).get("currentLeaderEpoch")),
        isolation_level=isolation,
        error_code=code,
        producer_id=known(last.get("producerId")),
        producer_epoch=known(last.get("producerEpoch")),
    )


def _list_offsets(version: int, request: Json, response: Json | None) -> Iterator[OffsetEvent]:
    asked = dict(_partitions(request, "topics", "name", "partitions", "partitionIndex"))
    replica = request.get("replicaId", -1)
    isolation = ISOLATION.get(request.get("isolationLevel", 0)) if replica < 0 else None
    for at, part in _partitions(response or {}, "topics", "name", "partitions", "partitionIndex"):
        code = part.get("errorCode", NO_ERROR)
        old = part.get("oldStyleOffsets") or [None]  # v0: the newest first
        yield OffsetEvent(
            *at,
            kind="listed",
            ordinal=0,
            offset=known(part.get("offset", old[0])) if code == NO_ERROR else None,
            leader_epoch=known(part.get("leaderEpoch")),
            isolation_level=isolation,
            error_code=code,
            list_timestamp=(asked.get(at) or {}).get("timestamp"),
        )


def _offset_commit(version: int, request: Json, response: Json | None) -> Iterator[OffsetEvent]:
    for event, code in _commits(request, response):
        yield event._replace(kind="commit_rejected" if code else "committed", error_code=code)


def _txn_offset_commit(version: int, request: Json, response: Json | None) -> Iterator[OffsetEvent]:
    for event, code in _commits(request, response):
        yield event._replace(
            kind="txn_commit_rejected" if code else "txn_committed",
            error_code=code,
            producer_id=known(request.get("producerId")),
            producer_epoch=known(request.get("producerEpoch")),
            transactional_id=request.get("transactionalId"),
        )


def _commits(request: Json, response: Json | None) -> Iterator[tuple[OffsetEvent, int]]:
    """Each partition of a commit with its verdict; without a verdict a commit shows nothing."""
    answers = _partitions(response or {}, "topics", "name", "partitions", "partitionIndex")
    codes = {at: part["errorCode"] for at, part in answers if "errorCode" in part}
    for at, part in _partitions(request, "topics", "name", "partitions", "partitionIndex"):
        if at not in codes:
            continue
        event = OffsetEvent(
            *at,
            kind="committed",
            ordinal=0,
            offset=known(part.get("committedOffset")),
            leader_epoch=known(part.get("committedLeaderEpoch")),
            group_id=request.get("groupId"),
            member_id=request.get("memberId"),
            generation=known(request.get("generationIdOrMemberEpoch")),
            metadata=part.get("committedMetadata"),
        )
        yield event, codes[at]


def _offset_fetch(version: int, request: Json, response: Json | None) -> Iterator[OffsetEvent]:
    if response is None:
        return
    if version >= 8:  # several groups in one request (KIP-709)
        asked = {g.get("groupId"): g for g in items(request, "groups")}
        groups = [(asked.get(g.get("groupId"), {}), g) for g in items(response, "groups")]
    else:
        groups = [(request, response)]
    for question, answer in groups:
        group_id = answer.get("groupId") or question.get("groupId")
        for at, part in _partitions(answer, "topics", "name", "partitions", "partitionIndex"):
            yield OffsetEvent(
                *at,
                kind="fetched_commit",
                ordinal=0,
                offset=known(part.get("committedOffset")),
                leader_epoch=known(part.get("committedLeaderEpoch")),
                group_id=group_id,
                member_id=question.get("memberId"),
                generation=known(question.get("memberEpoch")),
                error_code=part.get("errorCode", NO_ERROR) or answer.get("errorCode", NO_ERROR),
                metadata=part.get("metadata"),
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


def _partitions(body: Json, topics: str, name: str, partitions: str, index: str) -> Iterator[tuple[At, Json]]:
    """All partitions of ``body``; a partition or topic whose identity was cut off is left out."""
    for topic in items(body, topics):
        topic_name, topic_id = topic.get(name), topic.get("topicId")
        if topic_name is None and topic_id is None:
            continue
        for part in items(topic, partitions):
            if part.get(index) is not None:
                yield At(topic_name, topic_id, part[index]), part


def items(body: Json | None, name: str) -> list[Json]:
    """The structs of an array field; none if the field or the body is not there."""
    return (body or {}).get(name) or []


def known(value: int | None) -> int | None:
    """An offset or epoch, None where Kafka writes -1 for unknown."""
    return None if value is None or value < 0 else value


def _sum(values: Iterable[int | None]) -> int | None:
    """The sum; None as soon as one part is unknown."""
    total = 0
    for value in values:
        if value is None:
            return None
        total += value
    return total


def _is_removed(batches: list[Json]) -> bool:
    """Whether the payload policy left nothing of a records field but its size."""
    return any(batch.get("status") == "removed" for batch in batches)


def offset_span(batch: Json) -> int | None:
    """How many offsets a produced batch takes."""
    first, last = batch.get("baseOffset"), batch.get("lastOffset")
    if batch.get("magic") == 2 and first is not None and last is not None:
        return int(last - first + 1)
    return batch.get("recordsCount")
