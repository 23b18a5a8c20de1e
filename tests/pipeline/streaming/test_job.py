"""The whole job over recorded captures: run again, cut into pieces, crashed, replayed, backfilled: the same tables."""

from __future__ import annotations

import json
import multiprocessing
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from pipeline.config.settings import StreamSettings
from pipeline.errors import UserError
from pipeline.streaming import queries
from pipeline.streaming.bronze.frames import write_frames
from pipeline.streaming.job import run_backfill, run_stream
from pipeline.streaming.landing.reading import LandingError
from pipeline.streaming.queries import StreamError
from pipeline.streaming.silver import batches
from pipeline.streaming.storage.lake import Lake, LakeError, create_tables, register
from pipeline.streaming.storage.lock import local_lock
from pipeline.streaming.storage.new_tables import without_spaces
from pipeline.tables import (
    EXCHANGES,
    FINDINGS,
    FRAMES,
    LANDING_FILES,
    OFFSET_TIMELINE,
    PENDING_EXCHANGES,
    STREAM_PROGRESS,
    TABLES,
)
from tests.pipeline.lakes import DATA, assert_same, last_batch, rows, versions
from tests.pipeline.rows import copy_gaps, landed_frames
from tests.scenarios import healthy, stalled_lso, stuck_commit

pytestmark = pytest.mark.spark

PIECEWISE = StreamSettings(max_files_per_trigger=1, max_frames_files_per_trigger=1)


def test_every_landed_frame_is_in_bronze_once(landing: Path, whole: Path) -> None:
    landed = landed_frames(landing).select(list(FRAMES.key)).to_pylist()
    held = [{name: r[name] for name in FRAMES.key} for r in rows(whole, FRAMES)]
    assert sorted(held, key=repr) == sorted(landed, key=repr)
    assert {r["decode_status"] for r in rows(whole, FRAMES)} <= {"ok", "truncated"}


def test_the_incidents_are_found_with_their_names_and_healthy_traffic_is_left_in_peace(whole: Path) -> None:
    found = {(r["rule"], r["subject"]): json.loads(r["details"]) for r in rows(whole, FINDINGS)}
    assert set(found) == healthy.FINDINGS | stuck_commit.FINDINGS | stalled_lso.FINDINGS
    stuck = found["stuck_commit", "billing/payments-2"]
    assert (stuck["committer"]["client_id"], stuck["other_committer"]["client_id"]) == ("billing-1", "billing-2")
    stalled = found["lso_stalled", "orders-0"]
    assert (stalled["client_id"], stalled["transactional_id"]) == ("orders-batch", "orders-tx-1")
    assert [r["group_id"] for r in stalled["starved_consumers"]] == ["reports"]


def test_tables_carry_their_comments_constraints_and_no_feature_that_other_readers_lack(whole: Path) -> None:
    for table in TABLES.values():
        delta = DeltaTable(str(whole / table.path))
        fields = {f.name: f for f in delta.schema().fields}
        assert {c.name: c.comment for c in table.columns} == {n: f.metadata["comment"] for n, f in fields.items()}
        assert {c.name: c.nullable for c in table.columns} == {n: f.nullable for n, f in fields.items()}
        configuration = delta.metadata().configuration
        assert {configuration[f"delta.constraints.{name}"] for name in table.checks} == set(table.checks.values())
        assert delta.protocol().min_reader_version == 1


def test_tables_are_known_to_sql_by_name(spark: SparkSession, whole: Path) -> None:
    register(spark, Lake.at(whole))
    assert spark.sql("SELECT count(*) FROM gold.offset_timeline").collect()[0][0] == len(rows(whole, OFFSET_TIMELINE))


def test_a_constraint_refuses_what_breaks_it(spark: SparkSession, lake: Path) -> None:
    path = lake / OFFSET_TIMELINE.path
    with pytest.raises(Exception, match="lag_not_negative"):
        spark.sql(f"UPDATE delta.`{path}` SET lag = -1")


def test_running_again_changes_nothing(spark: SparkSession, landing: Path, lake: Path) -> None:
    before = versions(lake)
    summary = run_stream(landing, lake, once=True, spark=spark)
    assert versions(lake) == before
    assert summary.rows_in == {}


def test_the_same_frames_landed_again_under_other_names_are_kept_once(
    spark: SparkSession, landing: Path, lake: Path, tmp_path: Path
) -> None:
    again = tmp_path / "again"
    for number, file in enumerate(sorted(landing.glob("date=*/*.parquet"))):
        for copy in "ab":
            target = again / file.parent.name / f"other-{number}-{copy}.parquet"
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, target)
    before = versions(lake, DATA)
    summary = run_stream(again, lake, once=True, spark=spark)
    assert summary.rows_in["frames"] == 2 * len(rows(lake, FRAMES))
    assert summary.rows_out["frames"] == 0
    assert versions(lake, DATA) == before


