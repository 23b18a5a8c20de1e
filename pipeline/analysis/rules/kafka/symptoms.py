"""Hints at trouble in one exchange: pure functions of its bodies; whether it is trouble, the rules decide.

A symptom carries the name of the rule that it is for, and the subject of a finding: rules count those of one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from decoder.fields import Json, integer, items, natural, text
from decoder.kafka.apis import ApiKey, KafkaError
from decoder.kafka.errors import NO_ERROR, error_name
from decoder.kafka.extractors.offsets import At, fetch_responses, listed_partitions, produce_requests, produce_responses
from decoder.kafka.schema.releases import refused_by
from pipeline.analysis.codes.kafka.table import KAFKA
from pipeline.analysis.rules.kafka.api_groups import SLOW_BY_DESIGN
from pipeline.analysis.rules.kafka.refusals import refusals, subject_of
from pipeline.analysis.tables import numbers

WAITING_APIS = numbers(ApiKey.FETCH, ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.SHARE_FETCH)
"""Their answers may take long in good health: they wait for records or for other members."""

LEFT_BEHIND = numbers(ApiKey.METADATA, ApiKey.FIND_COORDINATOR)
"""Clients ask this in the background, and close without waiting for the answer."""

MECHANISM = "sasl_mechanism"
"""Not a rule: by which mechanism a client logs in."""
INTRODUCED = "introduced"
"""Not a rule: who got a producer id for a transactional id."""
TOPIC_CHANGED = "topic_changed"
"""Not a rule: who created or deleted a topic."""
CLOSED = "closed"
"""Marks a request in an odd version that got no answer."""
OPENED, NO_SESSION = "opened", "none given"
"""Mark fetches that asked for a session: it was opened, or the broker gave none: its cache is full, or it has none."""
JOINED_AT = "epoch "
"""Begins what is reported of a member that joined a KIP-848 group."""

_SESSION_ERRORS = KAFKA.of_area("fetch session")
_PRODUCER_FENCED = KAFKA.of_area("fencing")
AUTH_ERRORS = KAFKA.of_area("login", "right")
LOGIN_ERRORS = tuple(map(error_name, KAFKA.of_area("login")))
"""Of a login; the others are about what a principal may do."""
_OUT_OF_GROUP = KAFKA.of_area("membership")
_COMMIT_REFUSED = KAFKA.of_area("membership", "commit", api=ApiKey.OFFSET_COMMIT)
_OF_PARTITION: dict[int, str] = {
    KafkaError.FENCED_LEADER_EPOCH: "fenced_leader_epoch",
    KafkaError.UNKNOWN_LEADER_EPOCH: "stale_metadata",
    KafkaError.NOT_LEADER_OR_FOLLOWER: "stale_metadata",
    KafkaError.CORRUPT_MESSAGE: "crc_mismatch",
    KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER: "sequence_gap",
    KafkaError.UNKNOWN_PRODUCER_ID: "sequence_gap",
}


@dataclass(frozen=True, slots=True)
class Exchange:
    """What symptoms are read from: columns of ``silver.exchanges`` with parsed bodies.

    Attributes:
        service_us: SERVICE_US: without what the request waited behind earlier ones of its connection.
    """

    api_key: int
    api_name: str
    api_version: int | None
    client_id: str | None
    server: str
    status: str
    request_status: str | None
    service_us: int | None
    error_codes: tuple[int, ...]
    request: Json
    response: Json


@dataclass(frozen=True, slots=True)
class Symptom:
    """A hint.

    Attributes:
        rule: name of the rule that counts it.
        subject: subject of the finding.
        what: a word that makes it more precise, such as the name of an error.
        value: a figure to add up: ms of throttling, µs of latency.
    """

    rule: str
    subject: str
    what: str = ""
    topic: str | None = None
    partition: int | None = None
    group_id: str | None = None
    value: float = 0.0


def symptoms(x: Exchange, slow_us: int) -> Iterator[Symptom]:
    """All symptoms of one exchange.

    Args:
        x: the exchange.
        slow_us: an answer that takes longer, µs, is a symptom, if its api does not wait by design.
    """
    for find in (_answering, _auth, _versions, _refused):
        yield from find(x, slow_us)
    if x.api_key in _BY_API:
        yield from _BY_API[x.api_key](x)
    if x.api_key not in (ApiKey.INIT_PRODUCER_ID, ApiKey.SASL_AUTHENTICATE):
        yield from _fenced(x)


def _answering(x: Exchange, slow_us: int) -> Iterator[Symptom]:
    client = x.client_id or "?"
    if x.status == "unanswered" and x.api_key not in (*WAITING_APIS, *LEFT_BEHIND) and not _is_foreign(x):
        yield Symptom("unanswered_requests", f"{x.server}/{client}", x.api_name)
    throttled_ms = natural(x.response, "throttleTimeMs") or 0
    stated_ms, by_design = natural(x.request, "maxWaitMs"), x.api_key in (ApiKey.FETCH, ApiKey.SHARE_FETCH)
    waited_ms = stated_ms if stated_ms is not None else math.inf if by_design else 0
    worked_us = (x.service_us or 0) - 1000 * (throttled_ms + waited_ms)
    if worked_us >= slow_us and not _waits(x):
        what, value = _slow(x, worked_us, slow_us)
        yield Symptom("latency_outlier", x.server, what, _only_topic(x), value=value)
    if throttled_ms > 0:
        yield Symptom("throttled", client, x.api_name, value=throttled_ms)


def _only_topic(x: Exchange) -> str | None:
    """The topic of a Produce of one topic: of several it is unknown which was waited for."""
    topics = (
        {at.topic or at.topic_id for at, _ in produce_requests(x.request)} if x.api_key == ApiKey.PRODUCE else set()
    )
    return topics.pop() if len(topics) == 1 else None


def _slow(x: Exchange, worked_us: float, slow_us: int) -> tuple[str, float]:
    """What was slow, and how long it took, µs: acks=all lets a leader wait for replicas as long as timeoutMs says."""
    acks, allowed_ms = integer(x.request, "acks"), natural(x.request, "timeoutMs")
    if x.api_key != ApiKey.PRODUCE or acks is None or allowed_ms is None:
        return x.api_name, worked_us
    if acks >= 0:
        return f"{x.api_name} with acks={acks}", worked_us
    too_long_us = worked_us - 1000 * allowed_ms
    return (f"{x.api_name} beyond its timeoutMs", too_long_us) if too_long_us >= slow_us else (x.api_name, worked_us)


def _waits(x: Exchange) -> bool:
    """Whether it takes long by design: OffsetFetch with requireStable waits for transactions (KIP-447)."""
    return x.api_key in SLOW_BY_DESIGN or (x.api_key == ApiKey.OFFSET_FETCH and bool(x.request.get("requireStable")))


def _auth(x: Exchange, _: int) -> Iterator[Symptom]:
    for code in x.error_codes:
        if code in AUTH_ERRORS:
            yield Symptom("auth_failed", f"{x.server}/{x.client_id or '?'}", error_name(code))


def _refused(x: Exchange, _: int) -> Iterator[Symptom]:
    for one in refusals(x.api_key, x.error_codes, x.request, x.response):
        error = error_name(one.code)
        subject = subject_of(x.client_id, x.api_name, error, one.topic or one.thing)
        group = text(x.request, "groupId") or (one.thing if x.api_key == ApiKey.OFFSET_FETCH else None)
        yield Symptom("request_refused", subject, error, one.topic, one.partition, group_id=group)


def _versions(x: Exchange, _: int) -> Iterator[Symptom]:
    """Refused versions. ApiVersions is how clients find out: there it is a part of the game."""
    if x.api_key == ApiKey.API_VERSIONS:
        return
    if KafkaError.UNSUPPORTED_VERSION in x.error_codes or (x.status == "unanswered" and _is_foreign(x)):
        subject = f"{x.client_id or '?'}/{x.api_name} v{x.api_version}"
        yield Symptom("unsupported_version", subject, CLOSED if x.status == "unanswered" else "refused")


def _is_foreign(x: Exchange) -> bool:
    """Whether brokers close the connection on such a request: no release knows it, or one has dropped it."""
    return x.request_status in ("unknown_version", "unknown_api") or bool(refused_by(x.api_key, x.api_version))


def _fenced(x: Exchange) -> Iterator[Symptom]:
    name = transactional_id(x.request)
    for code in x.error_codes:
        if code in _PRODUCER_FENCED:
            yield Symptom("fenced_producer", name or x.client_id or "?", error_name(code))


def transactional_id(request: Json) -> str | None:
    """The transactional id in any request that has one."""
    first: Json = next(iter(items(request, "transactions")), {})
    own = text(request, "transactionalId") or text(request, "v3AndBelowTransactionalId")
    return own or text(first, "transactionalId") or None


def _of_partitions(x: Exchange, answers: Iterable[tuple[At, Json]]) -> Iterator[Symptom]:
    for at, part in answers:
        code = integer(part, "errorCode")
        topic = at.topic or at.topic_id
        if code is not None and code in _OF_PARTITION:
            subject = f"{topic}-{at.partition}/{x.client_id or '?'}"
            yield Symptom(_OF_PARTITION[code], subject, error_name(code), topic, at.partition)


def _produce(x: Exchange) -> Iterator[Symptom]:
    client = x.client_id or "?"
    answers = list(produce_responses(x.response))
    yield from _of_partitions(x, answers)
    for at, part in answers:
        topic = at.topic or at.topic_id
        if integer(part, "errorCode") in (KafkaError.MESSAGE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE):
            sent = (natural(p, "recordsSizeInBytes") or 0 for a, p in produce_requests(x.request) if a == at)
            size = max(sent, default=0)
            yield Symptom(
                "oversized_or_tiny_batches", f"{topic}/{client}", "oversized", topic, at.partition, value=size
            )
    if integer(x.request, "acks") == 0:
        yield Symptom(
            "acks0_producer", client, ", ".join(sorted({str(at[0]) for at, _ in produce_requests(x.request)}))
        )


def _fetch(x: Exchange) -> Iterator[Symptom]:
    answers = list(fetch_responses(x.response))
    yield from _of_partitions(x, answers)
    client = x.client_id or "?"
    session, is_whole = integer(x.response, "sessionId"), integer(x.request, "sessionEpoch") == 0
    code = integer(x.response, "errorCode")
    if is_whole and session:
        yield Symptom("fetch_session_churn", client, OPENED)
    if is_whole and session == 0 and answers and not code:
        yield Symptom("fetch_session_churn", client, NO_SESSION)
    if code is not None and code in _SESSION_ERRORS:
        yield Symptom("fetch_session_churn", client, error_name(code))
    yield from _unknown_topics(x, answers)


def _unknown_topics(x: Exchange, answers: Sequence[tuple[At, Json]]) -> Iterator[Symptom]:
    """Topics that are unknown; where others of their partitions are served, the lowest of those that are not."""
    unknown: dict[str, set[int]] = {}
    served: set[str] = set()
    for at, part in answers:
        name, code = str(at.topic or at.topic_id or ""), integer(part, "errorCode")
        if name and code == KafkaError.UNKNOWN_TOPIC_OR_PARTITION:
            unknown.setdefault(name, set()).add(at.partition)
        elif name and code == NO_ERROR:
            served.add(name)
    for name, partitions in sorted(unknown.items()):
        only = min(partitions) if name in served else None
        yield Symptom("unknown_topic_loop", f"{name}/{x.client_id or '?'}", x.api_name, name, only)


def _list_offsets(x: Exchange) -> Iterator[Symptom]:
    yield from _of_partitions(x, listed_partitions(x.response))


def _metadata(x: Exchange) -> Iterator[Symptom]:
    for topic in items(x.response, "topics"):
        name = text(topic, "name") or text(topic, "topicId")
        if name and integer(topic, "errorCode") == KafkaError.UNKNOWN_TOPIC_OR_PARTITION:
            yield Symptom("unknown_topic_loop", f"{name}/{x.client_id or '?'}", x.api_name, name)


def _join_group(x: Exchange) -> Iterator[Symptom]:
    group, generation = text(x.request, "groupId"), integer(x.response, "generationId")
    if group and integer(x.response, "errorCode") == NO_ERROR:
        yield Symptom("rebalance_storm", group, "" if generation is None else str(generation), group_id=group)
    yield from _membership(x)


def _consumer_group_heartbeat(x: Exchange) -> Iterator[Symptom]:
    """KIP-848: a member that joins (by epoch 0) begins an epoch of the group; the others read on meanwhile."""
    group, epoch = text(x.request, "groupId"), integer(x.response, "memberEpoch")
    is_accepted = integer(x.response, "errorCode") == NO_ERROR
    if group and is_accepted and integer(x.request, "memberEpoch") == 0:
        began = JOINED_AT if epoch is None else f"{JOINED_AT}{epoch}"
        yield Symptom("rebalance_storm", group, began, group_id=group)
    yield from _membership(x)


def _membership(x: Exchange) -> Iterator[Symptom]:
    """A member that the coordinator does not count as one."""
    group = text(x.request, "groupId")
    name = "generationIdOrMemberEpoch" if "generationIdOrMemberEpoch" in x.request else "generationId"
    generation = integer(x.request, name)
    is_outside = not text(x.request, "memberId") and (generation is None or generation < 0)
    # A tool outside the group is recognised by this: no member id, no generation.
    if not group or is_outside:
        return
    for code in x.error_codes:
        if code in _OUT_OF_GROUP:
            yield Symptom("zombie_member", f"{group}/{x.client_id or '?'}", error_name(code), group_id=group)


def _commit(x: Exchange) -> Iterator[Symptom]:
    group = text(x.request, "groupId")
    yield from _membership(x)
    for code in x.error_codes:
        if group and code in _COMMIT_REFUSED:
            names = [text(topic, "name") for topic in items(x.request, "topics")]
            topic = names[0] if len(names) == 1 else None
            yield Symptom("commit_rejected", f"{group}/{x.client_id or '?'}", error_name(code), topic, group_id=group)


def _sasl_handshake(x: Exchange) -> Iterator[Symptom]:
    if mechanism := text(x.request, "mechanism"):
        yield Symptom(MECHANISM, x.client_id or "?", mechanism)


def _init_producer_id(x: Exchange) -> Iterator[Symptom]:
    name = transactional_id(x.request)
    if name and integer(x.response, "errorCode") == NO_ERROR:
        yield Symptom(INTRODUCED, name, x.client_id or "?")
    yield from _fenced(x)


def _topics(x: Exchange) -> Iterator[Symptom]:
    what = "created" if x.api_key == ApiKey.CREATE_TOPICS else "deleted"
    for topic in items(x.response, "topics") or items(x.response, "responses"):
        name = text(topic, "name")
        if name and integer(topic, "errorCode") == NO_ERROR:
            yield Symptom(TOPIC_CHANGED, name, what, name)


_BY_API: dict[int, Callable[[Exchange], Iterator[Symptom]]] = {
    ApiKey.PRODUCE: _produce,
    ApiKey.FETCH: _fetch,
    ApiKey.LIST_OFFSETS: _list_offsets,
    ApiKey.METADATA: _metadata,
    ApiKey.OFFSET_COMMIT: _commit,
    ApiKey.TXN_OFFSET_COMMIT: _commit,
    ApiKey.JOIN_GROUP: _join_group,
    ApiKey.SYNC_GROUP: _membership,
    ApiKey.HEARTBEAT: _membership,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: _consumer_group_heartbeat,
    ApiKey.SASL_HANDSHAKE: _sasl_handshake,
    ApiKey.INIT_PRODUCER_ID: _init_producer_id,
    ApiKey.CREATE_TOPICS: _topics,
    ApiKey.DELETE_TOPICS: _topics,
}
