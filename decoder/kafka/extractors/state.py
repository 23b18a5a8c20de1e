"""What one exchange states about groups, transactions, fetch sessions and clients: a pure function of its bodies.

Offsets are the business of :mod:`decoder.kafka.extractors.offsets`; here is what lasts from one exchange to the next:
who is a member and owns what (JoinGroup, SyncGroup; KIP-848), what a transaction holds (KIP-98, KIP-890), which fetch
session a Fetch belongs to (KIP-227), which software a client claims to be (KIP-511).

As in :mod:`decoder.kafka.extractors.offsets` every field is optional, because bodies may be absent or end early; an
error code that is missing is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from decoder.fields import Json, flag, integer, integers, items, natural, struct, text
from decoder.kafka.apis import ApiKey
from decoder.kafka.errors import NO_ERROR
from decoder.kafka.extractors.offsets import fetch_error, is_partition, session_of
from decoder.kafka.extractors.statement import Repeated, StateEvent, Statements, changed, each, numbered

GROUP_KINDS = ("join", "assignment", "heartbeat", "leave", "group")
TRANSACTION_KINDS = ("txn_init", "txn_add_partition", "txn_add_group", "txn_end", "txn_marker")

_NO_TRANSACTION_OF_ITS_OWN = frozenset({None, ""})
Found = Iterator[Statements[StateEvent]]
_LONGEST_INDEX = 9
"""Digits of an index in the path of an embedded message."""


class Bodies(NamedTuple):
    """What an exchange holds: JSON bodies and the messages inside them (``embedded_messages``); None if not seen."""

    version: int
    request: Json
    response: Json | None
    request_embedded: list[Json]
    response_embedded: list[Json]

    @property
    def error_code(self) -> int | None:
        """The answer's own error code; None without an answer, or where it was cut off."""
        return None if self.response is None else integer(self.response, "errorCode")


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
    return each(state_statements(api_key, api_version, request, response, request_embedded, response_embedded))


def state_statements(
    api_key: int,
    api_version: int,
    request: Json | None,
    response: Json | None,
    request_embedded: list[Json] | None = None,
    response_embedded: list[Json] | None = None,
) -> list[Statements[StateEvent]]:
    """The same, where many that are alike are one object."""
    extract = _EXTRACTORS.get(api_key)
    if extract is None:
        return []
    return numbered(
        extract(Bodies(api_version, request or {}, response, request_embedded or [], response_embedded or []))
    )


# --- groups -------------------------------------------------------------------------------------------------------


def _join_group(bodies: Bodies) -> Found:
    answer = bodies.response or {}
    yield StateEvent(
        "join",
        group_id=text(bodies.request, "groupId"),
        member_id=text(answer, "memberId") or text(bodies.request, "memberId"),
        generation=natural(answer, "generationId"),
        group_protocol="classic",
        error_code=bodies.error_code,
    )


def _sync_group(bodies: Bodies) -> Found:
    """The leader's request holds everybody's assignment, each answer that of its member."""
    request = bodies.request
    statement = StateEvent(
        "assignment",
        group_id=text(request, "groupId"),
        generation=integer(request, "generationId"),
        group_protocol="classic",
        error_code=bodies.error_code,
    )
    own = text(request, "memberId")
    reported: set[str] = set()
    if bodies.error_code == NO_ERROR:  # refused or unanswered: nothing was assigned
        for message in bodies.request_embedded:
            member = _member_at(request, text(message, "path") or "")
            if member is not None and _is_readable(message):
                reported.add(member)
                yield from _assigned(changed(statement, member_id=member), message)
        for message in bodies.response_embedded:
            if own not in reported and _is_readable(message):
                reported.add(own or "")
                yield from _assigned(changed(statement, member_id=own), message)
    if own not in reported:
        yield changed(statement, kind="group", member_id=own)


def _member_at(request: Json, path: str) -> str | None:
    """The member of ``assignments/<index>/assignment``."""
    parts = path.split("/")
    members = items(request, "assignments")
    if len(parts) > 1 and parts[1].isdecimal() and len(parts[1]) <= _LONGEST_INDEX and int(parts[1]) < len(members):
        return text(members[int(parts[1])], "memberId")
    return None


def _is_readable(message: Json) -> bool:
    return message.get("name") == "ConsumerProtocolAssignment" and message.get("status") == "ok"


