"""What exchanges state about groups, transactions, fetch sessions and clients, through the real codec."""

from __future__ import annotations

from typing import Any

import pytest

from decoder import Codec
from decoder.kafka.codec.embedded import ASSIGNMENT
from decoder.kafka.extractors.offsets import offset_events
from decoder.kafka.extractors.state import STATE_APIS, state_events
from decoder.kafka.extractors.statement import StateEvent
from tests.decoder.kafka.encode import consumer_protocol, request, response

CODEC = Codec()
Body = dict[str, Any]


def events_of(api_key: int, version: int, asked: Body, answer: Body | None) -> list[StateEvent]:
    asking = CODEC.decode(request(api_key, version, asked), direction="request")
    assert asking.status == "ok", asking
    if answer is None:
        return state_events(api_key, version, asking.body, None, asking.embedded)
    reply = CODEC.decode(response(api_key, version, answer), direction="response", api_key=api_key, api_version=version)
    assert reply.status == "ok", reply
    return state_events(api_key, version, asking.body, reply.body, asking.embedded, reply.embedded)


def assignment(*partitions: int) -> bytes:
    topics = [{"topic": "orders", "partitions": list(partitions)}] if partitions else []
    return consumer_protocol(ASSIGNMENT, 0, {"assignedPartitions": topics})


def shown(events: list[StateEvent], *names: str) -> list[tuple[Any, ...]]:
    return [tuple(getattr(event, name) for name in names) for event in events]


SYNC = {"groupId": "g", "generationId": 3, "memberId": "a"}
LEADER = SYNC | {
    "assignments": [{"memberId": "a", "assignment": assignment(0, 2)}, {"memberId": "b", "assignment": assignment()}]
}
OWNERS = [("assignment", "a", "orders", (0, 2)), ("assignment", "b", None, None)]


@pytest.mark.parametrize("version", [0, 3, 5])
def test_the_leader_names_all_members_each_answer_one(version: int) -> None:
    what = ("kind", "member_id", "topic", "partitions")
    named = {"protocolType": "consumer"} if version == 5 else {}
    led = events_of(14, version, LEADER, {"assignment": assignment(0, 2), **named})
    assert shown(led, *what) == OWNERS
    assert {(e.group_id, e.generation, e.group_protocol, e.error_code) for e in led} == {("g", 3, "classic", 0)}
    followed = events_of(14, version, SYNC, {"assignment": assignment(1), **named})
    assert shown(followed, *what) == [("assignment", "a", "orders", (1,))]


@pytest.mark.parametrize("answer", [{"errorCode": 22}, None], ids=["refused", "unanswered"])
def test_a_sync_without_success_assigns_nothing(answer: Body | None) -> None:
    assert shown(events_of(14, 3, LEADER, answer), "kind", "member_id") == [("group", "a")]


def test_another_protocol_types_assignment_is_not_read_as_a_consumers() -> None:
    answer = {"assignment": assignment(1), "protocolType": "connect"}
    assert shown(events_of(14, 5, SYNC | {"protocolType": "connect"}, answer), "kind") == [("group",)]


def test_members_join_beat_and_leave() -> None:
    joined = events_of(11, 7, {"groupId": "g", "memberId": ""}, {"generationId": 4, "memberId": "a", "errorCode": 0})
    assert shown(joined, "kind", "member_id", "generation") == [("join", "a", 4)]
    beaten = events_of(12, 4, SYNC, {"errorCode": 27})
    assert shown(beaten, "kind", "generation", "error_name") == [("heartbeat", 3, "REBALANCE_IN_PROGRESS")]
    leaving = {"groupId": "g", "members": [{"memberId": "a"}, {"memberId": "b"}]}
    left = events_of(
        13, 4, leaving, {"members": [{"memberId": "a", "errorCode": 0}, {"memberId": "b", "errorCode": 25}]}
    )
    assert shown(left, "kind", "member_id", "error_code") == [("leave", "a", 0), ("leave", "b", 25)]
    assert shown(events_of(13, 1, {"groupId": "g", "memberId": "a"}, {}), "kind", "member_id") == [("leave", "a")]


TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
GIVEN = [("assignment", 6, TOPIC_ID, (0, 1))]


@pytest.mark.parametrize(
    ("epoch", "answer", "expected"),
    [
        (0, [{"topicId": TOPIC_ID, "partitions": [0, 1]}], GIVEN),
        (5, [], [("assignment", 6, None, None)]),
        (5, None, [("heartbeat", 6, None, None)]),
        (-1, None, [("leave", None, None, None)]),
    ],
)  # fmt: skip
def test_the_consumer_protocol_assigns_by_heartbeat(epoch: int, answer: list[Body] | None, expected: list[Any]) -> None:
    given = None if answer is None else {"topicPartitions": answer}
    asked = {"groupId": "g", "memberId": "m", "memberEpoch": epoch}
    events = events_of(68, 0, asked, {"memberId": "m", "memberEpoch": 6, "assignment": given})
    assert shown(events, "kind", "generation", "topic_id", "partitions") == expected
    assert {(e.group_id, e.member_id, e.group_protocol) for e in events} == {("g", "m", "consumer")}


TXN = {"transactionalId": "tx", "producerId": 7, "producerEpoch": 2}
ADDED = [("txn_add_partition", "tx", 7, 2, "t", 0, 0), ("txn_add_partition", "tx", 7, 2, "t", 1, 3)]


