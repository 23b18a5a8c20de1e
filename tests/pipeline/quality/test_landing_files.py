"""Manifests of a landing zone as a check reads them: those of files that agents name, whole and each its own."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.analysis.fit import schema_of
from pipeline.capture.runs.reading import read_capture
from pipeline.quality.landing_files import MANIFESTS, ZoneHere, read_manifests
from pipeline.quality.model import Ask
from pipeline.quality.reconcile import asked_here, compared
from pipeline.quality.relations import RELATIONS
from pipeline.tables import GAPS, LANDING_FILES
from tests.paths import CAPTURES
from tests.pipeline.rows import row

DAY = date(2026, 11, 21)
BY_NAME = {relation.name: relation for relation in RELATIONS}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    landing = tmp_path_factory.mktemp("whole") / "landing zone"
    read_capture([CAPTURES / "stuck_commit.pcap"], landing, agent_id="one")
    read_capture([CAPTURES / "incidents" / "lossy.pcap"], landing, agent_id="two")
    return landing


@pytest.fixture
def landing(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "landing zone"))


def noted(landing: Path) -> list[dict[str, object]]:
    """All that a job notes of the files of a landing zone, as Spark writes their URIs."""
    return [
        row(
            LANDING_FILES,
            query="gaps" if "gaps" in path.parts else "frames",
            file=path.as_uri().replace("%3D", "="),
            rows=pq.read_metadata(path).num_rows,
        )
        for path in sorted(landing.glob("**/date=*/*.parquet"))
    ]


@contextmanager
def asked(rows: list[dict[str, object]], manifests: pa.Table | None = None) -> Iterator[Ask]:
    tables = {
        LANDING_FILES.full_name: pa.Table.from_pylist(rows, schema_of(LANDING_FILES)),
        GAPS.full_name: schema_of(GAPS).empty_table(),
        MANIFESTS.full_name: manifests or schema_of(MANIFESTS).empty_table(),
    }
    with asked_here(tables) as ask:
        yield ask


def read(landing: Path, since: date | None = None) -> pa.Table | None:
    with asked(noted(landing)) as ask:
        return read_manifests(ask, ZoneHere(), since)


def differing(landing: Path, rows: list[dict[str, object]] | None = None) -> set[str]:
    """Relations with manifests that do not hold."""
    rows = noted(landing) if rows is None else rows
    with asked(rows, read(landing)) as ask:
        names = ("rows_as_manifest", "manifest_is_noted", "set_aside_is_gap")
        counts = {name: compared(BY_NAME[name], ask).to_pylist() for name in names}
    return {name for name, found in counts.items() if any(one["expected"] != one["found"] for one in found)}


def test_each_file_has_its_manifest(landing: Path) -> None:
    manifests = read(landing)
    assert manifests is not None
    files = {str(path).replace(" ", "%20") for path in landing.glob("**/date=*/*.parquet")}
    assert set(manifests.column("file").to_pylist()) == files
    assert set(manifests.column("query").to_pylist()) == {"frames", "gaps"}
    assert set(manifests.column("day").to_pylist()) == {DAY}
    assert differing(landing) == set()


def test_days_before_the_first_one_are_not_read(landing: Path) -> None:
    assert read(landing, DAY) is not None
    assert read(landing, DAY + timedelta(1)) is None


def test_a_landing_zone_that_is_gone_has_none(landing: Path) -> None:
    rows = noted(landing)
    shutil.rmtree(landing)
    with asked([*rows, row(LANDING_FILES, query="frames", file=f"s3a://bucket/date={DAY}/a-1-0000.parquet")]) as ask:
        assert read_manifests(ask, ZoneHere()) is None


@pytest.mark.parametrize("content", [b"", b"[", b"{}", b'{"path": "date=2026-11-21/other-1-0000.parquet"}'])
def test_what_is_no_manifest_of_the_file_is_left_out(landing: Path, content: bytes) -> None:
    one = min(landing.glob("_manifest/*.json"))
    one.write_bytes(content)
    manifests = read(landing)
    assert manifests is not None
    assert one.stem not in " ".join(manifests.column("file").to_pylist())


def test_a_file_with_other_rows_than_its_manifest_states_is_found(landing: Path) -> None:
    one = min(landing.glob("_manifest/*.json"))
    rows = noted(landing)
    one.write_text(json.dumps(json.loads(one.read_text()) | {"rows": 1}))
    assert differing(landing, rows) == {"rows_as_manifest"}


@pytest.mark.parametrize("kind", ["frames", "gaps"])
def test_a_file_that_the_job_left_out_is_found(landing: Path, kind: str) -> None:
    rows = noted(landing)
    place = next(number for number, one in enumerate(rows) if one["query"] == kind)
    newest = next(one for number, one in enumerate(rows) if one["query"] == kind and number != place)
    newest["modified_at"] = newest["modified_at"] + timedelta(days=1_000_000)  # type: ignore[operator]
    assert differing(landing, rows[:place] + rows[place + 1 :]) == {"manifest_is_noted"}


def test_a_file_that_came_last_may_wait(landing: Path) -> None:
    rows = noted(landing)
    assert differing(landing, [one | {"modified_at": row(LANDING_FILES)["modified_at"]} for one in rows[1:]]) == set()


def test_a_file_that_was_moved_there_counts_from_then_on(landing: Path) -> None:
    """Its own time is that of the one whose copy it is: the job has not seen it before it came."""
    file = min(landing.glob("date=*/*.parquet"))
    os.utime(file, (0, 0))
    manifests = read(landing)
    assert manifests is not None
    seen = {one["file"]: one["seen_us"] for one in manifests.to_pylist()}
    assert seen[str(file).replace(" ", "%20")] > 1_000_000_000_000_000


def test_a_file_that_was_set_aside_without_a_gap_is_found(landing: Path) -> None:
    rows = noted(landing)
    rows[0] |= {"status": "damaged", "rows": 0}
    assert differing(landing, rows) == {"set_aside_is_gap"}
