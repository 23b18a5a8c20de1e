"""Landing files that change between a crash and the replay: none lost without a word, none falsely reported to be."""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from pipeline.capture.landing.manifests import Manifest
from pipeline.config.settings import StreamSettings
from pipeline.streaming import queries
from pipeline.streaming.bronze import intake
from pipeline.streaming.bronze.intake import InHand, Intake
from pipeline.streaming.landing import checked_files
from pipeline.streaming.landing.checked_files import SetAside, check_files, unreadable
from pipeline.streaming.landing.zone_files import MOST_BYTES, contents_by_workers, contents_here
from pipeline.streaming.ledger import Ledger
from pipeline.streaming.queries import StreamError
from pipeline.streaming.storage.lake import Lake, create_tables
from pipeline.streaming.storage.new_files import NewFile
from pipeline.tables import CHANGE_LOG, FRAMES, GAPS, LANDING_FILES
from tests.hostile.landing_zones import cut_off, keys_of, manifest_of, take_in
from tests.pipeline.lakes import rows

pytestmark = pytest.mark.spark


class CrashError(Exception):
    """Instead of a SIGKILL."""


def _crash(*_: object, **__: object) -> None:
    raise CrashError


def _held(lake: Path) -> list[str]:
    return sorted(repr(tuple(row[name] for name in FRAMES.key)) for row in rows(lake, FRAMES))


def _wanted(files: list[Path]) -> list[str]:
    return sorted(repr(key) for file in files for key in keys_of(file))


def _statuses(lake: Path) -> dict[str, str]:
    noted = [(row["file"].rpartition("/")[2], row["status"]) for row in rows(lake, LANDING_FILES)]
    assert len(noted) == len(set(noted))
    return dict(noted)


def _file_gaps(lake: Path) -> list[str]:
    return [row["connection_id"] for row in rows(lake, GAPS) if row["connection_id"].startswith("file:")]


