"""The timeline: what is carried forward, what a commit moves, how lag is counted, and refreshing by the hour."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from delta.tables import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from pipeline.analysis.cluster_catalog import ClusterCatalog, Fact
from pipeline.streaming.gold.timeline import refresh_timeline, windows
from pipeline.streaming.storage.lake import Lake, read_table
from pipeline.streaming.storage.lake_io import FEW_ROWS, LakeIO
from pipeline.tables import OFFSET_EVENTS, OFFSET_SNAPSHOTS, OFFSET_TIMELINE, RECORD_BATCHES, STATE_EVENTS
from tests.pipeline.streaming.gold.statements import (
    APP,
    READER,
    SERVER,
    WEEK,
    Row,
    at,
    beat,
    begun,
    committed,
    content,
    ended,
    event,
    fetched,
    marker,
    new_lake,
    produced,
    put,
    us,
)

pytestmark = pytest.mark.spark

MAX, MIN = 2**63 - 1, -(2**63)
OLD, NEW = "AAAAAAAAAAAAAAAAAAAAAQ", "AAAAAAAAAAAAAAAAAAAAAg"
WHERE = [FEW_ROWS, pytest.param(-1, marks=pytest.mark.proof)]
"""Rows that are derived in this process; the others by Spark's workers."""


def test_windows_are_whole_slots() -> None:
    assert windows([], 0, 10) == [(0, None)]
    assert windows([(0, 4), (1, 4), (2, 4), (3, 99), (4, 1)], 0, 8) == [(0, 2), (2, 3), (3, 4), (4, None)]
    assert windows([(5, 100), (6, 1)], 3, 8) == [(3, 6), (6, None)]


HEARTBEAT = beat(0)
_TRANSACTION = {"transactional_id": "tx", "producer_id": 7, "client": APP, "client_id": "app"}
_LISTED = {"kind": "listed", "client": READER, "client_id": "reader"}

SCENARIOS: dict[str, tuple[list[Row], list[Row], list[Row]]] = {
    "group": (
        [
            produced(1, 0, 10),
            fetched(2, 0, 10, 10, last_stable_offset=10, log_start_offset=0),
            committed(3, 4),
            produced(4, 10, 20),
            committed(5, 3, "commit_rejected", error_code=22, error_name="ILLEGAL_GENERATION"),
            fetched(6, 10, None, None),
            committed(7, 20),
        ],
        [HEARTBEAT],
        [],
    ),
    "ahead": ([fetched(1, 0, 5, 5), committed(2, 8)], [HEARTBEAT], []),
    "two groups": ([fetched(1, 0, 5, 5)], [HEARTBEAT, beat(1, "other")], []),
    "connection": (
        [fetched(1, 0, 5, 5)],
        [beat(0, client=READER), beat(1, "h")],
        [],
    ),
    "follower": ([fetched(1, 3, None, 5, isolation_level=None)], [HEARTBEAT], []),
    "listed": (
        [
            event(1, offset=9, list_timestamp=-1, isolation_level="read_uncommitted", **_LISTED),
            event(2, offset=7, list_timestamp=-1, isolation_level="read_committed", **_LISTED),
            event(3, offset=2, list_timestamp=-2, isolation_level="read_uncommitted", **_LISTED),
            event(4, offset=5, list_timestamp=1234, isolation_level="read_uncommitted", **_LISTED),
        ],
        [],
        [],
    ),
    "transaction": (
        [
            committed(1, 5),
            committed(2, 8, "txn_committed", **_TRANSACTION),
            committed(4, 9, "txn_committed", **_TRANSACTION),
            fetched(4.5, 0, 9, 10, group_id="g"),
            fetched(6, 0, 10, 10, group_id="g"),
            committed(7, 15, "txn_committed", **_TRANSACTION),
            committed(9, 11, "txn_committed", **_TRANSACTION),
            committed(9.5, 12, "txn_committed", **_TRANSACTION),
        ],
        [ended(3, committed=True), ended(5, committed=False), begun(8), ended(10, committed=True)],
        [],
    ),
    "hostile": (
        [
            produced(1, MAX - 2, MAX),
            fetched(2, 0, MAX, MAX, last_stable_offset=0),
            committed(3, 0),
            committed(4, MAX),
            produced(5, 0, 1),
            fetched(6, MAX, None, 0, last_stable_offset=MAX),
            event(7, offset=MIN, list_timestamp=-1, isolation_level="read_uncommitted", **_LISTED),
            committed(8, MIN),
            committed(9, MAX),
        ],
        [HEARTBEAT],
        [marker(2, MAX), marker(2.5, 0), marker(2.7, MIN)],
    ),
    "renewed": (
        [
            fetched(1, 0, 90, 100),
            committed(2, 90),
            fetched(4, 90, None, None, topic_id=OLD),  # a client that does not know yet
            fetched(5, 0, 3, 5, topic_id=NEW),
            fetched(6, 3, None, None),
            committed(7, 3),
        ],
        [HEARTBEAT],
        [],
    ),
    "markers": (
        [
            produced(1, 0, 4),
            fetched(2, 0, 5, 5, last_stable_offset=5),
            produced(3, 5, 9),
            committed(4, 4),
            committed(5, 2),
        ],
        [HEARTBEAT],
        [marker(2, 4)],
    ),
}
"""Each plays in a cluster, and on hosts, of its own."""


