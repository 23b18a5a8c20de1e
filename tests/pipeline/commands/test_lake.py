"""Places that ``stream``, ``backfill``, ``maintain`` and ``check`` cannot use are refused before a JVM starts."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from typer.testing import CliRunner

from pipeline.cli import app
from pipeline.errors import UserError
from pipeline.streaming.preflight import check_made
from pipeline.streaming.storage.lake import Lake
from pipeline.streaming.storage.lock import local_lock
from pipeline.tables import FINDINGS, FRAMES, WRITTEN_BY_DIAGNOSE
from tests.paths import ROOT
from tests.pipeline.rows import write

pytestmark = pytest.mark.slow

BACKFILL = ("backfill", "--from", "2026-03-01", "--to", "2026-03-01")
OF_A_LAKE = (BACKFILL, ("maintain", "--dry-run"), ("maintain",), ("check",))
"""Commands that continue with a lake."""

of_a_lake = pytest.mark.parametrize("command", OF_A_LAKE, ids=" ".join)

LOADED = """
import sys
sys.argv = ["wirelake", *sys.argv[1:]]
from pipeline.cli import main
try:
    main()
finally:
    print(*sorted({"great_expectations", "duckdb", "pandas", "pipeline.streaming.job"} & set(sys.modules)))
"""
"""A command, and what it has loaded of that which takes long."""


class JavaError(Exception):
    """Raised when a command looks for a JVM to start."""


@pytest.fixture(autouse=True)
def no_java(monkeypatch: pytest.MonkeyPatch) -> None:
    def look() -> None:
        raise JavaError

    monkeypatch.setattr("pipeline.commands.lake.find_java", look)


def ended_by(command: Iterable[str], lake: Path) -> BaseException | None:
    return CliRunner().invoke(app, [*command, "--lake", str(lake)]).exception


def refusal(command: Iterable[str], lake: Path) -> str:
    error = ended_by(command, lake)
    assert isinstance(error, UserError), error
    return str(error)


def stream(landing: Path) -> tuple[str, ...]:
    return "stream", "--landing", str(landing), "--once"


def names(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """A lake of which two tables are there."""
    for table in (FRAMES, FINDINGS):
        write(tmp_path / "lake", table, [])
    return tmp_path / "lake"


def test_a_landing_zone_that_is_not_there_leaves_no_lake(tmp_path: Path) -> None:
    assert f"{tmp_path / 'nowhere'} is not a folder" in refusal(stream(tmp_path / "nowhere"), tmp_path / "lake")
    assert list(tmp_path.iterdir()) == []


def test_a_lake_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert f"cannot write to the lake {tmp_path / 'file' / 'lake'}" in refusal(
        stream(tmp_path), tmp_path / "file" / "lake"
    )


def test_a_lake_on_which_another_job_works(tmp_path: Path) -> None:
    with local_lock(Lake.at(tmp_path / "lake")):
        assert "another job works on" in refusal(stream(tmp_path), tmp_path / "lake")


@pytest.mark.parametrize("command", [*OF_A_LAKE, ("stream", "--landing", ".", "--once")], ids=" ".join)
def test_a_lake_of_diagnose_stays_as_it_is(command: tuple[str, ...], lake: Path) -> None:
    (lake / WRITTEN_BY_DIAGNOSE).touch()
    before = names(lake)
    assert "was written by `wirelake diagnose --lake`" in refusal(command, lake)
    assert names(lake) == before


@of_a_lake
@pytest.mark.parametrize(
    "made", [lambda _: None, Path.touch, Path.mkdir, lambda place: (place / "photos").mkdir(parents=True)],
    ids=["missing", "a file", "empty", "foreign"],
)  # fmt: skip
def test_where_no_lake_is_none_is_made(
    command: tuple[str, ...], made: Callable[[Path], object], tmp_path: Path
) -> None:
    made(tmp_path / "place")
    before = names(tmp_path)
    assert f"there is no lake at {tmp_path / 'place'}: name the folder" in refusal(command, tmp_path / "place")
    assert names(tmp_path) == before


def _garble(log: Path) -> None:
    (log / f"{0:020}.json").write_text('{"commitInfo')


def _be_newer(log: Path) -> None:
    first = log / f"{0:020}.json"
    first.write_text(first.read_text().replace('"minReaderVersion":1', '"minReaderVersion":99'))


def _be_foreign(log: Path) -> None:
    shutil.rmtree(log.parent)
    write_deltalake(str(log.parent), pa.table({"finding_id": ["1"], "severity": [7]}))


@pytest.mark.parametrize("command", [*OF_A_LAKE, ("stream", "--landing", ".", "--once")], ids=" ".join)
@pytest.mark.parametrize(
    ("harm", "reason"),
    [
        (_garble, "Truncated record"),
        (_be_newer, "Unsupported minimum reader version 99"),
        (_be_foreign, "its column severity is int64, not string. Another release, or another program, wrote it"),
    ],
    ids=["damaged", "newer", "of other types"],
)
def test_a_table_that_cannot_be_read_is_named(
    command: tuple[str, ...], harm: Callable[[Path], None], reason: str, lake: Path
) -> None:
    harm(lake / FINDINGS.path / "_delta_log")
    told = refusal(command, lake)
    assert told.startswith(f"cannot read {lake}/{FINDINGS.path}: ")
    assert reason in told
    assert "\n" not in told


@of_a_lake
def test_what_an_older_release_did_not_make_is_no_reason(command: tuple[str, ...], lake: Path) -> None:
    shutil.rmtree(lake / FINDINGS.path)
    write_deltalake(str(lake / FINDINGS.path), pa.table({"finding_id": ["1"]}))
    assert isinstance(ended_by(command, lake), JavaError), "it continues to start one"


@of_a_lake
def test_without_frames_there_is_nothing_to_derive_from(command: tuple[str, ...], lake: Path) -> None:
    shutil.rmtree(lake / FRAMES.path)
    if command == ("check",):  # which says by table what is missing
        assert isinstance(ended_by(command, lake), JavaError)
    else:
        assert "there is no lake at" in refusal(command, lake)


def test_a_table_whose_creation_was_cut_off_is_not_there_yet(lake: Path) -> None:
    """A kill leaves a log without a commit; the next job makes the table."""
    shutil.rmtree(lake / FINDINGS.path)
    log = lake / FINDINGS.path / "_delta_log"
    log.mkdir(parents=True)
    (log / f".{0:020}.json.part").write_text('{"commi')
    check_made(lake, FRAMES)


def test_a_lake_in_an_object_store_is_looked_at_by_the_job() -> None:
    check_made("s3a://bucket/lake", FRAMES)


@of_a_lake
def test_a_typo_costs_no_second_of_loading(command: tuple[str, ...], tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOADED, *command, "--lake", str(tmp_path / "nowhere")],
        capture_output=True, text=True, check=False, cwd=ROOT, env={**os.environ, "JAVA_HOME": str(tmp_path)},
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "\n")
    assert done.stderr.startswith(f"error: there is no lake at {tmp_path / 'nowhere'}: name the folder")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (("backfill", "--from", "2026-11-03", "--to", "2026-11-01"), "the range ends (2026-11-01) before it begins"),
        (("maintain", "--erase", "colour=red"), "cannot erase colour=red: name one of client_ip, connection_id"),
        (("maintain", "--erase", "topic="), "cannot erase topic=: name one of"),
        (("maintain", "--erase", "topic"), "--erase topic: write NAME=VALUE"),
    ],
)
def test_what_makes_no_sense_is_refused_at_once(command: tuple[str, ...], reason: str, lake: Path) -> None:
    assert refusal(command, lake).startswith(reason)
