"""Groups, transactions, fetch sessions and topics rebuilt from a recorded capture: what clients report they did."""

from __future__ import annotations

import itertools
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from pipeline.capture.runs.reading import read_capture
from pipeline.dashboard.sql import query
from pipeline.streaming.job import run_stream
from pipeline.tables import TABLES
from tests.paths import ROOT
from tests.pipeline.rows import landed_frames

pytestmark = pytest.mark.spark

CAPTURE = ROOT / "tests" / "captures" / "changing_hands.pcap"
TRUTH: dict[str, Any] = json.loads(CAPTURE.with_suffix(".truth.json").read_text())
LOGGING_GROUPS = {e["group"] for e in TRUTH["events"] if e["kind"] == "assigned"}


def events(*kinds: str, **wanted: Any) -> list[dict[str, Any]]:
    return [e for e in TRUTH["events"] if e["kind"] in kinds and all(e.get(k) == v for k, v in wanted.items())]


@pytest.fixture(scope="module")
def landed(tmp_path_factory: pytest.TempPathFactory) -> pa.Table:
    folder = tmp_path_factory.mktemp("landing")
    read_capture([CAPTURE], folder)
    return landed_frames(folder).sort_by("ts")


def land(frames: pa.Table, folder: Path, name: str) -> None:
    target = folder / "date=2026-01-01" / f"{name}.parquet"
    target.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(frames, target)


