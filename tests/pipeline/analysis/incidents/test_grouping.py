"""Findings that share a cause are one incident with one root."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.analysis.incidents.grouping import Tree, trees_of
from pipeline.analysis.incidents.incidents import grouped, incidents_table
from pipeline.analysis.rules.rule import edges
from tests.pipeline.analysis.incidents.made import found

PLACE: dict[str, Any] = {"group": "g", "topic": "t", "partition": 0}


def shape(tree: Tree) -> list[tuple[str, str | None]]:
    """Each rule with that of its cause."""
    return [(node.bundle.rule, node.parent.rule if node.parent else None) for node in tree.nodes]


def shapes(*rows: dict[str, Any]) -> list[list[tuple[str, str | None]]]:
    return [shape(tree) for tree in trees_of(rows)]


def test_a_transaction_is_the_root_of_all_that_waits_for_it() -> None:
    reader: dict[str, Any] = {"starved_consumers": [{"group_id": "g", "client_id": "r", "host": "h"}]}
    rows = [
        found("lag_growing", "g/t-0", 40, **PLACE),
        found("read_committed_starved", "g/t-0", 2, **PLACE),
        found("hanging_transaction", "tx", 0, transactional_id="tx"),
        found("lso_stalled", "t-0", 1, topic="t", partition=0, transactional_id="tx", **reader),
    ]
    assert shapes(*rows) == [
        [
            ("hanging_transaction", None),
            ("lso_stalled", "hanging_transaction"),
            ("read_committed_starved", "lso_stalled"),
            ("lag_growing", "read_committed_starved"),
        ]
    ]


@pytest.mark.parametrize(
    ("begin", "end", "trees"),
    [(4, 430, 1), (70, 430, 2), (4, 200, 2), (310, 430, 1)],
    ids=["since the first time", "begun long after it", "over before the last time", "since the last time"],
)
def test_of_what_came_again_the_first_time_may_be_the_cause(begin: float, end: float, trees: int) -> None:
    first_us = found("x", "y")["first_us"]
    who: dict[str, Any] = {"client_id": "app", "host": "h"}
    rows = [
        found("poll_interval_exceeded", "g/app", 300, 420, group="g", first_of_all_us=first_us, recurrences=1, **who),
        found("commit_rejected", "g/app", begin, end, group="g", topic="t", clients=["app at h"]),
    ]
    assert len(shapes(*rows)) == trees


@pytest.mark.parametrize(("reset_s", "trees"), [(45, 1), (20, 2)], ids=["after the last end", "before it"])
def test_a_reader_may_learn_of_a_shorter_log_before_a_writer_shows_it(reset_s: float, trees: int) -> None:
    rows = [
        found("offset_reset", "g/t", reset_s, group="g", topic="t"),
        found("records_gone", "t-0", 60, topic="t", partition=0, before_us=found("x", "y", 40)["first_us"]),
    ]
    shown = shapes(*rows)
    assert len(shown) == trees
    assert ([("records_gone", None), ("offset_reset", "records_gone")] in shown) == (trees == 1)


def test_lag_of_a_group_that_does_not_wait_for_the_transaction_is_another_incident() -> None:
    rows = [
        found("lso_stalled", "t-0", 0, topic="t", partition=0, transactional_id="tx"),
        found("lag_growing", "g/t-0", 2, **PLACE),
    ]
    assert len(shapes(*rows)) == 2


def test_whoever_is_put_out_explains_storm_refusals_and_lag() -> None:
    who: dict[str, Any] = {"clients": ["app at h"]}
    rows = [
        found("poll_interval_exceeded", "g/app", 0, 100, group="g", client_id="app", host="h"),
        found("rebalance_storm", "g", 5, 100, group="g", **who),
        found("commit_rejected", "g/app", 6, 90, group="g", topic="t", **who),
        found("zombie_member", "g/app", 6, 90, group="g", **who),
        found("lag_growing", "g/t-0", 20, **PLACE),
        found("lag_growing", "other/t-0", 20, group="other", topic="t", partition=0),
    ]
    one, other = trees_of(rows)
    assert (one.root.rule, len(one.findings)) == ("poll_interval_exceeded", 5)
    assert [node.parent.rule for node in one.nodes if node.parent and node.bundle.rule == "commit_rejected"] == [
        "zombie_member"
    ]
    assert shape(other) == [("lag_growing", None)]


@pytest.mark.parametrize(
    ("name", "hosts", "is_one"),
    [
        ("orders", ("10.0.0.1", "10.0.0.1"), True),
        ("orders", ("10.0.0.1", "10.0.0.77"), False),
        ("orders", ("10.0.0.1", None), True),
        ("rdkafka", ("10.0.0.1", "10.0.0.1"), True),
        ("rdkafka", ("10.0.0.1", None), False),
        ("producer-1", (None, None), False),
        ("consumer-1", (None, None), False),
        ("consumer-orders-1", (None, None), True),  # of its group
        ("sarama", (None, None), False),
        ("kafka-python-2.2.0", (None, None), False),
    ],
)
def test_a_client_is_the_same_by_host_and_by_a_name_that_somebody_chose(
    name: str, hosts: tuple[str | None, str | None], is_one: bool
) -> None:
    cause, effect = ({"client": name} | ({"host": host} if host else {}) for host in hosts)
    rows = [found("auth_failed", f"b:1/{name}", 0, **cause), found("connection_churn", f"{name}/x", 2, **effect)]
    assert len(shapes(*rows)) == (1 if is_one else 2)


def test_strangers_with_the_name_of_their_library_are_incidents_of_their_own() -> None:
    rows = [
        found("auth_failed", "b:1/rdkafka", 0, clients=["rdkafka at 10.0.0.1"]),
        found("connection_churn", "rdkafka/10.0.0.77", 20, client="rdkafka", host="10.0.0.77"),
        found("produce_refused", "orders/rdkafka", 25, client_id="rdkafka", records_lost=500),
        found("produce_refused", "bills/rdkafka", 25, client_id="rdkafka", records_lost=5),
    ]
    assert len(shapes(*rows)) == 4
    rows = [
        found("stale_metadata", f"t-{n}/rdkafka", n, clients=[f"rdkafka at 10.0.0.{host}" for host in hosts])
        for n, hosts in enumerate([(1,), (2,), (3, 4), (1, 2), (4,)])
    ]
    assert sorted(len(tree.findings) for tree in trees_of(rows)) == [2, 3]
    named = [found("connection_churn", f"orders/h{n}", n, client="orders", host=f"h{n}") for n in range(5)]
    assert len(shapes(*named)) == 1  # one application on five hosts


def test_of_two_possible_roots_the_one_that_explains_more_is_taken() -> None:
    rows = [
        found("throttled", "app", 0, clients=["app at h"]),
        found("partition_unavailable", "k", 0, clients=["app at h"], servers=["b:1"], places=["t-0", "t-1"]),
        found("unanswered_requests", "b:1/app", 1, server="b:1", clients=["app at h"]),
        found("stale_metadata", "t-0/app", 1, topic="t", partition=0, clients=["app at h"]),
    ]
    assert sorted(shape(tree)[0][0] for tree in trees_of(rows)) == ["partition_unavailable", "throttled"]
    (most,) = [tree for tree in trees_of(rows) if tree.root.rule == "partition_unavailable"]
    assert len(most.findings) == 3


@pytest.mark.parametrize(
    ("cause", "effect", "together"),
    [
        ({"begin": 0, "end": 10}, {"begin": 5}, True),
        ({"begin": 0, "end": 10}, {"begin": 65}, True),
        ({"begin": 0, "end": 10}, {"begin": 75}, False),  # long over
        ({"begin": 0, "end": 100}, {"begin": 190}, True),  # it lasted so long itself
        ({"begin": 30, "end": 40}, {"begin": 0, "end": 60}, False),  # later than the effect
        ({"begin": 0.5, "end": 40}, {"begin": 0, "end": 60}, True),  # at the same moment
        # The last commit of a group with a rhythm of a minute: it stopped between that and the next.
        ({"begin": 30, "end": 400}, {"begin": 0, "end": 400, "enough": 300}, True),
        ({"begin": 200, "end": 400}, {"begin": 0, "end": 400, "enough": 300}, False),
    ],
)
def test_a_cause_begins_no_later_and_is_not_long_over(
    cause: dict[str, Any], effect: dict[str, Any], together: bool
) -> None:
    rows = [found("rebalance_storm", "g", group="g", **cause), found("stopped", "g/t", group="g", topic="t", **effect)]
    assert len(trees_of(rows)) == (1 if together else 2)


def test_clusters_have_nothing_to_do_with_each_other() -> None:
    rows = [
        found("rebalance_storm", "g", 0, group="g", cluster="a"),
        found("stopped", "g/t", 1, group="g", topic="t", cluster="b"),
    ]
    assert len(trees_of(rows)) == 2


def test_partitions_of_one_group_are_told_at_once_until_a_pause() -> None:
    alike = [found("stalled", f"g/t-{n}", n, n + 10, group="g", topic="t", partition=n) for n in range(3)]
    later = found("stalled", "g/t-9", 3600, group="g", topic="t", partition=9)
    assert [len(tree.findings) for tree in trees_of([*alike, later])] == [3, 1]


def test_old_clients_of_all_clusters_are_one_piece_of_work() -> None:
    rows = [
        found("kip896_incompatible_client", f"app-{n}", n * 9000, cluster=f"c{n}", hosts=["h"]) for n in range(4)
    ] + [found("unsupported_version", "app-1/Produce v0", 9000, cluster="c1", clients=["app-1 at h"])]
    (tree,) = trees_of(rows)
    assert tree.root.rule == "kip896_incompatible_client"


def test_what_is_for_information_may_be_the_root_but_is_not_what_is_told() -> None:
    rows = [
        found("rebalance_storm", "g", 0, group="g", severity="info", summary="Group g was deployed. It is well."),
        found("stopped", "g/t", 5, group="g", topic="t", severity="critical", partitions=2, records_behind=7),
        found("lag_growing", "g/t-0", 20, **PLACE, lag_before=1, lag_after=9),
        found("zombie_member", "g/app", 5, group="g", clients=["app at h"]),
    ]
    (row,) = grouped(rows).incidents
    assert (row["rule"], row["severity"]) == ("rebalance_storm", "critical")
    assert row["headline"] == "Group g has stopped committing on t: 7 records wait"
    assert row["reasoning"].endswith("It may have begun with this: Group g was deployed.")
    (alone,) = grouped(rows[:1]).incidents
    assert alone["headline"] == "Group g was deployed"


RULES = sorted({name for edge in edges() for name in (edge.cause, edge.effect)})


@st.composite
def some_finding(draw: st.DrawFn) -> dict[str, Any]:
    begin, length = draw(st.integers(0, 300)), draw(st.integers(0, 200))
    return found(
        draw(st.sampled_from(RULES)),
        f"{draw(st.integers(0, 3))}",
        begin,
        begin + length,
        group=draw(st.sampled_from(["g", "h", None])),
        topic="t",
        partition=draw(st.sampled_from([0, 1, None])),
        clients=[f"{draw(st.sampled_from(['a', 'b']))} at h"],
        server="b:1",
        transactional_id="tx",
    )


FINDINGS = st.lists(some_finding(), max_size=25, unique_by=lambda row: row["finding_id"])


@settings(max_examples=200, deadline=None)
@given(rows=FINDINGS, seed=st.integers())
def test_each_finding_is_in_one_incident_whatever_the_order(rows: list[dict[str, Any]], seed: int) -> None:
    told = grouped(rows)
    shuffled = list(rows)
    random.Random(seed).shuffle(shuffled)
    again = grouped(shuffled)
    assert told.incidents == again.incidents
    assert incidents_table(told.incidents).num_rows == len(told.incidents)
    ids = [one for row in told.incidents for one in row["findings"]]
    assert sorted(ids) == sorted(row["finding_id"] for row in rows)
    assert len({row["incident_id"] for row in told.incidents}) == len(told.incidents)
    assert {row["finding_id"]: row["incident_id"] for row in told.findings} == {
        one: row["incident_id"] for row in told.incidents for one in row["findings"]
    }


@settings(max_examples=200, deadline=None)
@given(rows=FINDINGS)
def test_each_effect_has_one_cause_that_comes_before_it_and_leads_to_the_root(rows: list[dict[str, Any]]) -> None:
    for tree in trees_of(rows):
        links = tree.links()
        assert len(links) == len(tree.findings) - 1 == len({effect for effect, _, _ in links})
        known = {tree.root.findings[0].finding_id}
        for effect, cause, _ in links:
            assert cause in known
            known.add(effect)
        for node in tree.nodes[1:]:
            assert node.parent is not None
            assert node.edge is not None
            assert (node.edge.cause, node.edge.effect) == (node.parent.rule, node.bundle.rule)
            assert node.parent.first_us <= node.bundle.begun_us


def test_many_findings_cost_little() -> None:
    """A wave over thousands of partitions: as many edges as findings, not their square."""
    rows = [
        found("stale_metadata", f"t-{n}/c{n % 7}", n / 1000, topic="t", partition=n, clients=[f"c{n % 7} at h"])
        for n in range(3000)
    ]
    rows += [found("partition_unavailable", "k", 0, clients=["c1 at h"], places=[f"t-{n}" for n in range(3000)])]
    rows += [found("latency_outlier", f"b:{n}", n, server=f"b:{n}") for n in range(3000)]
    assert [len(tree.findings) for tree in trees_of(rows)].count(3001) == 1


def test_slow_commands_of_one_server_at_one_time_are_one_incident() -> None:
    rows = [
        found("mongo_slow_command", "shop.items/find", 0, 60, server="s1:27017", peak=900_000.0),
        found("mongo_slow_command", "shop.orders/insert", 20, 60, server="s1:27017", peak=1_500_000.0),
        found("mongo_slow_command", "shop.items/find", 20, 60, server="s2:27017", peak=900_000.0),
        found("mongo_slow_command", "shop.items/find", 900, 960, server="s1:27017", peak=900_000.0),
    ]
    assert sorted(len(tree.findings) for tree in trees_of(rows)) == [1, 1, 2]
    (row,) = (row for row in grouped(rows).incidents if len(row["findings"]) == 2)
    assert row["headline"].startswith("s1:27017 takes up to 1.5 s for insert on shop.orders and find on shop.items")
    assert "create the index" not in row["remediation"]


@pytest.mark.parametrize(("areas", "incidents"), [(("login", "login"), 1), (("login", ""), 2), (("", "too old"), 2)])
def test_failures_of_one_namespace_are_one_incident_where_they_are_about_the_same(
    areas: tuple[str, str], incidents: int
) -> None:
    rows = [found("mongo_command_failed", f"admin/c{number}", area=area) for number, area in enumerate(areas)]
    assert len(trees_of(rows)) == incidents
