"""What does one exchange state about groups, transactions, fetch sessions and clients? A pure function of its bodies.

Offsets are the business of :mod:`decoder.kafka.facts.offsets`; here is what lasts from one exchange to the next: who is
a member and owns what (JoinGroup, SyncGroup; KIP-848), what a transaction holds (KIP-98, KIP-890), which fetch session
a Fetch belongs to (KIP-227), which software a client claims to be (KIP-511).

As in :mod:`decoder.kafka.facts.offsets` every field is optional, because bodies may be absent or end early.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from decoder.kafka.apis import ApiKey
from decoder.kafka.errors import NO_ERROR, error_name
from decoder.kafka.facts.offsets import Json, items, known, session_of

GROUP_KINDS = ("join", "assignment", "heartbeat", "leave", "group")
TRANSACTION_KINDS = ("txn_init", "txn_add_partition", "txn_add_group", "txn_end", "txn_marker")

_NO_TRANSACTION_OF_ITS_OWN = frozenset({None, ""})


@dataclass(frozen=True, slots=True)
class StateEvent:
    """One statement (a row of ``silver.state_events`` without the exchange's columns).

    Attributes:
        kind: ``join``: a member enters a generation; ``assignment``: it is given a partition, or none at all (then
            topic and partition are None); ``heartbeat``; ``leave``; ``group``: another request in the group's name;
            ``txn_init``, ``txn_add_partition``, ``txn_add_group``, ``txn_end``, ``txn_marker``; ``fetch_session``;
            ``software``.
        ordinal: position among the statements of the same exchange, from 0.
        generation: generation of the group or, in the consumer protocol (KIP-848), epoch of the member.
        group_protocol: ``classic`` or ``consumer`` (KIP-848).
        committed: of ``txn_end`` and ``txn_marker``: True commit, False abort.
        session_id, session_epoch: of ``fetch_session``; epoch 0 begins it, -1 ends it.
        error_code: 0 none; None if there was no answer.
    """

    kind: str
    ordinal: int = 0
    group_id: str | None = None
    member_id: str | None = None
    generation: int | None = None
    group_protocol: str | None = None
    topic: str | None = None
    topic_id: str | None = None
    partition: int | None = None
    transactional_id: str | None = None
    producer_id: int | None = None
    producer_epoch: int | None = None
    committed: bool | None = None
    session_id: int | None = None
    session_epoch: int | None = None
    software_name: str | None = None
    software_version: str | None = None
    error_code: int | None = None
    error_name: str | None = None


class Bodies(NamedTuple):
    """What an exchange holds: JSON bodies and the messages inside them (``embedded_messages``); None if not seen."""

    version: int
    request: Json
    response: Json | None
    request_embedded: list[Json]
    response_embedded: list[Json]

    @property
    def error_code(self) -> int | None:
        """The answer's own error code; None without an answer."""
        return None if self.response is None else self.response.get("errorCode", NO_ERROR)


def state_events(
    api_key: int,
    api_version: int,
    request: Json | None,
    response: Json | None,
    request_embedded: list[Json] | None = None,
    response_embedded: list[Json] | None = None,
) -> list[StateEvent]:
    """What an exchange shows of the state behind it, in the order of its bodies.

    Args:
        api_key, api_version: of the request.
        request, response: bodies; None if there is none.
        request_embedded, response_embedded: the messages inside their bytes fields.
    """
    extract = _EXTRACTORS.get(api_key)
    if extract is None:
        return []
    bodies = Bodies(api_version, request or {}, response, request_embedded or [], response_embedded or [])
    return [
        replace(event, ordinal=ordinal, error_name=None if event.error_code is None else error_name(event.error_code))
        for ordinal, event in enumerate(extract(bodies))
    ]


# --- groups -------------------------------------------------------------------------------------------------------


def _join_group(bodies: Bodies) -> Iterator[StateEvent]:
    answer = bodies.response or {}
    yield StateEvent(
        "join",
        group_id=bodies.request.get("groupId"),
        member_id=answer.get("memberId") or bodies.request.get("memberId"),
        generation=known(answer.get("generationId")),
        group_protocol="classic",
        error_code=bodies.error_code,
    )


def _sync_group(bodies: Bodies) -> Iterator[StateEvent]:
    """The leader's request holds everybody's assignment, each answer that of its member."""
    request = bodies.request
    statement = StateEvent(
        "assignment",
        group_id=request.get("groupId"),
        generation=request.get("generationId"),
        group_protocol="classic",
        error_code=bodies.error_code,
    )
    own = request.get("memberId")
    reported: set[str] = set()
    if bodies.error_code == NO_ERROR:  # refused or unanswered, nobody was assigned anything
        for message in bodies.request_embedded:
            member = _member_at(request, message.get("path", ""))
            if member is not None and _is_readable(message):
                reported.add(member)
                yield from _assigned(replace(statement, member_id=member), message)
        for message in bodies.response_embedded:
            if own not in reported and _is_readable(message):
                reported.add(own or "")
                yield from _assigned(replace(statement, member_id=own), message)
    if own not in reported:
        yield replace(statement, kind="group", member_id=own)


def _member_at(request: Json, path: str) -> str | None:
    """The member of ``assignments/<index>/assignment``."""
    parts = path.split("/")
    members = items(request, "assignments")
    if len(parts) > 1 and parts[1].isdigit() and int(parts[1]) < len(members):
        return members[int(parts[1])].get("memberId")
    return None


def _is_readable(message: Json) -> bool:
    return message.get("name") == "ConsumerProtocolAssignment" and message.get("status") == "ok"


def _assigned(statement: StateEvent, message: Json) -> Iterator[StateEvent]:
    partitions = [
        (topic.get("topic"), partition)
        for topic in items(message.get("body"), "assignedPartitions")
        for partition in topic.get("partitions") or []
    ]
    for topic, partition in partitions:
        yield replace(statement, topic=topic, partition=partition)
    if not partitions:
        yield statement


def _heartbeat(bodies: Bodies) -> Iterator[StateEvent]:
    request = bodies.request
    yield StateEvent(
        "heartbeat",
        group_id=request.get("groupId"),
        member_id=request.get("memberId"),
        generation=request.get("generationId"),
        group_protocol="classic",
        error_code=bodies.error_code,
    )


def _consumer_group_heartbeat(bodies: Bodies) -> Iterator[StateEvent]:
    """KIP-848: an answer holds the member's whole assignment when it changed; epochs -1 and -2 leave the group."""
    request, answer = bodies.request, bodies.response or {}
    epoch = request.get("memberEpoch")
    statement = StateEvent(
        "heartbeat",
        group_id=request.get("groupId"),
        member_id=answer.get("memberId") or request.get("memberId"),
        generation=known(answer.get("memberEpoch", epoch)),
        group_protocol="consumer",
        error_code=bodies.error_code,
    )
    assignment = answer.get("assignment") if bodies.error_code == NO_ERROR else None
    if epoch is not None and epoch < 0:
        yield replace(statement, kind="leave", generation=None)
    elif assignment is None:
        yield statement
    else:
        given = replace(statement, kind="assignment")
        partitions = [
            (topic.get("topicId"), partition)
            for topic in items(assignment, "topicPartitions")
            for partition in topic.get("partitions") or []
        ]
        for topic_id, partition in partitions:
            yield replace(given, topic_id=topic_id, partition=partition)
        if not partitions:
            yield given


def _leave_group(bodies: Bodies) -> Iterator[StateEvent]:
    request = bodies.request
    members = items(request, "members") or [{"memberId": request.get("memberId")}]
    answers = items(bodies.response, "members")
    for index, member in enumerate(members):
        code = bodies.error_code
        if code == NO_ERROR and index < len(answers):
            code = answers[index].get("errorCode", NO_ERROR)
        yield StateEvent(
            "leave",
            group_id=request.get("groupId"),
            member_id=member.get("memberId"),
            group_protocol="classic",
            error_code=code,
        )


def _offset_commit(bodies: Bodies) -> Iterator[StateEvent]:
    yield StateEvent("group", group_id=bodies.request.get("groupId"), member_id=bodies.request.get("memberId"))


def _offset_fetch(bodies: Bodies) -> Iterator[StateEvent]:
    for group in items(bodies.request, "groups") or [bodies.request]:  # several in one request: KIP-709
        yield StateEvent("group", group_id=group.get("groupId"), member_id=group.get("memberId"))


# --- transactions -------------------------------------------------------------------------------------------------


def _init_producer_id(bodies: Bodies) -> Iterator[StateEvent]:
    name, answer = bodies.request.get("transactionalId"), bodies.response or {}
    if name not in _NO_TRANSACTION_OF_ITS_OWN:
        yield StateEvent(
            "txn_init",
            transactional_id=name,
            producer_id=known(answer.get("producerId")),
            producer_epoch=known(answer.get("producerEpoch")),
            error_code=bodies.error_code,
        )


def _add_partitions_to_txn(bodies: Bodies) -> Iterator[StateEvent]:
    """One transaction of a client (to v3), or several that a broker adds partitions to (v4+, KIP-890)."""
    request, answer = bodies.request, bodies.response or {}
    old = {name: request.get(f"v3AndBelow{name[0].upper()}{name[1:]}") for name in _TRANSACTION}
    asked = items(request, "transactions")
    if bodies.version <= 3:
        asked = [{**old, "topics": request.get("v3AndBelowTopics")}]
    verdicts = {
        (txn, topic.get("name"), part.get("partitionIndex")): part.get("partitionErrorCode", NO_ERROR)
        for txn, topics in _results(bodies, answer)
        for topic in topics
        for part in items(topic, "resultsByPartition")
    }
    for txn in asked:
        if txn.get("verifyOnly"):  # asks whether they are in the transaction, adds nothing
            continue
        name = txn.get("transactionalId")
        for topic in items(txn, "topics"):
            for partition in topic.get("partitions") or []:
                yield StateEvent(
                    "txn_add_partition",
                    topic=topic.get("name"),
                    partition=partition,
                    transactional_id=name,
                    producer_id=known(txn.get("producerId")),
                    producer_epoch=known(txn.get("producerEpoch")),
                    error_code=bodies.error_code or verdicts.get((name, topic.get("name"), partition)),
                )


_TRANSACTION = ("transactionalId", "producerId", "producerEpoch")


def _results(bodies: Bodies, answer: Json) -> Iterator[tuple[str | None, list[Json]]]:
    for txn in items(answer, "resultsByTransaction"):
        yield txn.get("transactionalId"), items(txn, "topicResults")
    yield bodies.request.get("v3AndBelowTransactionalId"), items(answer, "resultsByTopicV3AndBelow")


def _of_transaction(kind: str, bodies: Bodies, **more: Any) -> StateEvent:
    request = bodies.request
    return StateEvent(
        kind,
        transactional_id=request.get("transactionalId"),
        producer_id=known(request.get("producerId")),
        producer_epoch=known(request.get("producerEpoch")),
        error_code=bodies.error_code,
        **more,
    )


def _add_offsets_to_txn(bodies: Bodies) -> Iterator[StateEvent]:
    yield _of_transaction("txn_add_group", bodies, group_id=bodies.request.get("groupId"))


def _end_txn(bodies: Bodies) -> Iterator[StateEvent]:
    yield _of_transaction("txn_end", bodies, committed=bodies.request.get("committed"))


def _write_txn_markers(bodies: Bodies) -> Iterator[StateEvent]:
    verdicts = {
        (marker.get("producerId"), topic.get("name"), part.get("partitionIndex")): part.get("errorCode", NO_ERROR)
        for marker in items(bodies.response, "markers")
        for topic in items(marker, "topics")
        for part in items(topic, "partitions")
    }
    for marker in items(bodies.request, "markers"):
        for topic in items(marker, "topics"):
            for partition in topic.get("partitionIndexes") or []:
                yield StateEvent(
                    "txn_marker",
                    topic=topic.get("name"),
                    partition=partition,
                    producer_id=known(marker.get("producerId")),
                    producer_epoch=known(marker.get("producerEpoch")),
                    committed=marker.get("transactionResult"),
                    error_code=verdicts.get((marker.get("producerId"), topic.get("name"), partition)),
                )


# --- fetch sessions and clients -----------------------------------------------------------------------------------


def _fetch(bodies: Bodies) -> Iterator[StateEvent]:
    asked = bodies.request.get("sessionId") or None
    session = session_of(bodies.request, bodies.response)
    if asked is not None and asked != session.id:
        yield StateEvent("fetch_session", session_id=asked, session_epoch=-1, error_code=bodies.error_code)
    if session.id is not None:
        yield StateEvent(
            "fetch_session", session_id=session.id, session_epoch=session.epoch, error_code=bodies.error_code
        )


def _api_versions(bodies: Bodies) -> Iterator[StateEvent]:
    name = bodies.request.get("clientSoftwareName")
    if name:
        version = bodies.request.get("clientSoftwareVersion")
        yield StateEvent("software", software_name=name, software_version=version, error_code=bodies.error_code)


_EXTRACTORS: dict[int, Callable[[Bodies], Iterable[StateEvent]]] = {
    int(ApiKey.FETCH): _fetch,
    int(ApiKey.OFFSET_COMMIT): _offset_commit,
    int(ApiKey.OFFSET_FETCH): _offset_fetch,
    int(ApiKey.JOIN_GROUP): _join_group,
    int(ApiKey.HEARTBEAT): _heartbeat,
    int(ApiKey.LEAVE_GROUP): _leave_group,
    int(ApiKey.SYNC_GROUP): _sync_group,
    int(ApiKey.API_VERSIONS): _api_versions,
    int(ApiKey.INIT_PRODUCER_ID): _init_producer_id,
    int(ApiKey.ADD_PARTITIONS_TO_TXN): _add_partitions_to_txn,
    int(ApiKey.ADD_OFFSETS_TO_TXN): _add_offsets_to_txn,
    int(ApiKey.END_TXN): _end_txn,
    int(ApiKey.WRITE_TXN_MARKERS): _write_txn_markers,
    int(ApiKey.CONSUMER_GROUP_HEARTBEAT): _consumer_group_heartbeat,
}

STATE_APIS = tuple(_EXTRACTORS)
