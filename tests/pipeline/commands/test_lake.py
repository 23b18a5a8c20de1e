"""Places that ``wirelake stream`` cannot use are refused before a JVM starts, which takes ten seconds."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from pipeline.cli import app
from pipeline.errors import UserError
from pipeline.streaming.storage.lake import Lake
from pipeline.streaming.storage.lock import job_lock
from pipeline.tables import WRITTEN_BY_DIAGNOSE

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def no_java(monkeypatch: pytest.MonkeyPatch) -> None:
    def look() -> None:
        raise AssertionError("a JVM is looked for")

    monkeypatch.setattr("pipeline.commands.lake.find_java", look)


def refusal(landing: Path, lake: Path) -> str:
    done = CliRunner().invoke(app, ["stream", "--landing", str(landing), "--lake", str(lake), "--once"])
    assert isinstance(done.exception, UserError), done.exception
    return str(done.exception)


def test_a_landing_zone_that_is_not_there_leaves_no_lake(tmp_path: Path) -> None:
    assert f"{tmp_path / 'nowhere'} is not a folder" in refusal(tmp_path / "nowhere", tmp_path / "lake")
    assert list(tmp_path.iterdir()) == []


def test_a_lake_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert f"cannot write to the lake {tmp_path / 'file' / 'lake'}" in refusal(tmp_path, tmp_path / "file" / "lake")


def test_a_lake_of_diagnose_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake" / WRITTEN_BY_DIAGNOSE).touch()
    assert "was written by `wirelake diagnose --lake`" in refusal(tmp_path, tmp_path / "lake")
    assert [path.name for path in (tmp_path / "lake").iterdir()] == [WRITTEN_BY_DIAGNOSE]


def test_a_lake_on_which_another_job_works(tmp_path: Path) -> None:
    with job_lock(Lake.at(tmp_path / "lake")):
        assert "another job works on" in refusal(tmp_path, tmp_path / "lake")
