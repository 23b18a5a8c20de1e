"""Partitions without a leader and groups without a coordinator, beside elections and clients that are behind."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from decoder.kafka.apis import KafkaError
from pipeline.analysis.cluster_catalog import ClusterCatalog, Seen
from pipeline.analysis.rules.kafka.brokers.coordinator_unavailable import CoordinatorUnavailable
from pipeline.analysis.rules.kafka.brokers.outages import Attempt, outages, waves
from pipeline.analysis.rules.kafka.brokers.partition_unavailable import PartitionUnavailable
from pipeline.analysis.rules.model import Finding, Sources
from pipeline.analysis.rules.settings import finding_settings
from pipeline.analysis.statements.new_groups import group_statements
from pipeline.tables import EXCHANGES_WITH_BODIES, GAPS, OFFSET_EVENTS, STATE_EVENTS
from tests.pipeline.analysis.sources import tables
from tests.pipeline.rows import T0, row

SETTINGS = finding_settings()
SECOND = 1_000_000
SERVER = "10.0.0.1:9092"
Row = dict[str, Any]


def at(n: float) -> dict[str, Any]:
    return {"ts": T0 + timedelta(seconds=n), "exchange_id": f"e{n:08.3f}"}


def refused(n: float, code: int = 5, **more: Any) -> Row:
    what = {"kind": "produce_rejected", "topic": "t", "partition": 0, "cluster": "C", "server": SERVER, "ordinal": 0}
    who = {"client_id": "writer", "client": "10.0.0.9:1", "error_code": code, "error_name": f"ERROR_{code}"}
    return row(OFFSET_EVENTS, **at(n) | what | who | more)


def served(n: float, **more: Any) -> Row:
    return refused(n, 0, **{"kind": "produced", "error_name": "NONE", "offset": int(n)} | more)


def heartbeat(n: float, code: int = 0, **more: Any) -> Row:
    what = {"kind": "heartbeat", "group_id": "g", "cluster": "C", "server": SERVER, "ordinal": 0, "client_id": "reader"}
    answer = {"client": "10.0.0.8:1", "error_code": code, "error_name": f"ERROR_{code}" if code else "NONE"}
    return row(STATE_EVENTS, **at(n) | what | answer | more)


def exchange(n: float, api_key: int, codes: list[int], request: Row, response: Row) -> Row:
    when = {"request_ts": T0 + timedelta(seconds=n), "response_ts": T0 + timedelta(seconds=n)}
    where = {"server_ip": "10.0.0.1", "server_port": 9092, "client_ip": "10.0.0.7", "client_id": "asker"}
    bodies = {"request_body": json.dumps(request), "response_body": json.dumps(response)}
    return row(EXCHANGES_WITH_BODIES, **at(n) | when | where | bodies, api_key=api_key, error_codes=codes)


def look(rule: Any, **rows: list[Row]) -> list[Finding]:
    catalog = ClusterCatalog({(SERVER, "C"): Seen("C", 0, 0)})
    end = max(int(one["ts"].timestamp() * SECOND) for some in rows.values() for one in some)
    found: list[Finding] = rule.detect(
        Sources(tables(**rows), catalog, ends={"C": end}, server_ends={SERVER: end}), SETTINGS
    )
    return found


PARTITION, COORDINATOR = PartitionUnavailable, CoordinatorUnavailable


def test_a_partition_without_a_leader_is_found_and_over_when_somebody_is_served():
    (found,) = look(PARTITION, events=[served(0), *(refused(1 + n) for n in range(14)), served(20)])
    assert (found.rule, found.severity, found.state, found.subject) == (
        "partition_unavailable", "warning", "resolved", "t-0",
    )  # fmt: skip
    assert (found.topic, found.partition, found.details["times"]) == ("t", 0, 14)
    assert "was over at 12:00:20 UTC" in found.summary


def test_it_is_critical_as_long_as_nobody_is_served():
    (found,) = look(PARTITION, events=[served(0), *(refused(1 + n) for n in range(14))])
    assert (found.severity, found.state) == ("critical", "ongoing")
    assert found.summary.endswith("No success was seen since.")


def test_that_nobody_asks_any_more_does_not_heal_it():
    others = [served(n, topic="u") for n in range(15, 120)]
    (found,) = look(PARTITION, events=[served(0), *(refused(1 + n) for n in range(14)), *others])
    assert (found.severity, found.state) == ("critical", "unknown")
    assert found.details["known_until_us"] == found.last_us
    assert found.summary.endswith(
        "It is unknown since 12:00:14 UTC: no client has asked again, and no success was seen since."
    )


def test_an_election_is_none():
    assert look(PARTITION, events=[served(0), *(refused(1 + n / 10, 6) for n in range(14)), served(3)]) == []


def test_a_client_that_is_behind_while_others_are_served_is_none():
    others = [served(n + 0.5, client_id="other") for n in range(20)]
    assert look(PARTITION, events=[*others, *(refused(n, 6) for n in range(20))]) == []


def test_one_broker_that_does_not_lead_is_no_partition_without_a_leader():
    alone = [served(0), *(refused(1 + n, 6) for n in range(14))]
    assert look(PARTITION, events=alone) == []
    other = [refused(1.5 + n, 6, server="10.0.0.2:9092") for n in range(14)]
    assert len(look(PARTITION, events=[*alone, *other])) == 1
    parts = [{"partitionIndex": 0, "errorCode": 5}]
    asked = exchange(5, 3, [5], {}, {"topics": [{"name": "t", "partitions": parts}]})
    (found,) = look(PARTITION, events=alone, exchanges=[asked])
    assert "LEADER_NOT_AVAILABLE, NOT_LEADER_OR_FOLLOWER" in found.summary


def test_a_writer_that_is_seldom_served_must_be_refused_for_longer():
    rare = [served(-60 * n) for n in range(4)]
    assert look(PARTITION, events=[*rare, *(refused(1 + n) for n in range(30))]) == []
    assert len(look(PARTITION, events=[*rare, *(refused(1 + 10 * n) for n in range(20))])) == 1


def test_what_goes_at_the_same_time_is_one_finding():
    events = [refused(n + p / 10, partition=p) for n in range(14) for p in range(3)]
    (found,) = look(PARTITION, events=[*events, *(served(20 + p, partition=p) for p in range(3))])
    assert found.details["places"] == ["t-0", "t-1", "t-2"]
    assert (found.subject, found.topic, found.partition) == ("t-0", "t", None)


def test_metadata_tells_of_partitions_that_nobody_uses():
    parts = [{"partitionIndex": 0, "errorCode": 5}, {"partitionIndex": 1, "errorCode": 0}]
    asked = [exchange(n, 3, [5], {}, {"topics": [{"name": "t", "partitions": parts}]}) for n in range(14)]
    (found,) = look(PARTITION, exchanges=asked)
    assert (found.details["places"], found.details["clients"]) == (["t-0"], ["asker at 10.0.0.7"])


def test_a_group_without_a_coordinator_is_found():
    states = [heartbeat(-3), heartbeat(0), *(heartbeat(1 + n, 15) for n in range(14)), heartbeat(20)]
    (found,) = look(COORDINATOR, states=states)
    assert (found.subject, found.group_id, found.state) == (SERVER, "g", "resolved")
    assert found.details["groups"] == ["g"]


def test_find_coordinator_counts_in_each_of_its_forms():
    old = [exchange(n, 10, [15], {"key": "g", "keyType": 0}, {"errorCode": 15}) for n in range(14)]
    (found,) = look(COORDINATOR, exchanges=old)
    assert found.details["places"] == ["group g"]
    answer = {"coordinators": [{"key": "tx", "errorCode": 15}, {"key": "ty", "errorCode": 0}]}
    new = [exchange(n, 10, [15], {"coordinatorKeys": ["tx", "ty"], "keyType": 1}, answer) for n in range(14)]
    (found,) = look(COORDINATOR, exchanges=new)
    assert (found.details["places"], found.group_id) == (["transactional id tx"], None)


def elsewhere(*, by: str = "reader", client: str = "10.0.0.8:1") -> list[Row]:
    return [heartbeat(1 + n, 16, error_name="NOT_COORDINATOR", client_id=by, client=client) for n in range(14)]


def asks(n: float, by: str = "reader", ip: str = "10.0.0.8", **more: Any) -> Row:
    return exchange(n, 10, [], {"key": "g"}, {"errorCode": 0}) | {"client_id": by, "client_ip": ip} | more


def test_a_client_that_does_not_look_for_its_coordinator_is_to_be_restarted():
    (found,) = look(COORDINATOR, states=elsewhere(), exchanges=[asks(0.5), asks(5, by="other", ip="10.0.0.9")])
    assert found.summary.startswith("10.0.0.1:9092, which does not coordinate group g, was asked for ")
    assert found.advice.startswith("Now: restart reader at 10.0.0.8: ")
    assert found.details["never_asked"] == ["reader at 10.0.0.8"]


def commits(n: float, code: int = 0, **more: Any) -> Row:
    what = {"kind": "commit_rejected" if code else "committed", "topic": "t", "partition": 0, "cluster": "C",
            "group_id": "g", "server": SERVER, "ordinal": 0, "client_id": "reader", "client": "10.0.0.8:2"}  # fmt: skip
    answer = {"error_code": code, "error_name": "NOT_COORDINATOR" if code else "NONE", "offset": int(n)}
    return row(OFFSET_EVENTS, **at(n) | what | answer | more)


@pytest.mark.parametrize(
    ("accepted", "rejected"),
    [
        ({"kind": "committed"}, {"kind": "commit_rejected"}),
        (
            {"kind": "txn_committed", "transactional_id": "tx"},
            {"kind": "txn_commit_rejected", "transactional_id": "tx"},
        ),
    ],
    ids=["OffsetCommit", "TxnOffsetCommit"],
)
def test_commits_to_the_wrong_broker_are_found_beside_heartbeats_to_the_right_one(accepted: Row, rejected: Row):
    (found,) = look(
        COORDINATOR, states=[heartbeat(n + 0.5) for n in range(30)],
        events=[commits(0, **accepted), *(commits(2 * n, 16, **rejected) for n in range(1, 15))],
    )  # fmt: skip
    assert found.summary.startswith("10.0.0.1:9092, which does not coordinate group g, was asked for 26 s")
    assert (found.details["times"], found.details["never_asked"]) == (14, ["reader at 10.0.0.8"])


@pytest.mark.parametrize("code", [14, 15])
def test_a_coordinator_that_takes_heartbeats_and_no_commits_is_there(code: int):
    """It cannot write to __consumer_offsets, or loads it."""
    beats = [heartbeat(n + 0.5) for n in range(30)]
    refused_from = [commits(0), *(commits(2 * n, code, error_name=KafkaError(code).name) for n in range(1, 15))]
    (found,) = look(COORDINATOR, states=beats, events=refused_from)
    assert found.summary.startswith("The coordinator of group g refused some requests, and accepted others, for 26 s")
    assert (found.severity, found.state, found.details["is_partly"]) == ("critical", "ongoing", True)
    assert "accepts heartbeats and no commits" in found.advice
    (over,) = look(COORDINATOR, states=beats, events=[*refused_from, commits(29)])
    assert (over.severity, over.state) == ("warning", "resolved")


def test_a_member_at_the_wrong_broker_is_found_beside_others_at_the_right_one():
    others = [heartbeat(n + 0.5, client_id="other", client="10.0.0.9:1") for n in range(30)]
    (found,) = look(COORDINATOR, states=[*elsewhere(), *others])
    assert found.details["clients"] == ["reader at 10.0.0.8"]


def test_who_is_accepted_between_is_at_the_right_broker():
    mixed = [commits(n, 16 if n % 5 else 0) for n in range(30)]
    assert look(COORDINATOR, states=[heartbeat(n + 0.5) for n in range(30)], events=mixed) == []


@pytest.mark.parametrize("asked", [[asks(5)], [asks(5, client_id="")]])
def test_a_client_that_looks_for_its_coordinator_needs_no_restart(asked: list[Row]):
    (found,) = look(COORDINATOR, states=elsewhere(by=asked[0]["client_id"]), exchanges=asked)
    assert found.summary.startswith("Group g had no coordinator")
    assert "never_asked" not in found.details
    assert "need no restart" in found.advice


def test_what_the_capture_lost_of_a_client_may_have_been_its_question():
    asked = asks(0.5, connection_id="c1")
    gap = row(GAPS, connection_id="c1", ts=T0, seq=1, bytes_lost=10)
    (found,) = look(COORDINATOR, states=elsewhere(), exchanges=[asked], gaps=[gap])
    assert "never_asked" not in found.details


def test_of_two_clients_the_one_that_does_not_ask_is_named():
    states = [*elsewhere(), *elsewhere(by="asker", client="10.0.0.7:1")]
    (found,) = look(COORDINATOR, states=states, exchanges=[asks(5, by="asker", ip="10.0.0.7")])
    assert found.details["never_asked"] == ["reader at 10.0.0.8"]
    assert found.summary.startswith("Group g had no coordinator")


def listed(brokers: int) -> Row:
    answer = {"brokers": [{"nodeId": n} for n in range(brokers)], "topics": []}
    return exchange(0, 3, [], {}, answer) | {"status": "paired"}


def unfound(key_type: int = 0) -> list[Row]:
    answer = {"errorCode": 15}
    return [exchange(n, 10, [15], {"key": "g", "keyType": key_type}, answer) | {"status": "paired"} for n in range(14)]


@pytest.mark.parametrize(
    ("brokers", "key_type", "setting"),
    [(1, 0, "offsets.topic.replication.factor=1"), (2, 1, "transaction.state.log.replication.factor=2")],
)
def test_too_few_brokers_want_fewer_replicas(brokers: int, key_type: int, setting: str):
    (found,) = look(COORDINATOR, exchanges=[listed(brokers), *unfound(key_type)])
    assert f"set {setting} on every broker" in found.advice
    assert "=3" not in found.advice
    assert f"Metadata lists {brokers} broker" in found.summary


@pytest.mark.parametrize(
    "more",
    [
        {"exchanges": [listed(3)]},
        {"exchanges": []},
        {"exchanges": [listed(1)], "states": [heartbeat(0)]},  # the topic was there
        {"exchanges": [listed(1), asks(0.5, status="paired")]},
    ],
)
def test_where_the_internal_topic_may_exist_replicas_are_not_blamed(more: dict[str, list[Row]]):
    (found,) = look(COORDINATOR, **more | {"exchanges": [*more["exchanges"], *unfound()]})
    assert "brokers" not in found.details
    assert "replication.factor=" not in found.advice


@pytest.mark.parametrize("api_key", [76, 88])
def test_share_and_streams_groups_have_heartbeats_of_their_own(api_key: int):
    def beat(n: float, code: int = 0) -> Row:
        asked = {"groupId": "g", "memberId": "m", "topology": {"subtopologies": [{"sourceTopics": ["t"]}]}}
        said = group_statements(api_key, asked, {"errorCode": code})[-1]
        return heartbeat(n, code, kind=said.kind, group_id=said.group_id)

    lost = [beat(n, 15) for n in range(14)]
    (found,) = look(COORDINATOR, states=lost)
    assert (found.group_id, found.state) == ("g", "ongoing")
    (found,) = look(COORDINATOR, states=[*lost, beat(20)])
    assert (found.group_id, found.state) == ("g", "resolved")
    assert (
        len(group_statements(api_key, {"topology": {"subtopologies": [{"sourceTopics": ["t"]}]}}, {"errorCode": 15}))
        == 1
    )


def test_the_first_group_of_a_cluster_waits_for_its_topic():
    early = [exchange(n / 5, 10, [15], {"key": "g", "keyType": 0}, {"errorCode": 15}) for n in range(15)]
    assert look(COORDINATOR, exchanges=early, states=[heartbeat(4)]) == []


def test_a_coordinator_that_moves_refuses_and_is_found_again():
    states = [heartbeat(3 * n, 16 if n % 4 == 0 else 0) for n in range(40)]
    assert look(COORDINATOR, states=states) == []


def test_a_success_ends_an_outage_and_the_next_one_is_another_wave():
    some = [Attempt("C", "p", n * SECOND, f"e{n}", "X", "s", "c") for n in (0, 5, 60)]
    found = list(outages(some, {("C", "p"): [9 * SECOND]}))
    assert [(len(one.refused), one.healed_us) for one in found] == [(2, 9 * SECOND), (1, None)]
    assert [len(wave.outages) for wave in waves(found)] == [1, 1]