def _assigned(statement: StateEvent, message: Json) -> Found:
    topics, partitions = topics_of(items(struct(message, "body"), "assignedPartitions"), "topic")
    yield Repeated(statement, {"topic": topics, "partitions": partitions}) if topics else statement


def topics_of(topics: Iterable[Json], name: str) -> tuple[list[str | None], list[tuple[int, ...]]]:
    """Of each topic of an assignment the text under ``name``, and the partitions that it lists, each once.

    A topic without partitions is left out.
    """
    listed = ((text(topic, name), _distinct(integers(topic, "partitions"))) for topic in topics)
    found = [one for one in listed if one[1]]
    return [topic for topic, _ in found], [partitions for _, partitions in found]


def _distinct(partitions: Iterable[int]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(filter(is_partition, partitions)))


def partitions_of(topics: Iterable[Json], name: str, partitions: str = "partitions") -> tuple[list[Any], list[int]]:
    """All partitions that a list of topics names, and beside each the text that its topic has under ``name``."""
    names: list[Any] = []
    found: list[int] = []
    for topic in topics:
        some = [*filter(is_partition, integers(topic, partitions))]
        names += [text(topic, name)] * len(some)
        found += some
    return names, found


def _heartbeat(bodies: Bodies) -> Found:
    request = bodies.request
    yield StateEvent(
        "heartbeat",
        group_id=text(request, "groupId"),
        member_id=text(request, "memberId"),
        generation=integer(request, "generationId"),
        group_protocol="classic",
        error_code=bodies.error_code,
    )


def _consumer_group_heartbeat(bodies: Bodies) -> Found:
    """KIP-848: an answer holds the member's whole assignment when it changed; epochs -1 and -2 leave the group."""
    request, answer = bodies.request, bodies.response or {}
    epoch = integer(request, "memberEpoch")
    statement = StateEvent(
        "heartbeat",
        group_id=text(request, "groupId"),
        member_id=text(answer, "memberId") or text(request, "memberId"),
        generation=natural(answer if "memberEpoch" in answer else request, "memberEpoch"),
        group_protocol="consumer",
        error_code=bodies.error_code,
    )
    assignment = answer.get("assignment") if bodies.error_code == NO_ERROR else None
    if epoch is not None and epoch < 0:
        yield changed(statement, kind="leave", generation=None)
    elif not isinstance(assignment, dict) or not isinstance(assignment.get("topicPartitions"), list):
        yield statement
    else:
        given = changed(statement, kind="assignment")
        topic_ids, partitions = topics_of(items(assignment, "topicPartitions"), "topicId")
        yield Repeated(given, {"topic_id": topic_ids, "partitions": partitions}) if topic_ids else given


def _leave_group(bodies: Bodies) -> Found:
    request = bodies.request
    members = items(request, "members") or [{"memberId": request.get("memberId")}]
    answers = items(bodies.response, "members")
    for index, member in enumerate(members):
        code = bodies.error_code
        if code == NO_ERROR and index < len(answers):
            code = integer(answers[index], "errorCode")
        yield StateEvent(
            "leave",
            group_id=text(request, "groupId"),
            member_id=text(member, "memberId"),
            group_protocol="classic",
            error_code=code,
        )


def _offset_commit(bodies: Bodies) -> Found:
    yield StateEvent("group", group_id=text(bodies.request, "groupId"), member_id=text(bodies.request, "memberId"))


def _offset_fetch(bodies: Bodies) -> Found:
    for group in items(bodies.request, "groups") or [bodies.request]:  # several in one request: KIP-709
        yield StateEvent("group", group_id=text(group, "groupId"), member_id=text(group, "memberId"))


# --- transactions -------------------------------------------------------------------------------------------------


def _init_producer_id(bodies: Bodies) -> Found:
    name, answer = text(bodies.request, "transactionalId"), bodies.response or {}
    if name not in _NO_TRANSACTION_OF_ITS_OWN:
        yield StateEvent(
            "txn_init",
            transactional_id=name,
            producer_id=natural(answer, "producerId"),
            producer_epoch=natural(answer, "producerEpoch"),
            error_code=bodies.error_code,
        )


