"""What the pages ask, answered by the hand-made lake: the numbers can be read off its rows."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import duckdb
import pytest

from pipeline.dashboard.queries import clients, latency
from pipeline.dashboard.queries.overview import findings
from pipeline.dashboard.queries.progress import partitions, transactions
from pipeline.dashboard.queries.progress.partitions import Place
from pipeline.dashboard.queries.scope import BUCKETS, Extent, NotThereYetError, Scope, ask_rows, extent
from pipeline.dashboard.queries.traffic import exchange_search, exchanges
from pipeline.dashboard.queries.traffic.exchange_search import Search
from pipeline.dashboard.sql import connect
from pipeline.errors import UserError
from pipeline.tables import (
    API_LATENCY,
    DUPLICATE_FLOWS,
    EXCHANGES,
    FINDINGS,
    MONGO_MINUTES,
    OFFSET_TIMELINE,
    TRANSACTIONS,
)
from tests.pipeline.dashboard.conftest import at, stable
from tests.pipeline.rows import T0, row, write

DAY = Scope(at(0), at(300))
ORDERS = Place("k", "orders", 0, "g")


@pytest.fixture(scope="module")
def lake(hand_made_lake: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with connect(hand_made_lake) as connection:
        yield connection


def test_the_extent_is_that_of_the_exchanges(lake: duckdb.DuckDBPyConnection) -> None:
    assert extent(lake) == Extent(at(0), at(100), at(0))


def test_the_extent_reads_days_from_gold_and_the_last_day_from_exchanges(tmp_path: Path) -> None:
    first = T0.date() - timedelta(days=3)
    write(tmp_path, API_LATENCY, [row(API_LATENCY, date=first), row(API_LATENCY)])
    write(tmp_path, MONGO_MINUTES, [])
    write(tmp_path, EXCHANGES, [row(EXCHANGES, ts=at(5)), row(EXCHANGES, ts=at(9))])
    with connect(tmp_path) as connection:
        found = extent(connection)
    assert found == Extent(at(-3 * 86_400 - 12 * 3600), at(9), at(5))


def test_an_empty_lake_has_no_extent(tmp_path: Path) -> None:
    write(tmp_path, EXCHANGES, [])
    with connect(tmp_path) as connection:
        assert extent(connection) is None


def test_a_missing_table_is_reported(hand_made_lake: Path, tmp_path: Path) -> None:
    shutil.copytree(hand_made_lake / EXCHANGES.path, tmp_path / EXCHANGES.path)
    with connect(tmp_path) as connection, pytest.raises(NotThereYetError, match="lacks a table"):
        findings.findings(connection, DAY)


def test_a_bucket_is_a_part_of_the_span() -> None:
    assert Scope(at(0), at(BUCKETS)).bucket == timedelta(seconds=1)
    assert Scope(at(0), at(0)).bucket == timedelta(milliseconds=1)


def test_values_are_bound_and_never_read_as_sql(lake: duckdb.DuckDBPyConnection) -> None:
    name = "x' OR 1 = 1 --"
    assert ask_rows(lake, "SELECT $name AS name", name=name) == [{"name": name}]
    assert exchange_search.search(lake, DAY, Search(client_id=name)).rows == []


def test_findings_that_are_open_come_first_by_severity(lake: duckdb.DuckDBPyConnection) -> None:
    found = findings.findings(lake, DAY)
    assert [row["rule"] for row in found] == ["stuck_commit", "stopped", "mongo_cursor_leak", "commit_rejected"]
    assert findings.counts(lake, DAY) == {"critical": 1, "warning": 1, "info": 1, "resolved": 1}


@pytest.mark.parametrize(
    ("scope", "rules"),
    [
        (Scope(at(50), at(60)), ["stuck_commit", "stopped", "mongo_cursor_leak"]),  # open ones are older than the span
        (Scope(at(-9), at(0)), []),  # nothing had begun
        (Scope(at(0), at(300), "mongodb"), ["mongo_cursor_leak"]),
        (Scope(at(0), at(300), "kafka"), ["stuck_commit", "stopped", "commit_rejected"]),
    ],
)
def test_findings_of_a_span_and_a_protocol(lake: duckdb.DuckDBPyConnection, scope: Scope, rules: list[str]) -> None:
    assert [row["rule"] for row in findings.findings(lake, scope)] == rules


def test_groups_in_trouble_come_first(lake: duckdb.DuckDBPyConnection) -> None:
    found = [(r["topic"], r["partition"], r["lag"], r["is_stuck"]) for r in partitions.lag(lake, DAY)]
    assert found[0] == ("orders", 0, 57, True)
    assert [stuck for *_, stuck in found[1:]] == [False] * (len(found) - 1)


def test_a_transaction_is_open_where_one_response_shows_it(lake: duckdb.DuckDBPyConnection) -> None:
    found = {r["partition"]: r["is_held"] for r in partitions.lag(lake, DAY) if r["topic"] == "orders"}
    assert found == {0: True, 1: False, 2: False, 4: False}


def test_the_last_stable_offset_ends_with_the_last_response_that_states_it(tmp_path: Path) -> None:
    common = {"cluster": "k", "topic": "orders", "partition": 0, "group_id": "", **stable(1, 5, 5)}
    write(
        tmp_path,
        OFFSET_TIMELINE,
        [
            row(OFFSET_TIMELINE, ts=at(1), kind="fetched", high_watermark=5, **common),
            row(OFFSET_TIMELINE, ts=at(2), kind="produced", high_watermark=9, **common),
            row(OFFSET_TIMELINE, ts=at(3), kind="fetched", high_watermark=9, **common),  # of an old client
        ],
    )
    with connect(tmp_path) as connection:
        rows = partitions.lines(connection, DAY, ORDERS).to_pylist()
    assert [(r["line"], r["ts"], r["value"]) for r in rows] == [
        ("high_watermark", at(1), 5),
        ("high_watermark", at(2), 9),
        ("high_watermark", at(3), 9),
        ("last_stable_offset", at(1), 5),
    ]


def test_lag_is_that_of_the_end_of_the_span(lake: duckdb.DuckDBPyConnection) -> None:
    then = {r["partition"]: r["lag"] for r in partitions.lag(lake, Scope(at(0), at(2))) if r["topic"] == "orders"}
    assert then[0] == 20 - 3


def test_places_are_those_of_the_span(lake: duckdb.DuckDBPyConnection) -> None:
    assert ORDERS in partitions.places(lake, DAY)
    assert {place.topic for place in partitions.places(lake, Scope(at(9), at(10)))} == {"orders"}
    assert partitions.span(lake, DAY, ORDERS) == Scope(at(1), at(9), "kafka")
    assert partitions.span(lake, DAY, Place("k", "nowhere", 0, "g")) is None


def test_lines_are_the_last_of_each_bucket(lake: duckdb.DuckDBPyConnection) -> None:
    rows = partitions.lines(lake, Scope(at(0), at(9)), ORDERS).to_pylist()
    committed = [(r["ts"], r["value"]) for r in rows if r["line"] == "committed_offset"]
    assert committed == [(at(1), 2), (at(2), 3), (at(3), 3), (at(4), 40), (at(5), 3)]
    wide = partitions.lines(lake, Scope(at(0), at(10 * BUCKETS)), ORDERS).to_pylist()
    assert [(r["ts"], r["value"]) for r in wide if r["line"] == "committed_offset"] == [(at(5), 3)]


def test_owners_are_cut_to_the_span(lake: duckdb.DuckDBPyConnection) -> None:
    place = Place("k", "orders", 0, "classic")
    found = partitions.owners(lake, Scope(at(15), at(30)), place)
    assert [(r["member_id"], r["owned_from"], r["owned_until"]) for r in found] == [
        ("a", at(15), at(20)),
        ("b", at(20), at(30)),
    ]
    assert [r["is_owned_still"] for r in found] == [False, True]


def test_committers_are_counted(lake: duckdb.DuckDBPyConnection) -> None:
    found = [(r["client_id"], r["accepted"], r["last_offset"]) for r in partitions.committers(lake, DAY, ORDERS)]
    assert found == [("old", 4, 3), ("new", 1, 40)]


def test_a_held_partition_names_the_transaction(lake: duckdb.DuckDBPyConnection) -> None:
    (held,) = transactions.held_partitions(lake, DAY)
    assert (held["topic"], held["partition"], held["transactional_id"]) == ("orders", 0, "hangs")
    assert (held["held_seconds"], held["records_held_back"]) == (1.0, 15)


def test_what_began_to_hang_before_the_span_is_reported(lake: duckdb.DuckDBPyConnection) -> None:
    later = Scope(at(3600), at(7200))
    (held,) = transactions.held_partitions(lake, later)
    assert held == transactions.held_partitions(lake, DAY)[0]
    standing = {(r["group_id"], r["topic"], r["partition"]): r["is_stuck"] for r in partitions.lag(lake, later)}
    assert standing["g", "orders", 0]


def test_a_transaction_whose_end_was_lost_does_not_stay_open(tmp_path: Path) -> None:
    of = {"cluster": "k", "producer_id": 1, "first_ts": at(0), "last_ts": at(1), "end_ts": None}
    write(tmp_path, OFFSET_TIMELINE, [row(OFFSET_TIMELINE, cluster="k", ts=at(9))])
    write(
        tmp_path,
        TRANSACTIONS,
        [row(TRANSACTIONS, transactional_id=state, state=state, **of) for state in ("unknown", "ongoing", "aborting")],
    )
    with connect(tmp_path) as connection:
        still = transactions.open_transactions(connection, DAY)
    assert [r["transactional_id"] for r in still] == ["aborting", "ongoing"]


def test_transactions_are_open_until_the_end_of_what_was_seen(lake: duckdb.DuckDBPyConnection) -> None:
    (still,) = transactions.open_transactions(lake, Scope(at(0), at(10)))
    assert (still["transactional_id"], still["open_seconds"]) == ("hangs", 7.0)
    before = transactions.open_transactions(lake, Scope(at(0), at(1.5)))
    assert [(r["transactional_id"], r["open_seconds"], r["state"]) for r in before] == [
        ("done", 0.5, "ongoing"),
        ("longer", 0.5, "ongoing"),
    ]


def test_ended_transactions_begin_with_the_longest(lake: duckdb.DuckDBPyConnection) -> None:
    assert [(r["transactional_id"], r["seconds"]) for r in transactions.ended_transactions(lake, DAY)] == [
        ("longer", 2.0),
        ("done", 1.0),
    ]


def test_clients_that_break_come_first(lake: duckdb.DuckDBPyConnection) -> None:
    assert [r["client_id"] for r in clients.clients(lake, DAY)] == ["old", "app", "shop"]
    assert [r["client_id"] for r in clients.clients(lake, Scope(at(60), at(99), "kafka"))] == ["app"]


def test_percentiles_are_by_nearest_rank(lake: duckdb.DuckDBPyConnection) -> None:
    found = {r["api_name"]: r for r in latency.apis(lake, DAY)}
    fetch = found["Fetch"]
    assert (fetch["exchanges"], fetch["unanswered"], fetch["errors"]) == (101, 1, 0)
    assert (fetch["p50_us"], fetch["p95_us"], fetch["p99_us"], fetch["max_us"]) == (50, 95, 99, 100)
    assert found["OffsetCommit"]["errors"] == 3


COMMITS = latency.Asked("kafka", "OffsetCommit")


def test_an_api_over_time(lake: duckdb.DuckDBPyConnection) -> None:
    span = latency.span(lake, DAY, COMMITS)
    assert (span.start, span.end, latency.step(span)) == (at(0), at(3), (1, "second"))
    found = latency.over_time(lake, span, COMMITS).to_pylist()
    assert [(r["ts"], r["exchanges"], r["errors"], r["p50"]) for r in found] == [(at(n), 1, 1, 700) for n in range(3)]


@pytest.mark.parametrize(
    ("seconds", "words"), [(300, "second"), (301, "10 seconds"), (86_400, "5 minutes"), (400 * 86_400, "day")]
)
def test_points_over_time_are_no_more_than_a_plot_shows(seconds: int, words: str) -> None:
    assert latency.step(Scope(at(0), at(seconds)))[1] == words


def test_errors_are_counted_by_api_and_name(lake: duckdb.DuckDBPyConnection) -> None:
    found = [(r["error_name"], r["exchanges"], r["some_clients"]) for r in latency.errors(lake, DAY)]
    assert found == [("ILLEGAL_GENERATION", 3, ["=cmd()"]), ("UNKNOWN_MEMBER_ID", 1, ["=cmd()"])]


def test_an_exchange_that_two_agents_saw_counts_once(tmp_path: Path) -> None:
    seen = [row(EXCHANGES, exchange_id=name, connection_id=name, ts=at(1), latency_us=5) for name in ("a", "b")]
    write(tmp_path, EXCHANGES, seen)
    write(tmp_path, DUPLICATE_FLOWS, [row(DUPLICATE_FLOWS, hour=T0, connection_id="b")])
    with connect(tmp_path) as connection:  # a lake without handshakes, as a damaged one
        assert [r["exchanges"] for r in latency.apis(connection, DAY)] == [1]


def test_too_many_exchanges_are_refused(tmp_path: Path) -> None:
    write(tmp_path, API_LATENCY, [row(API_LATENCY, minute=at(0), exchanges=latency.MOST_EXCHANGES)])
    write(tmp_path, MONGO_MINUTES, [row(MONGO_MINUTES, minute=at(60), commands=1)])
    with connect(tmp_path) as connection:
        latency.demand_few(connection, Scope(at(0), at(59)))
        with pytest.raises(UserError, match="30,000,001 exchanges take too long"):
            latency.demand_few(connection, DAY)


def test_exchanges_are_found_by_id_and_one_by_one(lake: duckdb.DuckDBPyConnection) -> None:
    assert [r["exchange_id"] for r in exchanges.by_ids(lake, ["f2", "c1", "gone"], at(0), at(2))] == ["c1", "f2"]
    assert exchanges.by_ids(lake, ["f2"], at(5 * 86_400), at(5 * 86_400)) == []
    found = exchanges.one(lake, "c1")
    assert found == exchanges.one(lake, "c1", at(1))
    assert found is not None
    assert found["error_codes"] == [22, 25]
    assert exchanges.frames(lake, found) == []
    assert exchanges.one(lake, "gone") is None


def test_no_finding_is_no_row(tmp_path: Path) -> None:
    write(tmp_path, FINDINGS, [])
    with connect(tmp_path) as connection:
        assert findings.findings(connection, DAY) == []
