"""Derivations that took time by the square: the same rows as by the plain definition, and bounded ones beyond."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Any

import pytest

from decoder.kafka.extractors.transactions import TxnEvent, follow
from pipeline.analysis.cluster_catalog import ClusterCatalog, Seen
from pipeline.analysis.incidents import grouping
from pipeline.analysis.incidents.grouping import trees_of
from pipeline.analysis.ownership.assignments import assignments
from pipeline.analysis.ownership.transactions import transactions
from pipeline.analysis.rules.kafka.share_groups.share_groups import suspects
from pipeline.analysis.rules.kafka.share_groups.share_states import Delivery, SharePlace
from pipeline.analysis.rules.model import Finding
from pipeline.analysis.timeline.rows import timeline
from pipeline.tables import GAPS, OFFSET_EVENTS, RECORD_BATCHES, STATE_EVENTS
from tests.pipeline.rows import T0, arrow, row

HOUR = timedelta(hours=1)


def cluster_at(sightings: list[Seen], ts_us: int) -> str:
    """The definition: seen before and after; else the last before; else the very first."""
    around = [s for s in sightings if s.first_us <= ts_us <= s.last_us]
    if around:
        return max(around, key=lambda s: (s.first_us, s.value)).value
    before = [s for s in sightings if s.last_us < ts_us]
    if before:
        return max(before, key=lambda s: (s.last_us, s.value)).value
    return min(sightings, key=lambda s: (s.first_us, s.value)).value


@pytest.mark.parametrize("seed", range(60))
def test_an_address_is_of_the_cluster_that_the_definition_says(seed: int) -> None:
    source = random.Random(seed)
    sightings = []
    for number in range(source.randrange(1, 9)):
        first = source.randrange(1, 20)
        sightings.append(Seen(f"c{number}", first, first + source.randrange(8)))
    catalog = ClusterCatalog({("server:1", seen.value): seen for seen in sightings})
    times = list(range(32))
    expected = [cluster_at(sightings, us) for us in times]
    assert catalog.clusters_at(("server:1", us) for us in times) == expected
    assert [catalog.cluster_at("server:1", us) for us in times] == expected
    assert catalog.cluster_at("other:1", 5) == "other:1"


@pytest.mark.parametrize("seed", range(20))
def test_events_without_an_id_are_of_the_topic_of_their_time(seed: int) -> None:
    source = random.Random(seed)
    start_us = int(T0.timestamp() * 1e6)
    firsts = [start_us + source.randrange(6) * 1_000_000 for _ in range(source.randrange(1, 5))]
    catalog = ClusterCatalog({}, {("c", f"id{n}"): Seen("t", us, us) for n, us in enumerate(firsts)})
    rows = []
    for number in range(12):
        topic_id = source.choice([None, None, *(f"id{n}" for n in range(len(firsts) + 1))])
        at = T0 + timedelta(seconds=source.randrange(8))
        rows.append(
            row(
                OFFSET_EVENTS, cluster="c", topic="t", topic_id=topic_id, partition=0, kind="committed", offset=number,
                group_id="g", ts=at, exchange_id=f"x-{number}", error_code=0,
            )
        )  # fmt: skip
    found = timeline(arrow(OFFSET_EVENTS, rows), arrow(STATE_EVENTS), arrow(RECORD_BATCHES), catalog, HOUR)
    spans = catalog.renewed_topics

    def incarnation(given: dict) -> int:
        us = int(given["ts"].timestamp() * 1e6)
        for _, _, topic_id, number, from_us, until_us in spans:
            if given["topic_id"] == topic_id or (given["topic_id"] is None and from_us <= us < until_us):
                return number
        return 0

    assert {one["exchange_id"]: one["incarnation"] for one in found.to_pylist()} == {
        given["exchange_id"]: incarnation(given) for given in rows
    }


@pytest.mark.parametrize("listed", [True, False], ids=["listed", "a_row_each"])
def test_tasks_stand_for_each_topic_unless_these_are_too_many(listed: bool) -> None:
    def made(tasks: int, topics: int) -> int:
        usual = {
            "cluster": "c",
            "group_id": "g",
            "member_id": "m",
            "subtopology": "0",
            "generation": 1,
            "error_code": 0,
        }
        rows = [
            row(STATE_EVENTS, kind="topology", topic=f"t{n}", exchange_id="e-0", ordinal=n, **usual)
            for n in range(topics)
        ]
        given: list[dict[str, Any]] = (
            [{"partitions": [*range(tasks)]}] if listed else [{"partition": n} for n in range(tasks)]
        )
        rows += [
            row(STATE_EVENTS, kind="assignment", exchange_id="e-0", ordinal=topics + n, **one, **usual)
            for n, one in enumerate(given)
        ]
        return assignments(arrow(STATE_EVENTS, rows)).num_rows

    assert made(100, 100) == 10_000
    assert made(30, 600) == 18_000
    assert made(300, 300) == 300 * 166
    assert made(60_000, 2) == 60_000


@pytest.mark.parametrize("seed", range(40))
def test_markers_end_the_last_transaction_alone(seed: int) -> None:
    """Whatever comes: a transaction is over once each of its partitions has a marker, and only the last one is not."""
    source = random.Random(seed)
    events = [
        TxnEvent(
            number, f"e{number}", source.choice(("init", "add_partition", "produced", "end", "marker", "control")), 1,
            source.randrange(2), f"t-{source.randrange(3)}", committed=source.choice((True, False, None)),
            offset=source.choice((None, source.randrange(20))), error_code=source.choice((0, 0, 0, None, 47)),
        )
        for number in range(60)
    ]  # fmt: skip
    found = follow(events, 1_000_000)
    assert all(one.is_over for one in found[:-1])
    for one in found:
        assert one.unmarked == set(one.offsets) - one.marked


def test_of_losses_behind_a_statement_the_first_is_enough() -> None:
    usual = {"cluster": "c", "producer_id": 1, "producer_epoch": 0, "transactional_id": "x", "error_code": 0}

    def state(second: int, kind: str, connection: str, **more: object) -> dict:
        at = {
            "ts": T0 + timedelta(seconds=second),
            "exchange_id": f"{connection}-{second}",
            "connection_id": connection,
        }
        return row(STATE_EVENTS, kind=kind, **usual, **at, **more)

    states = [
        state(0, "txn_add_partition", "a", topic="t", partition=0), state(5, "txn_end", "a", committed=True),
        state(6, "txn_add_partition", "b", topic="t", partition=0),
    ]  # fmt: skip

    def complete(*losses: tuple[str, int]) -> list[bool]:
        gaps = [
            row(GAPS, connection_id=connection, seq=n, ts=T0 + timedelta(seconds=second))
            for n, (connection, second) in enumerate(losses)
        ]
        tables = (arrow(OFFSET_EVENTS), arrow(STATE_EVENTS, states), arrow(RECORD_BATCHES), arrow(GAPS, gaps))
        return [one["complete"] for one in transactions(*tables, HOUR).to_pylist()]

    assert complete() == [True, True]
    assert complete(*[("a", 1 + n % 3) for n in range(50)]) == [False, True]
    assert complete(("a", 0), ("b", 6), ("a", 7), ("c", 1)) == [True, True]
    assert complete(("b", 7), ("b", 8)) == [True, False]


def delivery(first: int, last: int, deliveries: int = 3) -> Delivery:
    return Delivery(SharePlace("c", "g", "t", 0), 1, first, last, None, deliveries, 0, "m", "c", "e-0")


def test_wide_deliveries_are_followed_only_while_they_are_few() -> None:
    narrow, wide = delivery(5, 5), [delivery(n, n + 900) for n in range(100, 400)]
    assert {one.offset for one in suspects([narrow, *wide[:5]], 3)} == {5, *range(100, 1005)}
    assert {one.offset for one in suspects([narrow, *wide], 3)} == {5}


def finding(rule: str, subject: str, us: int, **details: object) -> dict:
    return Finding(
        rule=rule, severity="warning", subject=subject, state="resolved", cluster="c", topic=None, partition=None,
        group_id=None, first_us=us, last_us=us, summary="", advice="", details=details,
    ).row()  # fmt: skip


def test_many_causes_and_effects_with_one_name_are_compared_with_their_neighbours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = [finding("connection_churn", f"a{n}", n, client_id="client", host="h") for n in range(60)]
    rows += [finding("unanswered_requests", f"server{n}/client", n, client_id="client") for n in range(60)]
    rows += [finding("mongo_cursor_leak", f"app/{n}", n, client_id="app", host=f"h{n % 7}") for n in range(60)]
    whole = trees_of(rows)
    monkeypatch.setattr(grouping, "MOST_PAIRS", 100)
    bounded = trees_of(rows)
    ids = {one["finding_id"] for one in rows}
    for trees in (whole, bounded):
        shown = [one.finding_id for tree in trees for one in tree.findings]
        assert len(shown) == len(set(shown))
        assert set(shown) == ids