def test_partitions_are_added_by_a_client_or_by_a_broker_for_many() -> None:
    what = ("kind", "transactional_id", "producer_id", "producer_epoch", "topic", "partition", "error_code")
    topics = [{"name": "t", "partitions": [0, 1]}]
    results = [{"partitionIndex": 0, "partitionErrorCode": 0}, {"partitionIndex": 1, "partitionErrorCode": 3}]
    verdicts = [{"name": "t", "resultsByPartition": results}]
    old = {f"v3AndBelow{name[0].upper()}{name[1:]}": value for name, value in TXN.items()}
    asked = old | {"v3AndBelowTopics": topics}
    assert shown(events_of(24, 3, asked, {"resultsByTopicV3AndBelow": verdicts}), *what) == ADDED
    batched = {"transactions": [TXN | {"topics": topics}, TXN | {"topics": topics, "verifyOnly": True}]}
    answer = {"resultsByTransaction": [{"transactionalId": "tx", "topicResults": verdicts}]}
    assert shown(events_of(24, 4, batched, answer), *what) == ADDED


def test_a_transaction_begins_and_ends() -> None:
    what = ("kind", "transactional_id", "producer_id", "producer_epoch", "group_id", "committed", "error_code")
    begun = events_of(22, 4, {"transactionalId": "tx"}, {"producerId": 7, "producerEpoch": 2})
    assert shown(begun, *what) == [("txn_init", "tx", 7, 2, None, None, 0)]
    assert events_of(22, 4, {"transactionalId": None}, {"producerId": 7, "producerEpoch": 2}) == []
    assert shown(events_of(25, 3, TXN | {"groupId": "g"}, {}), *what) == [("txn_add_group", "tx", 7, 2, "g", None, 0)]
    assert shown(events_of(26, 3, TXN | {"committed": False}, {"errorCode": 47}), *what) == [
        ("txn_end", "tx", 7, 2, None, False, 47)
    ]
    assert events_of(26, 3, TXN | {"committed": True}, None)[0].error_code is None
    marked = {"producerId": 7, "producerEpoch": 3, "transactionResult": True}
    markers = {"markers": [marked | {"topics": [{"name": "t", "partitionIndexes": [0]}]}]}
    verdict = {"topics": [{"name": "t", "partitions": [{"partitionIndex": 0, "errorCode": 6}]}]}
    (marker,) = events_of(27, 1, markers, {"markers": [{"producerId": 7, **verdict}]})
    assert (marker.topic, marker.partition, marker.committed, marker.error_code) == ("t", 0, True, 6)


@pytest.mark.parametrize(
    ("session", "epoch", "answered", "expected"),
    [
        (0, 0, 9, [(9, 0)]),
        (8, 0, 9, [(8, -1), (9, 0)]),  # the old one ends
        (9, 4, 9, [(9, 4)]),
        (9, -1, 0, [(9, -1)]),
        (0, -1, 0, []),
        (0, 0, 0, []),  # the broker keeps no more sessions
    ],
)
def test_a_fetch_names_its_session(session: int, epoch: int, answered: int, expected: list[Any]) -> None:
    asked = {"sessionId": session, "sessionEpoch": epoch, "maxWaitMs": 1}
    events = events_of(1, 12, asked, {"sessionId": answered})
    assert shown(events, "session_id", "session_epoch") == expected


def test_what_is_taken_out_of_a_session_is_an_event_of_its_partition() -> None:
    asked = {"sessionId": 9, "sessionEpoch": 4, "forgottenTopicsData": [{"topic": "t", "partitions": [1]}]}
    body = CODEC.decode(request(1, 12, asked), direction="request").body
    (event,) = offset_events(1, 12, body, {"errorCode": 0, "sessionId": 9, "responses": []})
    assert (event.kind, event.topic, event.partition) == ("fetch_forgotten", "t", 1)
    assert (event.session_id, event.session_epoch) == (9, 4)


def test_clients_name_their_software() -> None:
    asked = {"clientSoftwareName": "librdkafka", "clientSoftwareVersion": "2.16.0"}
    assert shown(events_of(18, 3, asked, {}), "kind", "software_name", "software_version") == [
        ("software", "librdkafka", "2.16.0")
    ]
    assert events_of(18, 2, {}, {}) == []


@pytest.mark.parametrize("api_key", STATE_APIS)
def test_bodies_that_end_early_or_are_not_there_are_no_error(api_key: int) -> None:
    for request_body in ({}, None, {"groupId": "g"}, {"topics": None, "transactions": [{}], "markers": [{}]}):
        for response_body in ({}, None, {"members": [{}], "assignment": {}}):
            for version in (0, 4, 9):
                found = state_events(api_key, version, request_body, response_body, [{"path": "x"}], [{}])
                assert all(event.kind for event in found)


def test_what_was_cut_off_is_no_success_and_no_end() -> None:
    (event,) = state_events(12, 4, {"groupId": "g", "memberId": "m", "generationId": 3}, {"throttleTimeMs": 0})
    assert (event.kind, event.error_code, event.error_name) == ("heartbeat", None, None)
    assert state_events(1, 12, {"sessionId": 7}, {"errorCode": 0}) == []  # its epoch would say whether it ends
    (event,) = state_events(26, 3, {"transactionalId": "t", "producerId": 1}, {"errorCode": 0})
    assert (event.committed, event.producer_epoch) == (None, None)


def test_fields_of_other_types_are_not_known() -> None:
    odd = {"groupId": ["g"], "memberId": {}, "generationId": "3"}
    for api in STATE_APIS:
        found = state_events(
            api, 3, odd, {"errorCode": "0", "memberId": 5, "markers": [7], "members": "x"}, [{"path": 5}], [{}]
        )
        for event in found:
            assert (event.group_id, event.member_id, event.generation, event.error_code) == (None, None, None, None)
