"""Landing files that are damaged, foreign, forged or gone: each is set aside and reported, and the stream continues."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from decoder.model import CONNECTION
from pipeline.config.settings import StreamSettings
from pipeline.streaming.queries import StreamSummary
from pipeline.tables import FRAMES, GAPS, LANDING_FILES
from tests.hostile.landing_zones import cut_off, keys_of, manifest_of, take_in
from tests.pipeline.lakes import rows, versions

pytestmark = pytest.mark.spark


def _changed(file: Path) -> None:
    """Valid Parquet of the same size: another byte in a frame would do, here a name in the footer."""
    content = file.read_bytes()
    assert content.count(b"parquet-cpp-arrow") == 1
    file.write_bytes(content.replace(b"parquet-cpp-arrow", b"parquet-cpp-ARROW"))


def _delete(file: Path) -> None:
    file.unlink()


def _empty(file: Path) -> None:
    file.write_bytes(b"")


def _forged_manifest(file: Path) -> None:
    manifest_of(file).write_text(json.dumps({"path": "../../etc/passwd", "rows": -1, "bytes": "many", "sha256": None}))


def _nonsense_manifest(file: Path) -> None:
    manifest_of(file).write_text("[" * 10_000)


FAULTS: dict[str, tuple[Callable[[Path], None], str]] = {
    "cut off": (cut_off, "damaged"),
    "changed": (_changed, "damaged"),
    "deleted": (_delete, "lost"),
    "empty": (_empty, "lost"),
    "manifest forged": (_forged_manifest, "damaged"),
    "manifest nonsense": (_nonsense_manifest, "damaged"),
}


def test_each_bad_file_is_set_aside_and_the_rest_goes_on(spark: SparkSession, zone: Path, tmp_path: Path) -> None:
    files = sorted(zone.glob("date=*/*.parquet"))
    assert len(files) > len(FAULTS) + 1
    bad = dict(zip(FAULTS, files, strict=False))
    good = files[len(FAULTS) :]
    manifests = {name: json.loads(manifest_of(file).read_text()) for name, file in bad.items()}
    wanted = set().union(*map(keys_of, good))
    for name, file in bad.items():
        FAULTS[name][0](file)
    names = ("garbage", "other", "nulls", "sideways", "timeless")
    foreign = {name: zone / good[0].parent.name / f"{name}.parquet" for name in names}
    foreign["garbage"].write_bytes(b"PAR1" + bytes(range(256)) * 20 + b"PAR1")
    pq.write_table(pa.table({"ts": ["not a time"], "frame": [1]}), foreign["other"])
    pq.write_table(pa.table({"a column of somebody else": [1]}), foreign["nulls"])
    some = pq.ParquetFile(good[0]).read().slice(0, 1).drop_columns(["connection_id"])
    some = some.append_column("connection_id", pa.array(["foreign"]))
    pq.write_table(some.drop_columns(["direction"]).append_column("direction", pa.array(["x"])), foreign["sideways"])
    late = pa.array([2**62], pa.timestamp("us", "UTC"))
    pq.write_table(some.drop_columns(["ts"]).append_column("ts", late), foreign["timeless"])

    errors = take_in(spark, zone, tmp_path / "lake", summary=(summary := StreamSummary()))

    lost = sum(manifests[name]["rows"] for name in ("cut off", "changed", "deleted", "empty"))
    count = len(FAULTS) + len(foreign)
    assert str(summary.left_out).startswith(f"{count} landing files were set aside, and {lost} rows with them")
    assert [summary.exit_code(may_leave_out=may) for may in (False, True)] == [3, 0]
    held = [tuple(row[name] for name in FRAMES.key) for row in rows(tmp_path / "lake", FRAMES)]
    assert sorted(held, key=repr) == sorted(wanted, key=repr)
    noted = {row["file"].rpartition("/")[2]: row for row in rows(tmp_path / "lake", LANDING_FILES)}
    assert {noted[bad[name].name]["status"] for name in FAULTS} == {"damaged", "lost"}
    for name, (_, status) in FAULTS.items():
        assert (noted[bad[name].name]["status"], noted[bad[name].name]["rows"]) == (status, 0), name
    assert {noted[file.name]["status"] for file in foreign.values()} == {"unreadable"}
    assert {(noted[file.name]["status"], noted[file.name]["rows"]) for file in good} == {
        ("read", len(keys_of(file))) for file in good
    }
    gaps = {row["connection_id"]: row for row in rows(tmp_path / "lake", GAPS) if row["method"] != CONNECTION}
    for name in ("cut off", "changed", "deleted", "empty"):
        gap = gaps[f"file:{manifests[name]['path']}"]
        assert (gap["agent_id"], gap["bytes_lost"]) == ("a", manifests[name]["frame_bytes"])
        assert gap["bytes_lost"] > 0
    assert len(gaps) == 4, "nobody knows what a file without a manifest of its own has held"
    for file in (*bad.values(), *foreign.values()):
        assert sum(file.name in line for line in errors) == 1, file
    before = versions(tmp_path / "lake")
    assert take_in(spark, zone, tmp_path / "lake", summary=(again := StreamSummary())) == []
    assert not again.left_out
    assert again.exit_code(may_leave_out=False) == 0
    assert versions(tmp_path / "lake") == before


def test_what_was_read_may_go_and_what_is_being_published_may_come(
    spark: SparkSession, zone: Path, tmp_path: Path
) -> None:
    first, second, *_ = sorted(zone.glob("date=*/*.parquet"))
    staged = zone / ".staging" / f".{second.name}.host.1.1f.0.tmp"
    second.rename(staged)
    assert take_in(spark, zone, tmp_path / "lake") == []
    first.unlink()
    assert take_in(spark, zone, tmp_path / "lake") == []
    staged.rename(second)
    assert take_in(spark, zone, tmp_path / "lake") == []
    assert len(rows(tmp_path / "lake", FRAMES)) == sum(
        json.loads(path.read_text())["rows"] for path in zone.glob("_manifest/*.json")
    )
    assert not [row for row in rows(tmp_path / "lake", GAPS) if row["connection_id"].startswith("file:")]


def test_a_zone_without_manifests_is_read_unless_the_settings_demand_them(
    spark: SparkSession, zone: Path, tmp_path: Path
) -> None:
    for folder in (zone / "gaps", zone / "_manifest" / "gaps"):
        shutil.rmtree(folder, ignore_errors=True)  # this is about files of frames
    for manifest in zone.glob("_manifest/*.json"):
        manifest.unlink()
    files = sorted(zone.glob("date=*/*.parquet"))
    strict = take_in(spark, zone, tmp_path / "strict", StreamSettings(manifests_required=True))
    assert len(strict) == len(files)
    assert rows(tmp_path / "strict", FRAMES) == []
    assert {row["status"] for row in rows(tmp_path / "strict", LANDING_FILES)} == {"unlisted"}
    assert take_in(spark, zone, tmp_path / "lake") == []
    assert {row["file"].rpartition("/")[2]: row["rows"] for row in rows(tmp_path / "lake", LANDING_FILES)} == {
        file.name: len(keys_of(file)) for file in files
    }
