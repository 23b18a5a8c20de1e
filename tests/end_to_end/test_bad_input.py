"""What does a user see who gives the wrong thing? A clear message, exit code 2, and nothing half-written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.end_to_end.conftest import CAPTURES, wirelake
from tests.requirements import require_java

pytestmark = pytest.mark.slow

SAMPLE = CAPTURES / "version_negotiation.pcap"


def truncated(folder: Path) -> Path:
    path = folder / "truncated.pcap"
    path.write_bytes(SAMPLE.read_bytes()[:-7])
    return path


def empty(folder: Path) -> Path:
    path = folder / "empty.pcap"
    path.touch()
    return path


def text(folder: Path) -> Path:
    path = folder / "notes.pcap"
    path.write_text("not a capture at all\n" * 10)
    return path


def missing(folder: Path) -> Path:
    return folder / "nowhere" / "missing.pcap"


def folder_without_captures(folder: Path) -> Path:
    path = folder / "empty"
    path.mkdir()
    return path


BAD = [
    (truncated, "without --strict"),
    (empty, "empty"),
    (text, "not a"),
    (missing, "does not exist"),
    (folder_without_captures, "without capture files"),
]


@pytest.mark.parametrize(("make", "reason"), BAD)
def test_an_unusable_capture_lands_nothing(tmp_path: Path, make: Callable[[Path], Path], reason: str) -> None:
    path = make(tmp_path)
    done = wirelake("capture", "read", path, "--landing", tmp_path / "landing", "--strict")
    assert done.returncode == 2
    assert reason in done.stderr
    assert path.name in done.stderr
    assert "Traceback" not in done.stderr
    assert [p for p in (tmp_path / "landing").rglob("*") if p.is_file()] == []


@pytest.mark.parametrize(("make", "reason"), BAD)
@pytest.mark.parametrize("command", [["decode"], ["explain", "--frame", "9999"]])
def test_decode_and_explain_report_the_same(
    tmp_path: Path, make: Callable[[Path], Path], reason: str, command: list[str]
) -> None:
    if make is truncated and command[0] == "explain":
        reason = "there is no frame"  # what precedes the damage can be explained
    path = make(tmp_path)
    done = wirelake(*command, path, *(["--strict"] if command[0] == "decode" else []))
    assert done.returncode == 2
    assert reason in done.stderr
    assert "Traceback" not in done.stderr


def test_the_complete_part_of_a_truncated_capture_can_be_read(tmp_path: Path) -> None:
    done = wirelake("capture", "read", truncated(tmp_path), "--landing", tmp_path / "landing")
    assert done.returncode == 0, done.stderr
    assert list((tmp_path / "landing").glob("date=*/*.parquet"))


def test_a_landing_zone_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = wirelake("capture", "read", SAMPLE, "--landing", tmp_path / "file" / "landing")
    assert done.returncode == 2
    assert "landing" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", ["findings", "sql"])
def test_a_lake_that_is_not_there(tmp_path: Path, command: str) -> None:
    question = ["FROM consumer_lag"] if command == "sql" else []
    done = wirelake(command, *question, "--lake", tmp_path / "nowhere")
    assert done.returncode == 2
    assert "nowhere" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.spark
def test_a_landing_zone_that_is_not_there(tmp_path: Path) -> None:
    require_java()
    done = wirelake("stream", "--landing", tmp_path / "nowhere", "--lake", tmp_path / "lake", "--once")
    assert done.returncode == 2
    assert "nowhere" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "lake").exists()


@pytest.mark.spark
def test_a_lake_that_cannot_be_written(tmp_path: Path) -> None:
    require_java()
    (tmp_path / "landing").mkdir()
    (tmp_path / "file").touch()
    done = wirelake("stream", "--landing", tmp_path / "landing", "--lake", tmp_path / "file" / "lake", "--once")
    assert done.returncode == 2
    assert "cannot write" in done.stderr
    assert "Traceback" not in done.stderr
    assert (tmp_path / "file").read_bytes() == b""


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["explain"], "--hex"),
        (["explain", "--hex", "0g"], "is no hex digit"),
        (["explain", "--hex", "0000", "--direction", "response"], "--api-key"),
        (["stream"], "landing"),
        (["stream", "--conf", "nowhere.yaml"], "nowhere.yaml"),
    ],
)
def test_wrong_use_names_what_is_right(arguments: list[str], reason: str, tmp_path: Path) -> None:
    done = wirelake(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert reason in done.stderr
    assert "Traceback" not in done.stderr
