"""States what grows while an incident continues."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest

from pipeline.dashboard.queries.overview.incidents import incidents
from pipeline.dashboard.queries.overview.trends import band_of, held_back, lags_of, merged, trends
from pipeline.dashboard.queries.scope import Scope, ask_rows
from pipeline.dashboard.sql import connect
from tests.pipeline.dashboard.conftest import at
from tests.pipeline.lakes import diagnosed_lake


def _said(point: int, high: int | None = None, stable: int | None = None) -> dict[str, Any]:
    return {"point": point, "last_stable_high_watermark": high, "last_stable_offset": stable}


@pytest.mark.parametrize(
    ("said", "values"),
    [
        ([], []),
        ([_said(0, 10)], []),  # nobody stated where readers stop: that is not 10 records
        ([_said(0, 10), _said(3, None, 4)], [(3, 6, 6)]),
        ([_said(0, 10, 4), _said(2, 20), _said(3, None, 20)], [(0, 6, 6), (1, 6, 6), (2, 14, 16), (3, 0, 0)]),
        ([_said(5, 10, 12)], [(5, 0, 0)]),
    ],
)
def test_what_is_held_back_stands_until_another_is_stated(
    said: list[dict[str, Any]], values: list[tuple[int, int, int]]
) -> None:
    assert held_back(said, [1, 12, 14, 20]) == values  # offsets of markers: two of them lie within 4 to 20


def test_lag_is_counted_in_records_beside_offsets() -> None:
    stood = {"lag": 134, "high": 174, "committed": 21}  # 153 offsets, of which 19 are markers
    assert lags_of([{"point": 0, "high_watermark": 174, "stood": stood}]) == [(0, 134, 153)]
    later = [{"point": 2, "high_watermark": 180, "stood": None}, {"point": 3, "high_watermark": 20, "stood": None}]
    assert lags_of([{"point": 0, "high_watermark": 174, "stood": stood}, *later]) == [
        (0, 134, 153), (1, 134, 153), (2, 140, 159), (3, 0, 0),
    ]  # fmt: skip
    assert lags_of([{"point": 0, "high_watermark": 174, "stood": None}]) == []  # nobody committed: no lag


def test_a_band_has_what_was_stated_between_two_points() -> None:
    stated = [{"point": 1, "least_lag": 0, "greatest_lag": 90}, {"point": 2, "least_lag": None, "greatest_lag": None}]
    assert band_of([(0, 5.0), (1, 40.0), (2, 41.0)], stated) == ((5, 5), (0, 90), (41, 41))


def test_only_times_of_incidents_are_read() -> None:
    spans = [Scope(at(0), at(10)), Scope(at(50), at(60)), Scope(at(5), at(20)), Scope(at(20), at(21))]
    assert merged(spans) == [Scope(at(0), at(21)), Scope(at(50), at(60))]


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> duckdb.DuckDBPyConnection:
    names = ("stuck_commit", "stalled_lso", "mongodb/troubled_mongodb")
    return connect(diagnosed_lake(tmp_path_factory.mktemp("diagnosed") / "lake", *names))


@pytest.fixture(scope="module")
def found(connection: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    rows = incidents(connection, Scope(at(-(10**9)), at(10**9)))
    rules = {row["incident_id"]: row["rule"] for row in rows}
    return {rules[name]: trend for name, trend in trends(connection, rows)}


def test_a_stuck_commit_shows_the_lag_of_its_partition(found: dict[str, Any]) -> None:
    trend = found["stuck_commit"]
    values = [value for _, value in trend.points]
    assert trend.kind == "lag"
    assert min(values) < 5
    assert max(values) == values[-1] > 90  # the stale offset has the last word
    assert [low <= value <= high for value, (low, high) in zip(values, trend.band, strict=True)] == [True] * len(values)
    low, high = trend.band[20]
    assert low < 5
    assert high > 40  # between two points both have committed
    assert [ts for ts, _ in trend.points] == sorted(ts for ts, _ in trend.points)


def test_a_hanging_transaction_shows_what_it_holds_back(found: dict[str, Any]) -> None:
    trend = found["hanging_transaction"]
    values = [value for _, value in trend.points]
    assert trend.kind == "held back"
    assert len(values) > 20  # of the time in which something was heard, not of all the silence behind it
    assert values == sorted(values)
    assert (values[-1], trend.offsets) == (134, 152)  # 18 of them are transaction markers


def test_mongodb_shows_its_slowest_answers_and_how_often_it_came(found: dict[str, Any]) -> None:
    slow, storm = found["mongo_slow_command"], found["mongo_retry_storm"]
    assert (slow.kind, storm.kind) == ("latency", "times")
    assert 1400 < max(value for _, value in slow.points) < 1600
    assert [value for _, value in storm.points][-1] == 6


def test_a_line_ends_at_the_last_statement(connection: duckdb.DuckDBPyConnection, found: dict[str, Any]) -> None:
    stated = "SELECT exchange_id, ts FROM silver.exchanges UNION ALL SELECT exchange_id, ts FROM gold.offset_timeline"
    moments = {row["ts"] for row in ask_rows(connection, stated)}
    for trend in found.values():
        times = [ts for ts, _ in trend.points]
        assert times[-1] in moments
        assert len(set(times)) == len(times)
