"""What the views answer, and that Spark and DuckDB give the same answer."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from pipeline.dashboard.sql import query
from pipeline.dashboard.views import register_in_spark, views
from pipeline.streaming.spark.session import build_session
from pipeline.streaming.storage.lake import Lake, register
from pipeline.tables import OFFSET_TIMELINE
from tests.pipeline.dashboard.conftest import MAX, at
from tests.pipeline.rows import row, write
from tests.requirements import require_java

NAMES = [view.name for view in views()]


def rows(lake: Path, sql: str) -> list[dict[str, Any]]:
    return query(lake, sql).to_pylist()


def test_the_views_state_what_they_answer() -> None:
    assert NAMES == [
        "breaking_clients", "consumer_lag", "errors", "exchanges_with_bodies", "exchanges_with_pending",
        "failed_connections", "latency", "open_transactions", "partition_owners", "stuck_partitions",
        "timeline_by_minute",
    ]  # fmt: skip
    assert [view.name for view in views() if len(view.question) < 30] == []


def test_consumer_lag_is_that_of_now_for_both_isolation_levels(hand_made_lake: Path) -> None:
    sql = "SELECT partition, group_id, committed_offset, lag, lag_read_committed, lag_seconds FROM consumer_lag "
    sql += "WHERE topic = 'orders' ORDER BY partition"
    assert [tuple(r.values()) for r in rows(hand_made_lake, sql)] == [
        (
            0,
            "g",
            3,
            57,
            2,
            177.5,
        ),  # 1.5 s when it committed, 176 s before the last word of its cluster
        (1, "g", 7, 0, None, 0.0),
        (2, "g", 7, 43, None, None),
        (4, "g", 100, 30, None, None),
    ]


def test_only_the_client_that_repeats_itself_behind_the_end_is_stuck(hand_made_lake: Path) -> None:
    (stuck,) = rows(hand_made_lake, "FROM stuck_partitions")
    assert (stuck["partition"], stuck["client_id"], stuck["stuck_offset"]) == (0, "old", 3)
    assert (stuck["commits"], stuck["since"], stuck["last_commit"]) == (3, at(2), at(5))
    assert (stuck["high_watermark"], stuck["records_behind"]) == (60, 57)


@pytest.mark.parametrize(("end", "is_stuck"), [(9, True), (30, False)], ids=["just now", "long ago"])
def test_a_stuck_commit_is_over_when_the_group_has_moved_on_for_a_while(
    tmp_path: Path, end: float, is_stuck: bool
) -> None:
    old = [(second, "old", 3) for second in (1, 3, 5)]
    commits = [
        row(
            OFFSET_TIMELINE, ts=at(second), cluster="k", topic="orders", partition=0, group_id="g", kind="committed",
            client_id=client, event_offset=offset, committed_offset=offset, high_watermark=60, fetch_position=60,
            lag=60 - offset, exchange_id=f"e{second}",
        )
        for second, client, offset in [*old, (6, "new", 50)]
    ]  # fmt: skip
    last = row(
        OFFSET_TIMELINE, ts=at(end), cluster="k", topic="others", partition=0, group_id="", kind="listed",
        high_watermark=60, exchange_id="end",
    )  # fmt: skip
    write(tmp_path, OFFSET_TIMELINE, [*commits, last])
    assert len(rows(tmp_path, "FROM stuck_partitions")) == int(is_stuck)


def test_connections_that_failed_are_counted_by_how_they_ended(hand_made_lake: Path) -> None:
    found = rows(hand_made_lake, "SELECT ended, connections, since, last_seen FROM failed_connections ORDER BY ended")
    assert [tuple(r.values()) for r in found] == [
        ("refused", 70, at(1), at(2)),
        ("reset by the server, request open", 2, at(1), at(2)),
    ]


def test_an_open_transaction_is_shown_with_its_beginning_and_producer(hand_made_lake: Path) -> None:
    (held,) = rows(hand_made_lake, "FROM open_transactions")
    assert (held["partition"], held["last_stable_offset"], held["high_watermark"]) == (0, 5, 20)
    assert (held["records_held_back"], held["since"], held["last_seen"]) == (15, at(2), at(3))
    assert held["producer_id"] == 4711


def test_errors_are_counted_by_api_name_and_client(hand_made_lake: Path) -> None:
    found = rows(hand_made_lake, "FROM errors ORDER BY error_name")
    assert [(r["error_name"], r["exchanges"], r["first_seen"], r["last_seen"]) for r in found] == [
        ("ILLEGAL_GENERATION", 3, at(0), at(2)),
        ("UNKNOWN_MEMBER_ID", 1, at(1), at(1)),
    ]


def test_percentiles_are_by_nearest_rank(hand_made_lake: Path) -> None:
    found = rows(hand_made_lake, "FROM latency ORDER BY api_name")
    assert [tuple(r.values())[1:] for r in found] == [
        (12, "app", 100, 50, 95, 99, 100, 0),
        (8, "=cmd()", 3, 700, 700, 700, 700, 0),
    ]


def test_a_partition_is_owned_until_the_group_or_the_member_goes_on(hand_made_lake: Path) -> None:
    sql = "SELECT group_id, partition, member_id, owned_from, owned_until FROM partition_owners ORDER BY ALL"
    assert [tuple(r.values()) for r in rows(hand_made_lake, sql)] == [
        ("classic", 0, "a", at(10), at(20)),  # the next generation
        ("classic", 0, "b", at(20), None),
        ("classic", 1, "a", at(10), at(20)),
        ("classic", 1, "a", at(21), at(50)),  # left
        ("new", 0, "m", at(10), None),
        ("new", 1, "m", at(10), at(20)),  # left out of what it was assigned next
        ("new", 1, "n", at(30), at(45)),  # informed that it owns nothing any more
    ]


def test_every_minute_has_the_state_that_was_known_then(hand_made_lake: Path) -> None:
    sql = (
        "SELECT partition, group_id, minute, high_watermark, committed_offset, pending_offset, lag, "
        "lag_read_committed, is_fetched FROM timeline_by_minute WHERE topic = 'filled' ORDER BY ALL"
    )
    assert [tuple(r.values()) for r in rows(hand_made_lake, sql)] == [
        (0, "g", at(0), 10, 4, None, 5, 3, True),  # one of the six is a marker
        (0, "g", at(60), 10, 4, None, 5, 3, True),  # nothing was stated: the session holds the partition
        (0, "g", at(120), 10, 4, None, 5, 3, False),
        (0, "g", at(180), 30, 4, 9, 25, 3, False),
        (1, "g", at(0), MAX, 0, None, MAX, None, False),
        (1, "g", at(60), 0, MAX, None, 0, None, False),
    ]


def test_open_halves_are_shown_once(hand_made_lake: Path) -> None:
    sql = "SELECT status, count(*) AS n FROM exchanges_with_pending GROUP BY ALL ORDER BY status"
    assert [tuple(r.values()) for r in rows(hand_made_lake, sql)] == [
        ("paired", 103),
        ("pending", 1),
        ("unanswered", 1),
    ]
    (pending,) = rows(hand_made_lake, "FROM exchanges_with_pending WHERE status = 'pending'")
    assert (pending["exchange_id"], pending["request_ts"], pending["response_ts"]) == ("waits", at(200), None)
    assert (pending["request_size"], pending["response_size"]) == (11, None)


@pytest.fixture(scope="module")
def spark(hand_made_lake: Path) -> Iterator[Any]:
    require_java()
    session = build_session("wirelake-tests")
    register(session, Lake.at(hand_made_lake))
    register_in_spark(session)
    yield session
    for name in NAMES:
        session.catalog.dropTempView(name)


def _comparable(table: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    def plain(value: Any) -> Any:
        return value.timestamp() if isinstance(value, datetime) else value

    return sorted((tuple((k, plain(v)) for k, v in r.items()) for r in table), key=repr)


@pytest.mark.spark
@pytest.mark.parametrize("name", NAMES)
def test_spark_and_duckdb_answer_alike(spark: Any, hand_made_lake: Path, name: str) -> None:
    by_spark = spark.table(name).toArrow().to_pylist()
    by_duckdb = rows(hand_made_lake, f"FROM {name}")
    assert by_duckdb
    assert _comparable(by_spark) == _comparable(by_duckdb)
