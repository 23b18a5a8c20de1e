"""No room for what is read, or for the lake; or told to end meanwhile: a sentence, and nothing is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pipeline.capture.runs.reading import read_capture
from pipeline.embedded.lake import write_lake
from pipeline.errors import UserError
from tests.paths import CAPTURES, ROOT

HEALTHY = CAPTURES / "healthy.pcap"
SMALL = 40
"""Blocks of 512 bytes that a file may have where there is too little room: the system refuses more."""

TOLD_TWICE = """
import signal
from pipeline.embedded.private_folder import private_folder
with private_folder() as folder:
    try:
        signal.raise_signal(signal.SIGHUP)
    finally:
        signal.raise_signal(signal.SIGHUP)
        signal.raise_signal(signal.SIGTERM)
"""

pytestmark = pytest.mark.slow


def start(
    folder: Path, *arguments: str | Path, largest: int | str = "unlimited", before: str = ":"
) -> subprocess.Popen[bytes]:
    """A diagnosis of which temporary files go to a folder, and no file may have more than this many blocks."""
    folder.mkdir(exist_ok=True)
    limited = ["sh", "-c", f'ulimit -f {largest} && {before} && exec "$@"', "sh"]
    return subprocess.Popen(
        [*limited, sys.executable, "-m", "pipeline.cli", "diagnose", *map(str, arguments)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT,
        env={**os.environ, "TMPDIR": str(folder)},
    )  # fmt: skip


@pytest.mark.parametrize("way", [(), ("--follow",)], ids=["at once", "followed"])
def test_without_room_for_what_is_read_it_says_where_and_does_not_wait(tmp_path: Path, way: tuple[str, ...]) -> None:
    process = start(tmp_path / "tmp", *way, HEALTHY, largest=SMALL)
    printed, errors = process.communicate(timeout=30)
    assert process.returncode == 2
    assert not printed
    (line,) = errors.decode().splitlines()
    assert f"error: the temporary folder {tmp_path / 'tmp' / 'wirelake-'}" in line
    assert "File too large" in line
    assert "TMPDIR" in line
    assert list((tmp_path / "tmp").iterdir()) == []


def wait_for_frames(folder: Path) -> None:
    deadline = time.monotonic() + 30
    while not list(folder.glob("wirelake-*")) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert list(folder.glob("wirelake-*"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_no_frames_behind(tmp_path: Path, number: int) -> None:
    folder = tmp_path / "tmp"
    process = start(folder, "-")
    assert process.stdin
    process.stdin.write(HEALTHY.read_bytes())
    process.stdin.flush()
    wait_for_frames(folder)
    process.send_signal(number)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 128 + number
    assert not errors
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("way", [(), ("--follow",)], ids=["at once", "followed"])
def test_under_nohup_a_closed_terminal_ends_nothing(tmp_path: Path, way: tuple[str, ...]) -> None:
    folder = tmp_path / "tmp"
    process = start(folder, *way, "-", before="trap '' HUP")
    assert process.stdin
    process.stdin.write(HEALTHY.read_bytes())
    process.stdin.flush()
    wait_for_frames(folder)
    process.send_signal(signal.SIGHUP)
    printed, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert b"exchanges" in printed


def test_a_second_signal_does_not_keep_the_folder_from_going(tmp_path: Path) -> None:
    """A terminal that closes may tell it twice: by its shell, and by the system."""
    done = subprocess.run(
        [sys.executable, "-c", TOLD_TWICE], check=False, cwd=ROOT, env={**os.environ, "TMPDIR": str(tmp_path)}
    )
    assert done.returncode == 128 + signal.SIGHUP
    assert list(tmp_path.iterdir()) == []


def test_without_room_for_the_lake_it_says_why_in_plain_words(tmp_path: Path) -> None:
    read_capture([HEALTHY], tmp_path / "landing")
    process = start(tmp_path / "tmp", tmp_path / "landing", "--lake", tmp_path / "lake", largest=SMALL)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 2
    assert errors.decode() == f"error: cannot write the lake {tmp_path}/lake: File too large\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["landing", "tmp"]


def test_what_delta_rs_says_in_colours_becomes_plain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = "Generic LocalFileSystem error\n  \x1b[31m↳\x1b[0m Unable to copy\n   \x1b[31m↳\x1b[0m {}\n"
    for said, told in (("No space left on device (os error 28)", "No space left on device"), ("it burns", "it burns")):

        def fail(*_: object, said: str = said, **__: object) -> None:
            raise OSError(tree.format(said))

        monkeypatch.setattr("pipeline.embedded.lake._write", fail)
        with pytest.raises(UserError) as failed:
            write_lake(tmp_path / "lake", {})
        assert str(failed.value) == f"cannot write the lake {tmp_path}/lake: {told}"
        assert list(tmp_path.iterdir()) == []