@pytest.fixture(scope="module")
def lake(spark: SparkSession, landed: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("state")
    land(landed, folder / "landing", "whole")
    run_stream(folder / "landing", folder / "lake", once=True, spark=spark)
    return folder / "lake"


def rows(lake: Path, sql: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = query(lake, sql).to_pylist()
    return found


def test_every_assignment_that_a_client_logged_is_known_and_no_other(lake: Path) -> None:
    logged = {(e["group"], e["client_id"], e["topic"], e["partition"]) for e in events("assigned")}
    known = rows(
        lake,
        "SELECT DISTINCT group_id, client_id, topic, partition FROM silver.assignments WHERE partition IS NOT NULL",
    )
    assert {tuple(r.values()) for r in known if r["group_id"] in LOGGING_GROUPS} == logged
    assert {r["group_protocol"] for r in rows(lake, "FROM silver.assignments WHERE group_id = 'counters'")} == {
        "consumer"
    }


def test_a_partition_has_one_owner_at_a_time_and_it_is_the_one_that_claims_it(lake: Path) -> None:
    owned = rows(lake, "FROM partition_owners WHERE group_id = 'counters' AND partition = 1 ORDER BY owned_from")
    assert [r["client_id"] for r in owned] == ["counter-1", "counter-2", "counter-1", "counter-3"]
    assert all(before["owned_until"] <= after["owned_from"] for before, after in itertools.pairwise(owned))
    changes = [e["ts_ms"] for e in events("assigned", group="counters", partition=1)]
    for row, change in zip(owned, changes, strict=True):
        assert abs(row["owned_from"].timestamp() * 1000 - change) < 1500  # the client logs when its poll returns


def test_transactions_end_as_their_producer_states(lake: Path) -> None:
    found = rows(lake, "FROM silver.transactions ORDER BY first_ts")
    ended = ["committed" if e["kind"] == "txn_commit" else "aborted" for e in events("txn_commit", "txn_abort")]
    assert [r["state"] for r in found] == ended == ["committed", "aborted", "committed", "aborted"]
    assert {
        (r["transactional_id"], *r["partitions"], *r["groups"], r["records"], r["complete"]) for r in found[:3]
    } == {("relay-tx", "moves-0", "relays", 1, True)}
    assert [r["client_id"] for r in found] == ["relay"] * 4
    assert all(r["duration_us"] == (r["end_ts"] - r["first_ts"]) / timedelta(microseconds=1) for r in found)
    assert all(r["duration_us"] >= 300_000 for r in found[:3])


def test_a_commit_in_a_transaction_is_pending_until_its_end(lake: Path) -> None:
    sql = "SELECT kind, event_offset, committed_offset, pending_offset FROM gold.offset_timeline "
    steps = rows(lake, sql + "WHERE group_id = 'relays' AND kind LIKE 'txn_%' ORDER BY ts, exchange_id")
    assert [tuple(r.values()) for r in steps] == [
        ("txn_committed", 1, None, 1),
        ("txn_applied", 1, 1, None),
        ("txn_committed", 2, 1, 2),
        ("txn_discarded", 2, 1, None),
        ("txn_committed", 3, 1, 3),
        ("txn_applied", 3, 3, None),
    ]
    assert TRUTH["outcome"]["committed"]["relays"] == {"0": 3}


def test_a_topic_made_anew_is_another(lake: Path) -> None:
    old, new = rows(lake, "FROM silver.topics WHERE topic = 'stock' ORDER BY valid_from")
    assert [old["topic_id"], new["topic_id"]] == TRUTH["outcome"]["topic_ids"]
    assert (old["incarnation"], new["incarnation"]) == (0, 1)
    assert (old["valid_to"], new["valid_to"]) == (new["valid_from"], None)
    timeline = "FROM gold.offset_timeline WHERE topic = 'stock' AND partition = 0 AND group_id = 'counters' ORDER BY ts"
    ends = {r["incarnation"]: r for r in rows(lake, timeline)}
    assert {i: (r["high_watermark"], r["committed_offset"], r["lag"]) for i, r in ends.items()} == {
        0: (10, 10, 0),
        1: (10, 10, 0),
    }
    first = next(r for r in rows(lake, timeline) if r["incarnation"] == 1)
    assert (first["high_watermark"] or 0, first["committed_offset"]) == (0, None)


def test_a_partition_without_news_is_fetched_all_the_same(lake: Path) -> None:
    busy, quiet = rows(
        lake, "FROM silver.fetch_sessions WHERE client_id = 'watcher' ORDER BY fetches DESC, partition LIMIT 2"
    )
    assert (busy["topic"], quiet["topic"], {busy["partition"], quiet["partition"]}) == ("stock", "stock", {0, 1})
    fetched = rows(
        lake,
        "SELECT count(*) AS n FROM silver.offset_events WHERE client_id = 'watcher' AND partition = 1 "
        "AND kind = 'fetched'",
    )
    one = busy if busy["partition"] == 1 else quiet
    assert one["fetches"] > 5 * fetched[0]["n"]
    assert (one["fetch_offset"], one["complete"]) == (0, True)
    minutes = rows(lake, "SELECT bool_or(is_fetched) AS f FROM timeline_by_minute WHERE topic = 'stock'")
    assert minutes == [{"f": True}]


def test_what_clients_and_apis_did_adds_up(lake: Path) -> None:
    counted = rows(lake, "SELECT sum(exchanges) AS n, sum(errors) AS e, bool_and(p50_us <= p99_us) AS ordered "
                         "FROM gold.api_latency")  # fmt: skip
    kept = rows(
        lake, "SELECT count(*) AS n, count_if(len(error_codes) > 0) AS e, true AS ordered FROM silver.exchanges"
    )
    assert counted == kept
    software = {r["client_id"]: r["software"] for r in rows(lake, "FROM gold.clients")}
    assert software["watcher"] == ["kafka-python 3.0.12"]
    assert software["counter-1"][0].endswith("rdkafka-2.16.0")
    assert rows(lake, "SELECT sum(rows) AS n FROM ops.landing_files") == rows(
        lake, "SELECT count(*) AS n FROM bronze.frames"
    )


@pytest.fixture(scope="module")
def in_pieces(spark: SparkSession, landed: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The lake of two runs, each with a half of the frames, the later half first."""
    folder = tmp_path_factory.mktemp("pieces")
    half = landed.num_rows // 2
    for number in (1, 0):
        land(landed.slice(number * half, None if number else half), folder / "landing", f"piece-{number}")
        run_stream(folder / "landing", folder / "lake", once=True, spark=spark)
    return folder / "lake"


@pytest.mark.proof
@pytest.mark.parametrize("name", [name for name in TABLES if not name.startswith("ops.")])
def test_run_after_run_gives_the_same_as_all_at_once(lake: Path, in_pieces: Path, name: str) -> None:
    whole, pieces = rows(lake, f"FROM {name}"), rows(in_pieces, f"FROM {name}")
    assert sorted(pieces, key=repr) == sorted(whole, key=repr)


@pytest.mark.proof
def test_lost_fetches_make_a_session_incomplete(spark: SparkSession, landed: pa.Table, tmp_path: Path) -> None:
    of_watcher = pc.and_(pc.equal(landed["api_key"], 1), pc.equal(landed["api_version"], 12))
    fetches = pc.indices_nonzero(of_watcher).to_pylist()
    lost = set(fetches[10:14])
    kept = landed.filter(pa.array([i not in lost for i in range(landed.num_rows)]))
    land(kept, tmp_path / "landing", "lossy")
    run_stream(tmp_path / "landing", tmp_path / "lake", once=True, spark=spark)
    held = rows(tmp_path / "lake", "SELECT partition, complete FROM silver.fetch_sessions WHERE client_id = 'watcher'")
    assert {r["partition"] for r in held} == {0, 1}
    assert False in {r["complete"] for r in held}
