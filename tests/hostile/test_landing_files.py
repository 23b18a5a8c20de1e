"""Landing files that are damaged, foreign, forged or gone: each is set aside and told, and the stream goes on."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from pipeline.capture import landing_files
from pipeline.capture.reading import read_capture
from pipeline.settings import StreamSettings
from pipeline.streaming.lake import Lake, create_tables
from pipeline.streaming.landing import Landing
from pipeline.streaming.ledger import Ledger
from pipeline.streaming.queries import Queries, StreamSummary
from pipeline.tables import FRAMES, GAPS, LANDING_FILES
from tests.pipeline.lakes import rows, versions
from tests.requirements import ROOT

pytestmark = pytest.mark.spark


def _cut_off(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-100])


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
    _manifest(file).write_text(json.dumps({"path": "../../etc/passwd", "rows": -1, "bytes": "many", "sha256": None}))


def _nonsense_manifest(file: Path) -> None:
    _manifest(file).write_text("[" * 10_000)


def _manifest(file: Path) -> Path:
    return file.parent.parent / "_manifest" / f"{file.stem}.json"


FAULTS: dict[str, tuple[Callable[[Path], None], str]] = {
    "cut off": (_cut_off, "damaged"),
    "changed": (_changed, "damaged"),
    "deleted": (_delete, "lost"),
    "empty": (_empty, "lost"),
    "manifest forged": (_forged_manifest, "damaged"),
    "manifest nonsense": (_nonsense_manifest, "damaged"),
}


@pytest.fixture
def zone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A landing zone of several files of frames, and a file of gaps."""
    monkeypatch.setattr(landing_files, "ROWS_PER_FILE", 60)
    read_capture([ROOT / "tests" / "captures" / "healthy.pcap"], tmp_path / "zone", agent_id="a")
    return tmp_path / "zone"


def _run(spark: SparkSession, zone: Path, lake: Path, settings: StreamSettings | None = None) -> list[str]:
    """Take in what has landed; what was said."""
    said: list[str] = []
    place = Lake.at(lake)
    create_tables(spark, place)
    queries = Queries(spark, place, settings or StreamSettings(), True, said.append, StreamSummary())
    for start in queries.of_landing(Landing.at(zone)):
        queries.run(start)
    Ledger(spark, queries.intake(Landing.at(zone))).look()
    return [line for line in said if line.startswith("error")]


def _keys(file: Path) -> set[tuple[object, ...]]:
    table = pq.ParquetFile(file).read(columns=list(FRAMES.key))
    return {tuple(row[name] for name in FRAMES.key) for row in table.to_pylist()}


def test_each_bad_file_is_set_aside_and_the_rest_goes_on(spark: SparkSession, zone: Path, tmp_path: Path) -> None:
    files = sorted(zone.glob("date=*/*.parquet"))
    assert len(files) > len(FAULTS) + 1
    bad = dict(zip(FAULTS, files, strict=False))
    good = files[len(FAULTS) :]
    told = {name: json.loads(_manifest(file).read_text()) for name, file in bad.items()}
    wanted = set().union(*map(_keys, good))
    for name, file in bad.items():
        FAULTS[name][0](file)
    foreign = {name: zone / good[0].parent.name / f"{name}.parquet" for name in ("garbage", "other", "nulls")}
    foreign["garbage"].write_bytes(b"PAR1" + bytes(range(256)) * 20 + b"PAR1")
    pq.write_table(pa.table({"ts": ["not a time"], "frame": [1]}), foreign["other"])
    pq.write_table(pa.table({"a column of somebody else": [1]}), foreign["nulls"])

    said = _run(spark, zone, tmp_path / "lake")

    held = [tuple(row[name] for name in FRAMES.key) for row in rows(tmp_path / "lake", FRAMES)]
    assert sorted(held, key=repr) == sorted(wanted, key=repr)
    noted = {row["file"].rpartition("/")[2]: row for row in rows(tmp_path / "lake", LANDING_FILES)}
    assert {noted[bad[name].name]["status"] for name in FAULTS} == {"damaged", "lost"}
    for name, (_, status) in FAULTS.items():
        assert (noted[bad[name].name]["status"], noted[bad[name].name]["rows"]) == (status, 0), name
    assert {noted[file.name]["status"] for file in foreign.values()} == {"unreadable"}
    assert {(noted[file.name]["status"], noted[file.name]["rows"]) for file in good} == {
        ("read", len(_keys(file))) for file in good
    }
    gaps = {row["connection_id"]: row for row in rows(tmp_path / "lake", GAPS)}
    for name in ("cut off", "changed", "deleted", "empty"):
        gap = gaps[f"file:{told[name]['path']}"]
        assert (gap["agent_id"], gap["bytes_lost"]) == ("a", told[name]["frame_bytes"])
        assert gap["bytes_lost"] > 0
    assert len(gaps) == 4, "nobody knows what a file without a manifest of its own has held"
    for file in (*bad.values(), *foreign.values()):
        assert sum(file.name in line for line in said) == 1, file
    before = versions(tmp_path / "lake")
    assert _run(spark, zone, tmp_path / "lake") == []
    assert versions(tmp_path / "lake") == before


def test_what_was_read_may_go_and_what_is_being_published_may_come(
    spark: SparkSession, zone: Path, tmp_path: Path
) -> None:
    first, second, *_ = sorted(zone.glob("date=*/*.parquet"))
    staged = zone / ".staging" / f".{second.name}.host.1.1f.0.tmp"
    second.rename(staged)
    assert _run(spark, zone, tmp_path / "lake") == []
    first.unlink()
    assert _run(spark, zone, tmp_path / "lake") == []
    staged.rename(second)
    assert _run(spark, zone, tmp_path / "lake") == []
    assert len(rows(tmp_path / "lake", FRAMES)) == sum(
        json.loads(path.read_text())["rows"] for path in zone.glob("_manifest/*.json")
    )
    assert not [row for row in rows(tmp_path / "lake", GAPS) if row["connection_id"].startswith("file:")]


def test_a_zone_without_manifests_is_read_unless_the_settings_demand_them(
    spark: SparkSession, zone: Path, tmp_path: Path
) -> None:
    for manifest in zone.glob("_manifest/*.json"):
        manifest.unlink()
    files = sorted(zone.glob("date=*/*.parquet"))
    strict = _run(spark, zone, tmp_path / "strict", StreamSettings(manifests_required=True))
    assert len(strict) == len(files)
    assert rows(tmp_path / "strict", FRAMES) == []
    assert {row["status"] for row in rows(tmp_path / "strict", LANDING_FILES)} == {"unlisted"}
    assert _run(spark, zone, tmp_path / "lake") == []
    assert {row["file"].rpartition("/")[2]: row["rows"] for row in rows(tmp_path / "lake", LANDING_FILES)} == {
        file.name: len(_keys(file)) for file in files
    }
