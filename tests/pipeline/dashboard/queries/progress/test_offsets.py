"""What the picture of a partition shows, asked of hand-made rows: who committed, who held, what was lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from pipeline.dashboard.queries.progress import offsets
from pipeline.dashboard.queries.progress.members import MEMBERS, OTHERS, members
from pipeline.dashboard.queries.progress.partitions import Place, committers
from pipeline.dashboard.queries.scope import BUCKETS, Scope
from pipeline.dashboard.sql import connect
from pipeline.tables import (
    EXCHANGES,
    GAPS,
    OFFSET_TIMELINE,
    RECORD_BATCHES,
    STATE_EVENTS,
    TABLES,
    TRANSACTIONS,
)
from tests.pipeline.dashboard.conftest import at, stable
from tests.pipeline.rows import row, write

DAY = Scope(at(0), at(300))
ORDERS = Place("k", "orders", 0, "g")


@pytest.fixture(scope="module")
def lake(hand_made_lake: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with connect(hand_made_lake) as connection:
        yield connection


def event(seconds: float, **values: Any) -> dict[str, Any]:
    where = {"cluster": "k", "topic": "orders", "partition": 0, "group_id": "g", "exchange_id": f"e{seconds}"}
    return row(OFFSET_TIMELINE, ts=at(seconds), **(where | values))


def commit(seconds: float, offset: int, client: str, **values: Any) -> dict[str, Any]:
    return event(seconds, **({"kind": "committed", "event_offset": offset, "client_id": client} | values))


def opened(folder: Path, filled: dict[str, list[dict[str, Any]]]) -> duckdb.DuckDBPyConnection:
    for name, table in TABLES.items():
        write(folder, table, filled.get(name, []))
    return connect(folder)


def drawn(connection: duckdb.DuckDBPyConnection, scope: Scope, place: Place = ORDERS) -> list[dict[str, Any]]:
    committing = offsets.committing_members(connection, scope, place)
    shown, series = members(committing), sum(committing.values())
    rows: list[dict[str, Any]] = offsets.commits(connection, scope, place, shown, series).to_pylist()
    return rows


def test_each_member_has_its_commits_and_what_falls_back_stays_at_any_width(lake: duckdb.DuckDBPyConnection) -> None:
    for scope in (DAY, Scope(at(0), at(10 * BUCKETS))):
        rows = drawn(lake, scope)
        assert {r["outcome"] for r in rows} == {"accepted"}
        assert {(r["client_id"], r["value"]) for r in rows} == {("old", 2), ("old", 3), ("new", 40)}


def test_repeats_of_one_offset_keep_the_first_and_the_last_and_say_how_many(tmp_path: Path) -> None:
    with opened(tmp_path, {OFFSET_TIMELINE.full_name: [commit(n, 24, "stale") for n in range(60)]}) as connection:
        rows = drawn(connection, Scope(at(0), at(100 * BUCKETS)))
    assert [(r["ts"], r["value"], r["n"], r["exchange_id"]) for r in rows] == [
        (at(0), 24, 60, "e0"),
        (at(59), 24, 60, "e59"),
    ]


def test_the_ends_of_very_many_commits_are_drawn(tmp_path: Path) -> None:
    many = [commit(n, n, f"c{n % 5}", error_name="NONE") for n in range(4000)]
    with opened(tmp_path, {OFFSET_TIMELINE.full_name: many}) as connection:
        rows = drawn(connection, Scope(at(0), at(3999)))
    assert (rows[0]["value"], rows[-1]["value"]) == (0, 3999)
    assert 0.9 * offsets.POINTS < len(rows) <= 1.1 * offsets.POINTS


def test_members_of_one_client_id_are_told_apart_and_those_beyond_the_palette_are_others(tmp_path: Path) -> None:
    rows = [commit(n, n, "worker", member_id=f"worker-{n % 9}") for n in range(90)]
    with opened(tmp_path, {OFFSET_TIMELINE.full_name: rows}) as connection:
        shown = offsets.offsets(connection, DAY, ORDERS)
    assert shown is not None
    assert shown.labels == [*(f"worker …rker-{n}" for n in range(MEMBERS)), OTHERS]
    labels = [shown.label(r["client_id"], r["member_id"]) for r in shown.commits.to_pylist()]
    assert labels.count(OTHERS) == 3 * 10


def test_a_closer_look_keeps_the_colours(tmp_path: Path) -> None:
    rows = [*(commit(n, n, "busy") for n in range(20)), *(commit(30 + n, n, "quiet") for n in range(5))]
    rows.append(commit(31.5, 1, "busy"))
    with opened(tmp_path, {OFFSET_TIMELINE.full_name: rows}) as connection:
        whole, closer = (offsets.offsets(connection, scope, ORDERS) for scope in (DAY, Scope(at(30), at(40))))
    assert whole is not None
    assert closer is not None
    assert whole.labels == closer.labels == ["busy", "quiet"]


def test_commits_are_distinguished_by_their_outcome(tmp_path: Path) -> None:
    kinds = ["committed", "commit_rejected", "txn_committed", "txn_commit_rejected", "txn_applied", "txn_discarded"]
    rows = [
        commit(n, n, "c", kind=kind, error_name="ILLEGAL_GENERATION" if "rejected" in kind else "NONE")
        for n, kind in enumerate(kinds)
    ]
    with opened(tmp_path, {OFFSET_TIMELINE.full_name: rows}) as connection:
        outcomes = [(r["outcome"], r["error_name"] == "NONE") for r in drawn(connection, DAY)]
        (who,) = committers(connection, DAY, ORDERS)
    assert outcomes == [
        ("accepted", True), ("rejected", False), ("pending", True), ("rejected", False), ("accepted", True),
        ("aborted", True),
    ]  # fmt: skip
    assert (who["accepted"], who["rejected"], who["pending"]) == (2, 2, 1)
    assert (who["first_offset"], who["last_offset"], who["errors"]) == (0, 5, ["ILLEGAL_GENERATION"])


def test_fetch_positions_are_those_of_fetches(tmp_path: Path) -> None:
    rows = [
        event(1, kind="fetched", fetch_position=7, client_id="c"),
        event(2, kind="committed", fetch_position=9, client_id="c"),
    ]
    with opened(tmp_path, {OFFSET_TIMELINE.full_name: rows}) as connection:
        found = offsets.positions(connection, DAY, ORDERS).to_pylist()
    assert found == [{"client_id": "c", "ts": at(1), "value": 7}]


def test_an_open_transaction_is_named_by_the_batch_where_the_last_stable_offset_stands(tmp_path: Path) -> None:
    def fetched(seconds: float, offset: int, high: int) -> dict[str, Any]:
        return event(seconds, kind="fetched", group_id="", high_watermark=high, **stable(seconds, offset, high))

    batch = {"cluster": "k", "topic": "orders", "base_offset": 14, "is_transactional": True, "producer_id": 9}
    tables = {
        OFFSET_TIMELINE.full_name: [fetched(1, 14, 14), fetched(2, 14, 20), fetched(3, 14, 39), fetched(7, 40, 40)],
        RECORD_BATCHES.full_name: [row(RECORD_BATCHES, ts=at(1.5), source="produce", **batch)],
        TRANSACTIONS.full_name: [
            row(TRANSACTIONS, cluster="k", producer_id=9, transactional_id="pay", client_id="till", first_ts=at(1))
        ],
    }
    with opened(tmp_path, tables) as connection:
        (hold,) = offsets.held(connection, DAY, ORDERS)
    assert (hold.since, hold.until, hold.offsets, hold.is_over) == (at(2), at(7), 25, True)
    assert hold.producer == "transaction pay of till"


def test_a_last_stable_offset_that_is_older_than_the_high_watermark_shows_no_transaction(tmp_path: Path) -> None:
    rows = [
        event(1, kind="fetched", group_id="", high_watermark=14, **stable(1, 14, 14)),
        event(2, kind="produced", group_id="", high_watermark=39, **stable(1, 14, 14)),
        event(3, kind="fetched", high_watermark=39, **stable(1, 14, 14)),  # an old client, or a session without news
        event(4, kind="listed", group_id="", high_watermark=39, **stable(4, 20, None)),  # read_committed: alone
        event(5, kind="fetched", high_watermark=39, **stable(4, 20, None)),
    ]
    with opened(tmp_path, {OFFSET_TIMELINE.full_name: rows}) as connection:
        assert offsets.held(connection, DAY, ORDERS) == []


def test_a_rebalance_begins_with_the_first_member_that_is_told_and_ends_with_the_last_assignment(
    tmp_path: Path,
) -> None:
    def stated(seconds: float, kind: str, generation: int, member: str, error: str = "NONE") -> dict[str, Any]:
        return row(
            STATE_EVENTS, exchange_id=f"{kind}{seconds}", ts=at(seconds), cluster="k", group_id="g", kind=kind,
            group_protocol="classic", generation=generation, member_id=member, error_name=error,
            error_code=0 if error == "NONE" else 27,
        )  # fmt: skip

    tables = {
        STATE_EVENTS.full_name: [
            stated(1, "heartbeat", 3, "a"),
            stated(2, "heartbeat", 3, "a", "REBALANCE_IN_PROGRESS"),
            stated(4, "join", 4, "a"),
            stated(5, "join", 4, "b"),
            stated(6, "assignment", 4, "a"),
            stated(9, "assignment", 4, "b"),
            stated(50, "assignment", 4, "b"),  # stated again
        ]
    }
    with opened(tmp_path, tables) as connection:
        found = offsets.rebalances(connection, DAY, ORDERS)
    assert found == [{"generation": 4, "began": at(2), "ended": at(9), "members": 2}]


def test_losses_are_those_of_connections_that_spoke_of_the_partition_or_the_group(tmp_path: Path) -> None:
    def lost(seconds: float, connection: str, count: int) -> dict[str, Any]:
        return row(GAPS, ts=at(seconds), connection_id=connection, bytes_lost=count, seq=int(seconds))

    tables = {
        GAPS.full_name: [
            lost(3, "reads", 100),
            lost(3.2, "coordinates", 50),
            lost(9, "elsewhere", 7),
            lost(400, "reads", 1),
        ],
        OFFSET_TIMELINE.full_name: [commit(1, 5, "c", exchange_id="e1")],
        EXCHANGES.full_name: [
            row(EXCHANGES, exchange_id=e, connection_id=c) for e, c in (("e1", "reads"), ("e2", "elsewhere"))
        ],
        STATE_EVENTS.full_name: [row(STATE_EVENTS, connection_id="coordinates", cluster="k", group_id="g", ts=at(1))],
    }
    with opened(tmp_path, tables) as connection:
        (found,) = offsets.losses(connection, DAY, ORDERS)
    assert (found["began"], found["bytes_lost"], found["losses"], found["connections"]) == (at(3), 150, 2, 2)


def test_a_lake_without_tables_of_groups_or_losses_still_has_a_picture(tmp_path: Path) -> None:
    write(tmp_path, OFFSET_TIMELINE, [commit(1, 5, "c"), event(2, kind="fetched", high_watermark=5, **stable(2, 1, 5))])
    with connect(tmp_path) as connection:
        shown = offsets.offsets(connection, DAY, ORDERS)
    assert shown is not None
    assert (shown.labels, shown.owners, shown.losses, shown.rebalances) == (["c"], [], [], [])
    assert [hold.producer for hold in shown.held] == ["a producer not seen"]
