"""What pymongo's command monitoring reported of the recorded sessions is what the tables hold, row by row."""

from __future__ import annotations

import json
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from pipeline.capture.runs.reading import read_capture
from pipeline.config.settings import StreamSettings
from pipeline.dashboard.sql import query
from pipeline.streaming.job import run_backfill, run_stream
from pipeline.streaming.queries import StreamError
from pipeline.streaming.silver import mongo
from pipeline.streaming.storage.lake_io import LakeIO
from pipeline.tables import MONGO_COMMANDS, TABLES
from tests.captures.mongodb.exchanges import UNTOLD, is_silent, told, truth
from tests.captures.mongodb.record import ALL, HERE, RECORDINGS
from tests.pipeline.rows import copy_gaps, landed_frames
from tests.pipeline.streaming.test_job import failing
from tests.scenarios import lost_streams, mongodb, troubled_mongodb

pytestmark = pytest.mark.spark

Row = dict[str, Any]
_BOTH = """
SELECT x, m FROM exchanges_with_bodies AS x JOIN silver.mongo_commands AS m ON x.exchange_id = m.exchange_id
WHERE x.agent_id = '{}'
"""
_PIECES = 4
DRIVER = ("PyMongo|c", "4.20.0|")
"""Name and version as the recorded clients state them: with C extensions, which have no version of their own."""