@pytest.mark.parametrize("query", ["frames", "exchanges", "gold"])
def test_a_batch_whose_end_was_not_noted_is_replayed_without_a_trace(
    spark: SparkSession, landing: Path, lake: Path, whole: Path, query: str
) -> None:
    noted = [rows(lake, table) for table in (STREAM_PROGRESS, LANDING_FILES)]
    last = last_batch(lake, query)
    last.unlink()
    last.with_name(f".{last.name}.crc").unlink(missing_ok=True)
    run_stream(landing, lake, once=True, spark=spark)
    assert last.exists()
    assert_same(lake, whole)
    assert [rows(lake, table) for table in (STREAM_PROGRESS, LANDING_FILES)] == noted


def test_a_connection_of_few_frames_in_many_days_is_kept_once_though_it_lands_again(
    spark: SparkSession, landing: Path, tmp_path: Path
) -> None:
    frames = pq.ParquetFile(next(landing.glob("date=*/*.parquet"))).read().slice(0, 60)
    begun = datetime(2026, 1, 1, 12, tzinfo=timezone.utc)
    changed = {
        "connection_id": pa.repeat("slow", 60),
        "direction": pa.repeat("request", 60),
        "seq": pa.array(range(10, 70)),
        "ts": pa.array([begun + timedelta(hours=n) for n in range(60)], pa.timestamp("us", "UTC")),
    }
    slow = pa.table({name: changed.get(name, frames[name]) for name in frames.column_names})
    seen_twice = pa.concat_tables([slow, slow.set_column(0, "agent_id", pa.repeat("b", 60))])
    lake = Lake.at(tmp_path / "lake")
    create_tables(spark, lake, [FRAMES])

    def landed(name: str, part: pa.Table) -> int:
        pq.write_table(part, tmp_path / name)
        return write_frames(spark.read.parquet(str(tmp_path / name)), lake, None, StreamSettings()).rows_out

    assert landed("all.parquet", slow) == 60
    assert landed("of-the-day-between.parquet", slow.slice(20, 1)) == 0
    assert landed("again.parquet", slow) == 0
    assert landed("twice.parquet", seen_twice) == 0

    lake = Lake.at(tmp_path / "new")
    create_tables(spark, lake, [FRAMES])
    assert landed("at-once-twice.parquet", seen_twice) == 60
    assert sorted(row["seq"] for row in rows(tmp_path / "new", FRAMES)) == list(range(10, 70))