def _add_partitions_to_txn(bodies: Bodies) -> Found:
    """One transaction of a client (to v3), or several that a broker adds partitions to (v4+, KIP-890)."""
    request, answer = bodies.request, bodies.response or {}
    old = {name: request.get(f"v3AndBelow{name[0].upper()}{name[1:]}") for name in _TRANSACTION}
    asked = items(request, "transactions")
    if bodies.version <= 3:
        asked = [{**old, "topics": request.get("v3AndBelowTopics")}]
    verdicts = {
        (txn, text(topic, "name"), integer(part, "partitionIndex")): integer(part, "partitionErrorCode")
        for txn, topics in _results(bodies, answer)
        for topic in topics
        for part in items(topic, "resultsByPartition")
    }
    refused = bodies.error_code if bodies.version >= 4 else None  # one for all: since v4
    for txn in asked:
        if txn.get("verifyOnly"):  # asks whether they are in the transaction, adds nothing
            continue
        name = text(txn, "transactionalId")
        topics, partitions = partitions_of(items(txn, "topics"), "name")
        codes = [refused or verdicts.get((name, *place)) for place in zip(topics, partitions, strict=True)]
        added = StateEvent(
            "txn_add_partition",
            transactional_id=name,
            producer_id=natural(txn, "producerId"),
            producer_epoch=natural(txn, "producerEpoch"),
        )
        yield Repeated(added, {"topic": topics, "partition": partitions, "error_code": codes})


_TRANSACTION = ("transactionalId", "producerId", "producerEpoch")


def _results(bodies: Bodies, answer: Json) -> Iterator[tuple[str | None, list[Json]]]:
    for txn in items(answer, "resultsByTransaction"):
        yield text(txn, "transactionalId"), items(txn, "topicResults")
    yield text(bodies.request, "v3AndBelowTransactionalId"), items(answer, "resultsByTopicV3AndBelow")


def _of_transaction(kind: str, bodies: Bodies, **more: Any) -> StateEvent:
    request = bodies.request
    return StateEvent(
        kind,
        transactional_id=text(request, "transactionalId"),
        producer_id=natural(request, "producerId"),
        producer_epoch=natural(request, "producerEpoch"),
        error_code=bodies.error_code,
        **more,
    )


def _add_offsets_to_txn(bodies: Bodies) -> Found:
    yield _of_transaction("txn_add_group", bodies, group_id=text(bodies.request, "groupId"))


def _end_txn(bodies: Bodies) -> Found:
    yield _of_transaction("txn_end", bodies, committed=flag(bodies.request, "committed"))


def _write_txn_markers(bodies: Bodies) -> Found:
    verdicts = {
        (integer(marker, "producerId"), text(topic, "name"), integer(part, "partitionIndex")): integer(
            part, "errorCode"
        )
        for marker in items(bodies.response, "markers")
        for topic in items(marker, "topics")
        for part in items(topic, "partitions")
    }
    for marker in items(bodies.request, "markers"):
        producer = integer(marker, "producerId")
        topics, partitions = partitions_of(items(marker, "topics"), "name", "partitionIndexes")
        codes = [verdicts.get((producer, *place)) for place in zip(topics, partitions, strict=True)]
        written = StateEvent(
            "txn_marker",
            producer_id=natural(marker, "producerId"),
            producer_epoch=natural(marker, "producerEpoch"),
            committed=flag(marker, "transactionResult"),
        )
        yield Repeated(written, {"topic": topics, "partition": partitions, "error_code": codes})


# --- fetch sessions and clients -----------------------------------------------------------------------------------


def _fetch(bodies: Bodies) -> Found:
    request, code = bodies.request, fetch_error(bodies.version, bodies.response)
    asked, epoch = integer(request, "sessionId") or None, integer(request, "sessionEpoch")
    session = session_of(request, bodies.response)
    if asked is not None and epoch is not None and asked != session.id:
        yield StateEvent("fetch_session", session_id=asked, session_epoch=-1, error_code=code)
    if session.id is not None:
        yield StateEvent("fetch_session", session_id=session.id, session_epoch=session.epoch, error_code=code)


def _api_versions(bodies: Bodies) -> Found:
    name = text(bodies.request, "clientSoftwareName")
    if name:
        version = text(bodies.request, "clientSoftwareVersion")
        yield StateEvent("software", software_name=name, software_version=version, error_code=bodies.error_code)


_EXTRACTORS: dict[int, Callable[[Bodies], Iterable[Statements[StateEvent]]]] = {
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