@pytest.fixture(scope="module")
def landing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All recordings, each by an agent of its name."""
    folder = tmp_path_factory.mktemp("mongodb")
    for name in ALL:
        read_capture([HERE / f"{name}.pcap"], folder, agent_id=name)
    return folder


@pytest.fixture(scope="module")
def lake(spark: SparkSession, landing: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    lake = tmp_path_factory.mktemp("whole") / "lake"
    run_stream(landing, lake, once=True, spark=spark)
    return lake


def rows(lake: Path, sql: str) -> list[Row]:
    found: list[Row] = query(lake, sql).to_pylist()
    return found


@pytest.mark.parametrize("name", ALL)
def test_each_command_that_monitoring_reported_is_a_row_of_the_same_content(lake: Path, name: str) -> None:
    found = [(r["x"], r["m"]) for r in rows(lake, _BOTH.format(name))]
    alone = {m["reply_to"]: (x, m) for x, m in found if x["status"] == "following_response"}
    asked = {m["request_id"]: (x, m) for x, m in found if x["status"] != "following_response"}
    assert len(alone) + len(asked) == len(found)
    compared = equal = 0
    last_reply = None
    for event in truth(HERE / f"{name}.pcap"):
        # Each reply of an exhaust cursor is reported as a command, which was not sent.
        row = asked.pop(event["request_id"], None) or alone.pop(last_reply)
        compared += 1
        equal += _answers_as(event, *row) if "raw" in event else _is_equal(event, *row)
        last_reply = _reply_id(row[0])
    print(f"{name}: {compared} commands compared, {equal} equal")
    assert compared == equal > 20
    assert not alone
    assert {m["command"] for _, m in asked.values()} <= UNTOLD


def _reply_id(exchange: Row) -> int | None:
    return None if exchange["response_header"] is None else json.loads(exchange["response_header"])["requestID"]


def _answers_as(event: Row, exchange: Row, command: Row) -> bool:
    """What a plain socket sent and got."""
    reply_id = _reply_id(exchange)
    got = {"raw": command["opcode"], "reply_ids": [] if reply_id is None else [reply_id]}
    if "cursor" in event:
        body = json.loads(exchange["response_body"])
        got |= {"cursor": body["cursorID"], "returned": len(body["documents"])}
        failed = [command["error_code"]] if command["error_code"] is not None else []
        assert exchange["error_codes"] == failed
    assert got == {name: event[name] for name in got}
    return got == {name: event[name] for name in got}


def _is_equal(event: Row, exchange: Row, command: Row) -> bool:
    reply = event.get("reply") or event.get("failure")
    codes = {error["code"] for error in reply.get("writeErrors", [])} | ({reply["code"]} if not reply["ok"] else set())
    wanted = told(event) | {"status": "paired", "error_codes": sorted(codes), "api_name": event["command"]}
    if is_silent(event):
        wanted |= {"ok": None, "write_errors": None, "status": "no_response_expected", "error_codes": None}
    elif exchange["status"] == "following_response":
        wanted |= {"status": "following_response", "api_name": None}
    else:
        assert 0 <= command["latency_us"] <= event["duration_us"]
        assert command["latency_us"] == exchange["latency_us"]
    got = {name: (command | exchange)[name] for name in wanted}
    assert got == wanted, event["document"]
    names = exchange["error_names"]
    assert (names is None) == (exchange["error_codes"] is None)
    assert names is None or reply.get("codeName", command["error_name"]) in (*names, None)
    assert (command["driver"], command["driver_version"]) == DRIVER
    return got == wanted


def test_compression_is_shown_and_the_handshake_is_not_compressed(lake: Path) -> None:
    for name, compressor in RECORDINGS.items():
        found = rows(lake, _BOTH.format(name))
        assert {r["m"]["compressor"] for r in found} == {None, compressor}, name
        assert {r["x"]["api_key"] for r in found if r["m"]["compressor"]} <= {2012}, name


def test_every_minute_adds_up(lake: Path) -> None:
    wanted = rows(
        lake,
        "SELECT command, coalesce(database || '.' || collection, database) AS namespace, application, count(*) AS n, "
        "count_if(error_code IS NOT NULL) AS e, sum(coalesce(documents_out, 0)) AS d, max(latency_us) AS l "
        "FROM silver.mongo_commands GROUP BY ALL",
    )
    counted = rows(
        lake,
        "SELECT command, namespace, application, sum(commands) AS n, sum(errors) AS e, sum(documents_out) AS d, "
        "max(max_us) AS l FROM gold.mongo_commands GROUP BY ALL",
    )
    assert sorted(counted, key=repr) == sorted(wanted, key=repr)
    is_ordered = "bool_and(p50_us <= p95_us AND p95_us <= p99_us AND p99_us <= max_us) AS o"
    assert rows(lake, f"SELECT {is_ordered} FROM gold.mongo_commands") == [{"o": True}]


def test_applications_and_drivers_are_clients(lake: Path) -> None:
    found = rows(lake, "SELECT cluster, client_id, software FROM gold.clients WHERE protocol = 'mongodb'")
    driver = [" ".join(DRIVER).rstrip("|")]
    troubled = {"archive", "reports", "checkout", "importer", "dashboards"}
    of_streams = {"audit", "search-index", "invoices", "receipts", "shop", "mirror"}
    assert {(r["cluster"], r["client_id"], *r["software"]) for r in found} == {
        ("127.0.0.1:27017", "shop", *driver),
        ("127.0.0.1:27017", "ledger", "plain socket 1"),
        *((f"{troubled_mongodb.HOST}:27017", name, *driver) for name in troubled),
        *((f"{lost_streams.HOST}:27017", name, *driver) for name in of_streams),
    }


def test_what_is_in_trouble_is_found_and_nothing_else(lake: Path) -> None:
    found = {(r["cluster"], r["rule"], r["subject"]) for r in rows(lake, "FROM gold.findings")}
    assert found == {
        *(("127.0.0.1:27017", *pair) for pair in mongodb.FINDINGS),
        *(
            (f"{scenario.HOST}:27017", *pair)
            for scenario in (troubled_mongodb, lost_streams)
            for pair in scenario.FINDINGS
        ),
    }


@pytest.fixture(scope="module")
def in_pieces(spark: SparkSession, landing: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same frames in some files, of which each batch reads one; the first comes last, with most handshakes.

    The job is stopped after each of its writes about MongoDB.
    """
    folder = tmp_path_factory.mktemp("pieces")
    frames = landed_frames(landing).sort_by("ts")
    copy_gaps(landing, folder / "landing")
    size = -(-frames.num_rows // _PIECES)
    settings = StreamSettings(max_files_per_trigger=1, max_frames_files_per_trigger=1)
    crashes = [(LakeIO, "append", 1), (LakeIO, "append", 2), (mongo, "_name_earlier", 1), None]
    for number, crash in zip(reversed(range(_PIECES)), crashes, strict=True):
        target = folder / "landing" / "date=2026-01-01" / f"piece-{number}.parquet"
        target.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(frames.slice(number * size, size), target)
        run = partial(run_stream, folder / "landing", folder / "lake", once=True, spark=spark, settings=settings)
        if crash is None:
            run()
        else:
            owner, name, call = crash
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(owner, name, failing(getattr(owner, name), call))
                with pytest.raises(StreamError, match="pulled the plug"):
                    run()
    return folder / "lake"


@pytest.mark.proof
@pytest.mark.parametrize("name", [name for name in TABLES if not name.startswith("ops.")])
def test_batch_after_batch_gives_the_same_as_all_at_once(lake: Path, in_pieces: Path, name: str) -> None:
    whole, pieces = rows(lake, f"FROM {name}"), rows(in_pieces, f"FROM {name}")
    assert sorted(pieces, key=repr) == sorted(whole, key=repr)


@pytest.mark.proof
def test_a_backfill_gives_what_the_stream_gave(spark: SparkSession, lake: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(lake, tmp_path / "lake"))
    spark.sql(f"UPDATE delta.`{copy / MONGO_COMMANDS.path}` SET command = 'damaged', application = NULL")
    days = [r["date"] for r in rows(lake, "SELECT DISTINCT date FROM bronze.frames ORDER BY date")]
    run_backfill(copy, days[0], days[-1], recode=True, spark=spark)
    for name in ("silver.exchanges", "silver.mongo_handshakes", "silver.mongo_commands", "gold.mongo_commands"):
        assert sorted(rows(copy, f"FROM {name}"), key=repr) == sorted(rows(lake, f"FROM {name}"), key=repr)