@pytest.fixture(scope="module")
def pieces(landing: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same frames in twice as many files, cut between requests and their responses."""
    folder = tmp_path_factory.mktemp("pieces")
    for file in sorted(landing.glob("date=*/*.parquet")):
        table = pq.ParquetFile(file).read()
        middle = table.num_rows // 2
        (folder / file.parent.name).mkdir(exist_ok=True)
        for number, part in enumerate((table.slice(0, middle), table.slice(middle))):
            pq.write_table(part, folder / file.parent.name / f"{file.stem}-{number}.parquet")
    copy_gaps(landing, folder)
    return folder


def failing(real: Callable[..., Any], at_call: int) -> Callable[..., Any]:
    """``real``, but its call number ``at_call`` does its work and then fails."""
    calls = 0

    def run(*args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        calls += 1
        number = calls  # several may run side by side
        result = real(*args, **kwargs)
        if number == at_call:
            raise OSError("pulled the plug")
        return result

    return run


@pytest.mark.proof
def test_pieces_and_crashes_after_any_write_give_the_same_tables(
    spark: SparkSession, pieces: Path, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = tmp_path / "lake"
    # _append: exchanges, offset events, record batches, state events; the others once a batch.
    crashes = [("_append", 1), ("_append", 2), ("_append", 3), ("_append", 4)]
    crashes += [("rename_earlier", 1), ("save_facts", 1), ("note_news", 1), ("_keep_waiting", 1)]
    run = lambda: run_stream(pieces, lake, once=True, spark=spark, settings=PIECEWISE)  # noqa: E731
    monkeypatch.setattr(queries, "write_frames", failing(queries.write_frames, 2))
    with pytest.raises(StreamError, match=r"`frames` stopped: .*pulled the plug"):
        run()
    monkeypatch.undo()
    for name, call in crashes:
        with monkeypatch.context() as patch:
            patch.setattr(batches, name, failing(getattr(batches, name), call))
            with pytest.raises(StreamError, match="pulled the plug"):
                run()
    run()
    assert_same(lake, whole)


def test_a_backfill_gives_what_the_stream_gave(spark: SparkSession, landing: Path, lake: Path, whole: Path) -> None:
    run_backfill(lake, date.min, date.max, recode=True, spark=spark)
    assert_same(lake, whole)
    done = versions(lake, DATA)
    run_stream(landing, lake, once=True, spark=spark)
    assert versions(lake, DATA) == done


def test_a_backfill_mends_what_was_damaged(spark: SparkSession, lake: Path, whole: Path) -> None:
    for path, change in (
        ("silver/offset_events", "UPDATE delta.`{}` SET offset = 0 WHERE kind = 'committed'"),
        ("bronze/frames", "UPDATE delta.`{}` SET body = NULL WHERE api_key = 8"),
        ("silver/exchanges", "DELETE FROM delta.`{}` WHERE api_key = 1"),
    ):
        spark.sql(change.format(lake / path))
    days = sorted({r["date"] for r in rows(whole, FRAMES)})
    run_backfill(lake, days[0], days[-1], recode=True, spark=spark)
    assert_same(lake, whole)


def test_a_table_that_cannot_be_read_ends_a_backfill_with_a_reason(
    spark: SparkSession, lake: Path, whole: Path
) -> None:
    for file in (lake / FRAMES.path).rglob("*.parquet"):
        file.unlink()
    days = sorted({r["date"] for r in rows(whole, FRAMES)})
    with pytest.raises(UserError, match=r"the backfill stopped: .*(not exist|No such file)") as stopped:
        run_backfill(lake, days[0], days[-1], spark=spark)
    assert len(str(stopped.value).splitlines()) == 2, "no stack trace"


def test_a_missing_landing_zone_is_reported(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(LandingError, match="wirelake capture read"):
        run_stream(tmp_path / "nowhere", tmp_path / "lake", once=True, spark=spark)


def test_a_damaged_landing_file_is_named_and_the_job_goes_on(spark: SparkSession, lake: Path, tmp_path: Path) -> None:
    folder = tmp_path / "landing" / "date=2026-01-01"
    folder.mkdir(parents=True)
    (folder / "torn.parquet").write_bytes(b"PAR1" + bytes(100))
    run_stream(folder.parent, lake, once=True, spark=spark)
    noted = [row for row in rows(lake, LANDING_FILES) if row["file"].endswith("torn.parquet")]
    assert [row["status"] for row in noted] == ["unreadable"]


def test_a_lake_that_cannot_be_written_is_reported(spark: SparkSession, landing: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(LakeError, match="cannot write to the lake"):
        run_stream(landing, tmp_path / "file" / "lake", once=True, spark=spark)


def test_a_range_that_ends_before_it_begins_is_refused(spark: SparkSession, whole: Path) -> None:
    with pytest.raises(UserError, match="before it begins"):
        run_backfill(whole, date(2026, 2, 1), date(2026, 1, 1), spark=spark)


def _hold(root: str, held: Any, done: Any) -> None:
    with local_lock(Lake.at(root)):
        held.set()
        done.wait()


@pytest.fixture
def locked(whole: Path) -> Iterator[int]:
    """The id of another process that holds the lake's lock."""
    fresh = multiprocessing.get_context("spawn")
    held, done = fresh.Event(), fresh.Event()
    other = fresh.Process(target=_hold, args=(str(whole), held, done))
    other.start()
    assert held.wait(60)
    yield other.pid or 0
    done.set()
    other.join()


def test_a_second_job_on_one_lake_is_refused(spark: SparkSession, landing: Path, whole: Path, locked: int) -> None:
    with pytest.raises(LakeError, match=f"another job works on .*process {locked}"):
        run_stream(landing, whole, once=True, spark=spark)


def test_an_interrupted_creation_of_tables_is_completed(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake.at(tmp_path)
    create_tables(spark, lake, [PENDING_EXCHANGES])
    first = versions(tmp_path, [PENDING_EXCHANGES])
    create_tables(spark, lake, [PENDING_EXCHANGES, FINDINGS])
    assert versions(tmp_path, [PENDING_EXCHANGES]) == first
    assert rows(tmp_path, FINDINGS) == []


def test_a_constraint_that_allows_something_else_now_is_replaced(spark: SparkSession, tmp_path: Path) -> None:
    before = replace(EXCHANGES, checks={**EXCHANGES.checks, "status_known": "status = 'paired'"})
    for table in (before, EXCHANGES):
        create_tables(spark, Lake.at(tmp_path), [table])
        held = DeltaTable(str(tmp_path / table.path)).metadata().configuration
        for name, condition in table.checks.items():
            assert without_spaces(held[f"delta.constraints.{name}"]) == without_spaces(condition)
