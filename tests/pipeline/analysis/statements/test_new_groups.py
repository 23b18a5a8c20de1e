"""Who owns what in share groups and Streams groups? By what their members' heartbeats state, on recorded traffic."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import duckdb
import pytest

from pipeline.analysis.ownership.assignments import assignments
from pipeline.analysis.safety.guard import TooMuchToJudge
from pipeline.analysis.statements.new_groups import MOST_OF_A_MEMBER, SHARE, STREAMS, check_size, group_statements
from pipeline.config.settings import StreamSettings
from pipeline.embedded.diagnosis import diagnose
from pipeline.embedded.inputs import read_inputs
from pipeline.tables import ASSIGNMENTS, STATE_EVENTS
from tests.captures.record import INCIDENTS_DIR
from tests.paths import PIPELINE
from tests.pipeline.rows import arrow, row

VIEW = (PIPELINE / "dashboard" / "views" / "partition_owners.sql").read_text()


@cache
def derived(name: str) -> Any:
    return diagnose(read_inputs([str(INCIDENTS_DIR / f"{name}.pcap")]), StreamSettings()).derived


def owners(name: str) -> list[tuple[Any, ...]]:
    """Group, client, topic, partition, from and until (seconds of the capture) of what is not from groups of old."""
    truth = json.loads((INCIDENTS_DIR / f"{name}.truth.json").read_text())
    assigned, stated = derived(name).of(ASSIGNMENTS), derived(name).of(STATE_EVENTS)
    with duckdb.connect() as connection:
        connection.execute("CREATE SCHEMA silver; SET timezone = 'UTC'")
        connection.register("a", assigned).register("s", stated)
        connection.execute("CREATE VIEW silver.assignments AS FROM a; CREATE VIEW silver.state_events AS FROM s")
        return connection.execute(
            f"""
            SELECT group_id, client_id, topic, partition, round(epoch(owned_from) - $began) AS since,
                round(epoch(owned_until) - $began) AS until
            FROM ({VIEW}) WHERE group_protocol IN ('share', 'streams') ORDER BY ALL
            """,
            {"began": truth["capture_start_ms"] / 1000},
        ).fetchall()


def test_several_members_of_a_share_group_own_a_partition() -> None:
    owned = owners("share_groups")
    assert {row[:4] for row in owned} == {
        ("packing", "packing-1", "orders", 0),
        ("painting", "painting-1", "orders", 0),
        ("shipping", "shipping-1", "orders", 0),
        ("shipping", "shipping-2", "orders", 0),
    }
    shipping = [row for row in owned if row[0] == "shipping"]
    assert max(since for *_, since, _ in shipping) < 15
    assert {until is None or until > 40 for *_, until in shipping} == {True}


def test_tasks_of_a_streams_group_are_told_by_what_they_read() -> None:
    owned = owners("streams_group")
    topics = ("counting-counts-repartition", "words")
    assert {row[2:4] for row in owned} == {(topic, partition) for topic in topics for partition in (0, 1)}
    for topic in topics:
        # The first instance has both; the second takes one for a while.
        whose = [row[1] for row in sorted((r for r in owned if r[2:4] == (topic, 1)), key=lambda row: row[4])]
        assert len(whose) == 3
        assert whose[0] == whose[2] != whose[1]
        assert {row[1] for row in owned if row[2:4] == (topic, 0)} == {whose[0]}


def test_a_task_is_known_by_its_subtopology_while_nobody_said_what_that_reads() -> None:
    states = derived("streams_group").of(STATE_EVENTS)
    late = states.filter([kind != "topology" for kind in states.column("kind").to_pylist()])
    rows = [row for row in assignments(late).to_pylist() if row["partition"] is not None]
    assert {(row["topic"], row["subtopology"], row["partition"]) for row in rows} == {
        (None, subtopology, partition) for subtopology in ("0", "1") for partition in (0, 1)
    }


def test_taking_it_in_again_changes_nothing() -> None:
    states = derived("streams_group").of(STATE_EVENTS).sort_by("ts")
    once = assignments(states)
    assert assignments(states, once).num_rows == 0
    assert assignments(states, assignments(states.slice(0, states.num_rows // 2))).num_rows < once.num_rows


ASKED = {"groupId": "g", "memberId": "m", "memberEpoch": 3}
ANSWERED = {"errorCode": 0, "memberId": "m", "memberEpoch": 4}


def told(api_key: int, asked: dict[str, Any], answered: dict[str, Any] | None) -> list[tuple[Any, ...]]:
    found = group_statements(api_key, ASKED | asked, None if answered is None else ANSWERED | answered)
    return [(one.kind, one.generation, one.topic or one.topic_id, one.subtopology, one.partitions) for one in found]


@pytest.mark.parametrize("api_key", [SHARE, STREAMS])
def test_what_did_not_change_is_not_stated_again(api_key: int) -> None:
    assert told(api_key, {}, {}) == [("heartbeat", 4, None, None, None)]
    assert told(api_key, {}, {"assignment": None, "activeTasks": None}) == [("heartbeat", 4, None, None, None)]
    assert told(api_key, {}, None) == [("heartbeat", 3, None, None, None)]
    assert told(api_key, {"memberEpoch": -1}, {"memberEpoch": -1}) == [("leave", None, None, None, None)]


def test_an_answer_holds_all_that_a_member_is_given() -> None:
    parts = [
        {"topicId": "t", "partitions": [1, 0, 1]}, {"topicId": "v", "partitions": []},
        {"topicId": "u", "partitions": [-1, 7]},
    ]  # fmt: skip
    assert told(SHARE, {}, {"assignment": {"topicPartitions": parts}}) == [
        ("assignment", 4, "t", None, (1, 0)),
        ("assignment", 4, "u", None, (7,)),
    ]
    assert told(SHARE, {}, {"assignment": {"topicPartitions": []}}) == [("assignment", 4, None, None, None)]
    tasks = [{"subtopologyId": "0", "partitions": [2]}]
    assert told(STREAMS, {}, {"activeTasks": tasks, "standbyTasks": [], "warmupTasks": []}) == [
        ("assignment", 4, None, "0", (2,))
    ]
    assert told(STREAMS, {}, {"activeTasks": tasks, "errorCode": 25}) == [("heartbeat", 3, None, None, None)]


def test_a_member_that_joins_says_what_is_read() -> None:
    made = [{"name": "made-repartition", "partitions": 0}]
    topology = {"epoch": 0, "subtopologies": [
        {"subtopologyId": "0", "sourceTopics": ["a", "b"], "repartitionSourceTopics": []},
        {"subtopologyId": "1", "sourceTopics": [], "repartitionSourceTopics": made},
    ]}  # fmt: skip
    assert told(STREAMS, {"topology": topology}, {"activeTasks": []}) == [
        ("topology", 4, "a", "0", None),
        ("topology", 4, "b", "0", None),
        ("topology", 4, "made-repartition", "1", None),
        ("assignment", 4, None, None, None),
    ]


def test_more_than_a_member_has_is_not_stated_in_part() -> None:
    """Part of an assignment would read as if the rest of it was taken away."""

    def stated(tasks: int, topics: int) -> tuple[set[str], str]:
        topology = {"subtopologies": [{"subtopologyId": "0", "sourceTopics": [f"t{n}" for n in range(topics)]}]}
        asked, answered = (
            {"topology": topology},
            {"activeTasks": [{"subtopologyId": "0", "partitions": [*range(tasks)]}]},
        )
        kinds = {row[0] for row in told(STREAMS, asked, answered)}
        try:
            check_size(STREAMS, asked, answered)
        except TooMuchToJudge as error:
            return kinds, str(error)
        return kinds, ""

    most = MOST_OF_A_MEMBER
    assert stated(most, most) == ({"topology", "assignment"}, "")
    excess = "a member of a Streams group has 1,001 {}, and more than 1,000 are not read"
    assert stated(most + 1, 1) == ({"topology", "heartbeat"}, excess.format("tasks"))
    assert stated(1, most + 1) == ({"assignment"}, excess.format("topics"))


def test_other_requests_state_nothing_here() -> None:
    assert group_statements(68, ASKED, ANSWERED) == []


def test_a_partition_that_a_message_lists_twice_is_given_once() -> None:
    usual = {"cluster": "c", "group_id": "g", "member_id": "m", "generation": 1, "error_code": 0, "exchange_id": "e"}
    lists = [[0, 1], [1, 2]]
    states = [
        row(STATE_EVENTS, kind="assignment", topic="t", ordinal=n, partitions=one, **usual)
        for n, one in enumerate(lists)
    ]
    found = assignments(arrow(STATE_EVENTS, states)).column("partition").to_pylist()
    assert sorted(found) == [0, 1, 2]