def moved(rows: Sequence[Row], name: str) -> list[Row]:
    """The rows in the cluster ``name``."""
    host = f"10.1.{list(SCENARIOS).index(name)}."

    def value(key: str, old: Any) -> Any:
        if key == "cluster":
            return name
        if key == "exchange_id":
            return f"{name}/{old}"
        return old.replace("10.0.0.", host) if isinstance(old, str) else old

    return [{key: value(key, old) for key, old in one.items()} for one in rows]


@pytest.fixture(scope="module", params=WHERE)
def lines(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> dict[str, list[Any]]:
    """The timeline of each scenario, all refreshed at once."""
    lake = new_lake(spark, tmp_path_factory.mktemp("lake"))
    catalog = ClusterCatalog()
    for name, (events, states, batches) in SCENARIOS.items():
        put(lake, OFFSET_EVENTS, moved(events, name))
        put(lake, STATE_EVENTS, moved(states, name))
        put(lake, RECORD_BATCHES, moved(batches, name))
        server = moved([{"server": SERVER}], name)[0]["server"]
        catalog = catalog.merged([Fact(server, name, None, None, 1, 1)])
    made = [Fact(SERVER, "renewed", OLD, "t", us(1), us(1)), Fact(SERVER, "renewed", NEW, "t", us(3), us(3))]
    catalog = catalog.merged(made)
    refresh_timeline(LakeIO(spark, lake, request.param), catalog, us(0), WEEK)
    rows = content(spark, lake)
    return {name: [r for r in rows if r.cluster == name] for name in SCENARIOS}


def test_a_group_over_time(lines: dict[str, list[Any]]) -> None:
    rows = lines["group"]
    known = [
        (r.kind, r.group_id, r.high_watermark, r.committed_offset, r.fetch_position, r.lag, r.lag_seconds) for r in rows
    ]
    assert known == [
        ("produced", "", 10, None, None, None, None),
        ("fetched", "g", 10, None, 10, None, None),
        ("committed", "g", 10, 4, 10, 6, 2.0),  # the oldest record not committed was produced at 1
        ("produced", "", 20, None, None, None, None),
        ("commit_rejected", "g", 20, 4, 10, 16, 4.0),  # what is refused moves nothing
        ("fetched", "g", 20, 4, 10, 16, 5.0),
        ("committed", "g", 20, 20, 10, 0, 0.0),
    ]
    assert [r.log_start_offset for r in rows] == [None, 0, 0, 0, 0, 0, 0]
    assert rows[2].lag_read_committed == 6


def test_lag_is_never_negative(lines: dict[str, list[Any]]) -> None:
    assert [r.lag for r in lines["ahead"]] == [None, 0]


def test_a_client_of_two_groups_fetches_for_none(lines: dict[str, list[Any]]) -> None:
    assert [r.group_id for r in lines["two groups"]] == [""]


def test_the_connection_names_the_group_where_the_client_id_does_not(lines: dict[str, list[Any]]) -> None:
    assert [r.group_id for r in lines["connection"]] == ["g"]


def test_a_follower_is_no_reader(lines: dict[str, list[Any]]) -> None:
    (only,) = lines["follower"]
    assert (only.group_id, only.fetch_position, only.high_watermark) == ("", None, 5)


def test_listed_offsets_state_the_log(lines: dict[str, list[Any]]) -> None:
    last = lines["listed"][-1]
    assert (last.high_watermark, last.last_stable_offset, last.log_start_offset) == (9, 7, 2)
    assert (last.last_stable_ts.replace(tzinfo=timezone.utc), last.last_stable_high_watermark) == (at(2), None)


def test_a_transaction_commits_its_offsets_when_it_ends(lines: dict[str, list[Any]]) -> None:
    assert [(r.kind, r.committed_offset, r.pending_offset) for r in lines["transaction"]] == [
        ("committed", 5, None),
        ("txn_committed", 5, 8),
        ("txn_applied", 8, None),
        ("txn_committed", 8, 9),
        ("fetched", 8, 9),
        ("txn_discarded", 8, None),
        ("fetched", 8, None),
        ("txn_committed", 8, 15),
        ("txn_discarded", 8, None),  # its process died, the next one started over
        ("txn_committed", 8, 11),
        ("txn_committed", 8, 12),
        ("txn_applied", 12, None),
    ]


def test_markers_are_no_lag(lines: dict[str, list[Any]]) -> None:
    assert [(r.lag, r.lag_read_committed, r.lag_seconds) for r in lines["markers"] if r.kind == "committed"] == [
        (4, None, 1.0),  # 5..8; the marker at 4 is no record. What was stable before them says nothing of them
        (6, None, 4.0),
    ]


def test_offsets_at_the_ends_of_64_bits_are_no_error_and_no_negative_lag(lines: dict[str, list[Any]]) -> None:
    rows = lines["hostile"]
    assert len(rows) == 9
    lags = [(r.lag, r.lag_read_committed) for r in rows if r.kind == "committed"]
    assert lags[:2] == [(MAX - 1, 0), (0, 0)]
    assert all(lag is None or lag >= 0 for pair in lags for lag in pair)


def test_a_topic_made_anew_begins_with_nothing_known(lines: dict[str, list[Any]]) -> None:
    known = [(r.incarnation, r.high_watermark, r.committed_offset, r.lag) for r in lines["renewed"]]
    assert known == [
        (0, 100, None, None),
        (0, 100, 90, 10),
        (0, 100, 90, 10),
        (1, 5, None, None),
        (1, 5, None, None),
        (1, 5, 3, 2),
    ]


@pytest.mark.proof
@pytest.mark.parametrize("few", WHERE)
def test_hours_one_by_one_give_the_same_as_all_at_once(spark: SparkSession, tmp_path: Path, few: int) -> None:
    lake, whole = new_lake(spark, tmp_path / "hours"), new_lake(spark, tmp_path / "whole")
    begins = [600 + n * 3600.0 for n in range(3)]
    first, second, third = begins
    events = [
        [
            produced(first + 1, 0, 10),
            fetched(first + 2, 0, 10, 10),
            committed(first + 3, 4),
            produced(first + 4, 10, 12),
        ],
        [committed(second + 1, 6), fetched(second + 2, 10, None, None), committed(second + 3, 5, "commit_rejected")],
        [fetched(third + 1, 10, 13, 13), committed(third + 2, 12)],
    ]
    beats = [beat(begin) for begin in begins]
    markers = [marker(third + 1, 12)]
    for number, of_hour in enumerate(events):
        put(lake, OFFSET_EVENTS, of_hour)
        put(lake, STATE_EVENTS, [beats[number]])
        put(lake, RECORD_BATCHES, markers if number == 2 else [])
        refresh_timeline(LakeIO(spark, lake, few), ClusterCatalog(), us(begins[number]), WEEK)
    put(whole, OFFSET_EVENTS, [e for of_hour in events for e in of_hour])
    put(whole, STATE_EVENTS, beats)
    put(whole, RECORD_BATCHES, markers)
    refresh_timeline(LakeIO(spark, whole, few), ClusterCatalog(), us(0), WEEK)
    assert content(spark, lake) == content(spark, whole)
    last = content(spark, lake)[-1]
    assert (last.committed_offset, last.high_watermark, last.lag) == (12, 13, 0)
    assert [r.lag_seconds for r in content(spark, lake) if r.exchange_id == f"e{second + 1:09.1f}"] == [3600.0]

    hours = [at(begin - 600) for begin in begins]
    assert noted_hours(spark, lake) == {hours[1], hours[2]}
    for place, since in ((lake, second), (whole, 0)):
        put(place, OFFSET_EVENTS, [produced(second + 0.5, 12, 14)])
        refresh_timeline(LakeIO(spark, place, few), ClusterCatalog(), us(since), WEEK)
    assert noted_hours(spark, lake) == {hours[1]}, "what was known in the third hour is another now"
    refresh_timeline(LakeIO(spark, lake, few), ClusterCatalog(), us(third), WEEK)
    assert content(spark, lake) == content(spark, whole)
    assert noted_hours(spark, lake) == {hours[1], hours[2]}
    DeltaTable.forPath(spark, lake.path(OFFSET_TIMELINE)).delete(F.col("ts") < F.lit(hours[2]))
    refresh_timeline(LakeIO(spark, lake, few), ClusterCatalog(), us(third), WEEK)
    of_third = [r for r in content(spark, whole) if r.ts >= hours[2].replace(tzinfo=None)]
    assert content(spark, lake) == of_third, "earlier hours were read again"


@pytest.mark.parametrize("few", [20, pytest.param(-1, marks=pytest.mark.proof)])
def test_windows_amid_an_hour_give_the_same_as_all_at_once(spark: SparkSession, tmp_path: Path, few: int) -> None:
    whole, cut = new_lake(spark, tmp_path / "whole"), new_lake(spark, tmp_path / "windows")
    minutes = range(0, 84, 6)  # of two hours
    events = [e for n, minute in enumerate(minutes) for e in (
        produced(minute * 60 + 1, 10 * n, 10 * n + 9),
        fetched(minute * 60 + 2, 10 * n, 10 * n + 9, 10 * n + 9),
        committed(minute * 60 + 3, 10 * n - 15) if n > 1 else committed(minute * 60 + 3, 0),
    )]  # fmt: skip
    markers = [marker(minute * 60 + 1.5, 10 * n + 9) for n, minute in enumerate(minutes)]
    states = [beat(40 * 60.0)]
    for lake in (whole, cut):
        put(lake, OFFSET_EVENTS, events)
        put(lake, RECORD_BATCHES, markers)
        put(lake, STATE_EVENTS, states)
    refresh_timeline(LakeIO(spark, whole), ClusterCatalog(), us(0), WEEK)
    refresh_timeline(LakeIO(spark, cut, few), ClusterCatalog(), us(0), WEEK, rows_at_once=16)
    assert content(spark, cut) == content(spark, whole)
    assert {r.group_id for r in content(spark, cut) if r.kind == "fetched"} == {"g"}, "also before the beat"
    assert any(r.lag_seconds and r.lag and r.lag < 24 for r in content(spark, whole))


def noted_hours(spark: SparkSession, lake: Lake) -> set[datetime]:
    return {r.hour.replace(tzinfo=timezone.utc) for r in read_table(spark, lake, OFFSET_SNAPSHOTS).collect()}


@pytest.mark.parametrize("few", WHERE)
def test_an_hour_knows_what_is_stated_until_five_minutes_after_it(
    spark: SparkSession, tmp_path: Path, few: int
) -> None:
    lake = new_lake(spark, tmp_path)
    end = 3600.0
    events = [
        fetched(end - 10, 0, 5, 5),
        committed(end - 9, 4),
        fetched(end - 8, 0, 5, 5, client="10.0.0.7:1", client_id="later"),
    ]
    put(lake, OFFSET_EVENTS, [*events, produced(end - 7, 5, 6)])
    refresh_timeline(LakeIO(spark, lake, few), ClusterCatalog(), us(end - 10), WEEK)
    assert [(r.group_id, r.lag) for r in content(spark, lake)] == [("", None), ("g", 1), ("", None), ("", None)]

    put(lake, STATE_EVENTS, [beat(end + 299), beat(end + 301, client_id="later", client="10.0.0.7:2")])
    put(lake, RECORD_BATCHES, [marker(end + 299, 4)])
    refresh_timeline(LakeIO(spark, lake, few), ClusterCatalog(), us(end + 299), WEEK)
    assert [(r.group_id, r.lag) for r in content(spark, lake)] == [("g", None), ("g", 0), ("", None), ("", None)]


@pytest.mark.parametrize("few", WHERE)
def test_a_request_names_its_clients_group_for_six_hours_more(spark: SparkSession, tmp_path: Path, few: int) -> None:
    lake = new_lake(spark, tmp_path)
    hour = 3600.0
    put(lake, STATE_EVENTS, [beat(hour / 2)])
    put(lake, OFFSET_EVENTS, [fetched(n * hour + 600, n, n + 1, n + 1) for n in (-1, 0, 1, 6, 7)])
    refresh_timeline(LakeIO(spark, lake, few), ClusterCatalog(), us(-hour), WEEK)
    assert [r.group_id for r in content(spark, lake)] == ["", "g", "g", "g", ""]
    refresh_timeline(LakeIO(spark, lake, few), ClusterCatalog(), us(6 * hour + 600), WEEK)
    assert [r.group_id for r in content(spark, lake)] == ["", "g", "g", "g", ""]