@pytest.fixture
def crashes(
    spark: SparkSession,
    zone: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[[str], None]:
    """Runs the job until it crashes before the frames are written, or behind it, before they are noted."""

    def run(when: str) -> None:
        with monkeypatch.context() as patch:
            if when == "before":
                patch.setattr(queries, "write_frames", _crash)
            else:
                real = intake.record
                patch.setattr(intake, "record", lambda *a: _crash() if a[2] == "frames" else real(*a))
            with pytest.raises(StreamError):
                take_in(spark, zone, tmp_path / "lake")

    return run


@pytest.mark.parametrize("when", ["before", "behind"])
def test_what_changes_between_crash_and_replay(
    when: str,
    crashes: Callable[[str], None],
    spark: SparkSession,
    zone: Path,
    tmp_path: Path,
) -> None:
    first, second, third, *others = files = sorted(zone.glob("date=*/*.parquet"))
    keys = {file: _wanted([file]) for file in files}
    content = first.read_bytes()
    cut_off(first)
    crashes(when)
    first.write_bytes(content)
    second.unlink()
    cut_off(third)
    lines = take_in(spark, zone, tmp_path / "lake")

    lake = tmp_path / "lake"
    bad = [first] if when == "behind" else [first, second, third]
    assert _held(lake) == sorted(key for file in files if file not in bad for key in keys[file])
    statuses = _statuses(lake)
    assert [statuses[file.name] for file in (first, second, third)] == (
        ["damaged", "read", "read"] if when == "behind" else ["damaged", "lost", "damaged"]
    )
    assert {statuses[file.name] for file in others} == {"read"}
    assert sorted(_file_gaps(lake)) == sorted(f"file:{file.parent.name}/{file.name}" for file in bad)
    assert all(any(file.name in line for line in lines) for file in bad)
    assert take_in(spark, zone, lake) == []
    assert _statuses(lake) == statuses


def _announce(file: Path, template: Path) -> None:
    manifest = json.loads(manifest_of(template).read_text())
    content = file.read_bytes()
    manifest |= {
        "path": f"{file.parent.name}/{file.name}", "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest(),
    }  # fmt: skip
    manifest_of(file).write_text(json.dumps(manifest))


def test_what_is_found_unreadable_only_while_it_is_written_leaves_a_gap(
    spark: SparkSession,
    zone: Path,
    tmp_path: Path,
) -> None:
    first, *others = sorted(zone.glob("date=*/*.parquet"))
    held = pq.ParquetFile(first).read()
    at = held.column_names.index("direction")
    sideways = held.set_column(at, held.schema.field(at), pa.array(["sideways"] * len(held)))
    pq.write_table(sideways, first)
    other = first.with_name("a-1700000000000000-0000.parquet")
    pq.write_table(held.set_column(at, "direction", pc.binary_length(held["direction"])), other)
    for file in (first, other):
        _announce(file, first)
    wanted = _wanted(others)
    lines = take_in(spark, zone, tmp_path / "lake")
    assert _held(tmp_path / "lake") == wanted
    assert [_statuses(tmp_path / "lake")[file.name] for file in (first, other)] == ["unreadable"] * 2
    assert sorted(_file_gaps(tmp_path / "lake")) == sorted(f"file:{f.parent.name}/{f.name}" for f in (first, other))
    assert len(lines) == 2


def _found(files: list[Path]) -> list[NewFile]:
    return [NewFile(file.as_uri(), 0, file.stat().st_size, 0) for file in files]


def test_a_failure_while_a_file_is_read_that_is_what_the_agent_wrote_is_raised(
    spark: SparkSession,
    zone: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first, second, third, *_ = sorted(zone.glob("date=*/*.parquet"))
    good = check_files(
        spark, str(zone), "frames", _found([first, second, third]), manifests_required=True
    ).good  # fmt: skip
    assert len(good) == 3

    def fails(*_: object) -> None:
        raise AnalysisException("the storage hiccups")

    assert unreadable(spark, "frames", good) == []
    monkeypatch.setattr(checked_files, "read_files", fails)
    with pytest.raises(AnalysisException, match="hiccups"):
        unreadable(spark, "frames", good)
    first.unlink()
    cut_off(second)
    third.write_bytes(garbage := b"PAR1" + bytes(1000) + b"PAR1")
    _, _, (file, manifest) = good.items()
    assert manifest is not None
    forged = Manifest(1, len(garbage), hashlib.sha256(garbage).hexdigest(), 0, 0)
    found = unreadable(spark, "frames", {**good, file: forged})
    assert [(one.status, one.manifest is not None) for one in found] == [
        ("lost", True), ("damaged", True), ("unreadable", True),
    ]  # fmt: skip


def test_what_is_gone_or_too_large_when_it_is_checked_is_reported(spark: SparkSession, zone: Path) -> None:
    gone, large, *_ = files = sorted(zone.glob("date=*/*.parquet"))[:2]
    found = _found(files)
    gone.unlink()
    with large.open("r+b") as file:
        file.truncate(MOST_BYTES + 1)
    aside = check_files(spark, str(zone), "frames", found, manifests_required=False).set_aside
    assert [(one.status, one.manifest is not None) for one in aside] == [("lost", True), ("damaged", True)]
    assert f"has {MOST_BYTES + 1} bytes; files of more than" in aside[1].reason


def test_this_process_and_workers_read_the_same(spark: SparkSession, zone: Path) -> None:
    gone, *files = [*zone.glob("date=*/*.parquet"), *zone.glob("_manifest/*.json")]
    gone.unlink()
    by_workers = contents_by_workers(spark, [str(gone), *map(str, files)])
    assert len(by_workers) == len(files)
    assert contents_here([str(gone), *(f"file://{file}" for file in files)]) == {
        f"file://{file}": by_workers[str(file)] for file in files
    }


def test_on_one_machine_comparing_files_starts_no_spark_job(spark: SparkSession, zone: Path) -> None:
    scheduler = spark.sparkContext._jsc.sc().dagScheduler()
    found = _found(sorted(zone.glob("date=*/*.parquet")))
    before = scheduler.nextJobId()
    assert len(check_files(spark, str(zone), "frames", found, manifests_required=True).good) == len(found)
    assert scheduler.nextJobId() == before


def test_a_pipe_or_a_folder_in_place_of_a_file_does_not_stop_the_check(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.parquet")
    (tmp_path / "b.json").mkdir()
    assert contents_here([str(tmp_path / "a.parquet"), str(tmp_path / "b.json")]) == {}


def _intake(spark: SparkSession, root: str, lake: Path, lines: list[str]) -> Intake:
    place = Lake.at(lake)
    create_tables(spark, place, [GAPS, LANDING_FILES, CHANGE_LOG])
    return Intake(root, place, StreamSettings(), lines.append, InHand())


def test_a_look_that_fails_is_reported_once_and_ends_nothing(spark: SparkSession, tmp_path: Path) -> None:
    lines: list[str] = []
    ledger = Ledger(spark, _intake(spark, "nowhere://bucket/zone", tmp_path / "lake", lines))
    ledger.look()
    ledger.look()
    assert len(lines) == 1
    assert "landing files that are gone could not be looked for" in lines[0]


def test_what_a_batch_has_in_hand_is_not_for_the_ledger_to_report_and_a_forged_name_stops_nothing(
    spark: SparkSession,
    zone: Path,
    tmp_path: Path,
) -> None:
    lines: list[str] = []
    taken = _intake(spark, str(zone), tmp_path / "lake", lines)
    (zone / "_manifest" / "a-999999999999999999-0000.json").write_text("{}")
    for file in zone.glob("gaps/*/*.parquet"):
        (zone / "_manifest" / "gaps" / f"{file.stem}.json").unlink()
    gone, *_ = sorted(zone.glob("date=*/*.parquet"))
    gone.unlink()
    ledger = Ledger(spark, taken)
    with taken.in_hand.batch("frames", [gone.stem]):
        ledger.look()
    assert lines == []
    ledger.look()
    assert len(lines) == 1
    assert gone.name in lines[0]
    assert _statuses(tmp_path / "lake") == {gone.name: "lost"}


def test_two_threads_that_report_the_same_file_leave_one_gap(spark: SparkSession, zone: Path, tmp_path: Path) -> None:
    taken = _intake(spark, str(zone), tmp_path / "lake", [])
    file, *_ = _found(sorted(zone.glob("date=*/*.parquet")))
    lost = SetAside(file, "lost", "is gone", Manifest(1, 1, "0" * 64, 0, 1))
    threads = [threading.Thread(target=taken.report, args=(spark, "frames", [lost])) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(_file_gaps(tmp_path / "lake")) == 1
