"""What a folder is that a user names, and a URL with a slash too few: told, never made."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from pipeline.cli import app
from pipeline.errors import UserError
from pipeline.lake.path_checks import meant_url
from pipeline.tables import FINDINGS
from tests.paths import CAPTURES
from tests.pipeline.rows import write

HEALTHY = str(CAPTURES / "healthy.pcap")


def told(*arguments: str) -> str:
    error = CliRunner().invoke(app, arguments).exception
    assert isinstance(error, UserError), error
    return str(error)


@pytest.fixture
def lake(tmp_path: Path) -> str:
    write(tmp_path / "lake", FINDINGS, [])
    return str(tmp_path / "lake")


@pytest.fixture
def landing(tmp_path: Path) -> str:
    (tmp_path / "landing" / "date=2026-11-21").mkdir(parents=True)
    return str(tmp_path / "landing")


@pytest.mark.parametrize(
    ("place", "url"),
    [
        ("s3:/bucket/x", "s3://bucket/x"), ("file:/mnt/x", "file:///mnt/x"), ("abfss:/a@b/c", "abfss://a@b/c"),
        ("s3://bucket/x", ""), ("/mnt/x", ""), ("lake", ""), ("./s3:/bucket", ""), ("C:/lake", ""), ("a/b:/c", ""),
        ("at-12:30", ""), ("", ""),
    ],
)  # fmt: skip
def test_a_slash_that_is_missing(place: str, url: str) -> None:
    assert meant_url(place) == url


@pytest.mark.parametrize(
    "arguments",
    [
        ("capture", "read", HEALTHY, "--landing"), ("capture", "live", "--interface", "lo", "--landing"),
        ("stream", "--lake", "lake", "--landing"), ("stream", "--landing", "landing", "--lake"), ("check", "--lake"),
        ("maintain", "--lake"), ("backfill", "--from", "2026-11-21", "--to", "2026-11-21", "--lake"),
        ("findings", "--lake"), ("tables", "--lake"), ("sql", "SELECT 1", "--lake"), ("dashboard", "--lake"),
    ],
    ids=lambda arguments: " ".join(arguments[:2]),
)  # fmt: skip
def test_it_is_asked_for_by_every_command(
    arguments: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "s3:/bucket/x: a URL has two slashes, s3://bucket/x" in told(*arguments, "s3:/bucket/x")
    assert list(tmp_path.iterdir()) == []


def test_a_capture_does_not_land_in_a_lake(lake: str) -> None:
    assert "is a lake, not a landing zone" in told("capture", "read", HEALTHY, "--landing", lake)
    assert sorted(path.name for path in Path(lake).iterdir()) == ["gold"]


@pytest.mark.parametrize("command", [("decode",), ("explain", "--frame", "1"), ("diagnose",), ("top", "--once")])
def test_a_lake_is_no_capture(command: tuple[str, ...], lake: str) -> None:
    assert f"is a lake, which holds no captures: `wirelake findings --lake {lake}`" in told(*command, lake)


def test_a_landing_zone_has_commands_of_its_own(landing: str) -> None:
    for command in (("decode",), ("explain", "--frame", "1")):
        assert f"is a landing zone: `wirelake diagnose {landing}` and `wirelake stream" in told(*command, landing)
    for command in (("findings",), ("tables",), ("sql", "SELECT 1")):
        error = told(*command, "--lake", landing)
        assert f"`wirelake diagnose {landing} --lake DIR` or `wirelake stream --landing {landing}" in error
