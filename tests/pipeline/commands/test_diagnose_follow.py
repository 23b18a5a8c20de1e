"""``wirelake diagnose --follow`` as a program: of a pipe, a directory of rotated files, a landing zone."""

from __future__ import annotations

import fcntl
import json
import shutil
import signal
import subprocess
import sys
import termios
import time
from array import array
from pathlib import Path
from typing import IO, Any

import pytest

from pipeline.capture.packets.pipe import Stop
from pipeline.capture.runs.reading import read_capture
from pipeline.commands.diagnose_follow import _follow
from pipeline.commands.top.watch import _Session
from pipeline.terminal.console import Console
from tests.paths import CAPTURES, ROOT

STUCK, HEALTHY = CAPTURES / "stuck_commit.pcap", CAPTURES / "healthy.pcap"

pytestmark = pytest.mark.slow


def start(*arguments: str | Path, **options: Any) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "pipeline.cli", "diagnose", "--follow", *map(str, arguments)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT, **options,
    )  # fmt: skip


def changes_of(printed: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in printed.splitlines()]


def findings_of(*arguments: str | Path) -> list[dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, "-m", "pipeline.cli", "diagnose", *map(str, arguments), "--json"],
        capture_output=True, check=False, cwd=ROOT,
    )  # fmt: skip
    return changes_of(done.stdout)


def last_of(changes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each finding as it was reported last, by rule and subject."""
    newest = {one["finding_id"]: one for one in changes if "finding_id" in one}
    return sorted(
        ({"rule": one["rule"], "subject": one["subject"], "state": one["state"]} for one in newest.values()), key=str
    )


def test_a_pipe_is_followed_while_it_is_open_and_to_its_end() -> None:
    process = start("-", "--json", stdin=subprocess.PIPE)
    assert process.stdin
    assert process.stdout
    data = STUCK.read_bytes()
    process.stdin.write(data[: len(data) * 9 // 10])
    process.stdin.flush()
    first = json.loads(process.stdout.readline())
    assert (first["change"], first["rule"], first["subject"]) == ("new", "stuck_commit", "billing/payments-2")
    assert process.poll() is None
    process.stdin.write(data[len(data) * 9 // 10 :])
    process.stdin.close()
    *changes, end = changes_of(process.stdout.read())
    assert process.wait(60) == 1
    found = findings_of(STUCK)
    assert end["change"] == "end"
    assert (end["findings"], end["exchanges"], end["connections"]) == (len(found), 1330, 16)
    assert last_of([first, *changes]) == last_of(found)
    reported = [(one["change"], one["finding_id"]) for one in (first, *changes)]
    assert len(reported) == len(set(reported))


def test_what_came_before_a_pipe_was_cut_off_is_judged_and_the_cut_is_reported() -> None:
    process = start("-", "--json", stdin=subprocess.PIPE)
    printed, errors = process.communicate(HEALTHY.read_bytes()[:-7], timeout=60)
    assert process.returncode == 2
    (end,) = changes_of(printed)
    assert (end["change"], end["findings"]) == ("end", 0)
    assert end["exchanges"] > 600
    assert errors.decode().startswith("warning: -: truncated at byte")


def wait_until_read(pipe: IO[bytes]) -> None:
    """Return when the other end has read all that was written into a pipe."""
    waiting = array("i", [1])
    while waiting[0]:
        time.sleep(0.05)
        fcntl.ioctl(pipe, termios.FIONREAD, waiting)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_with_all_that_came(number: int) -> None:
    process = start("-", stdin=subprocess.PIPE)
    assert process.stdin
    assert process.stdout
    assert process.stderr
    process.stdin.write(STUCK.read_bytes())
    process.stdin.flush()
    before = b""
    while b" NEW " not in before:
        line = process.stdout.readline()
        assert line, process.stderr.read().decode()
        before += line
    wait_until_read(process.stdin)
    process.send_signal(number)
    text = (before + process.stdout.read()).decode()  # what readline has buffered, too
    errors = process.stderr.read()
    assert process.wait(60) == 1, errors.decode()
    assert "NEW CRITICAL billing-1 (127.0.0.1) sets group billing back" in text
    assert text.count(" NEW ") == 1
    assert "The end. Read 5,463 packets, 16 connections, 1,330 exchanges" in text
    assert text.index("The end.") < text.rindex("CRITICAL billing-1")
    assert not errors


def test_a_directory_of_rotated_files(tmp_path: Path) -> None:
    shutil.copy(STUCK, tmp_path / "ring0.pcap")
    process = start(tmp_path, "--json")
    shutil.copy(HEALTHY, tmp_path / "ring1.pcap")
    assert process.stdout
    first = json.loads(process.stdout.readline())
    assert first["rule"] == "stuck_commit"
    process.send_signal(signal.SIGINT)
    printed = process.stdout.read()  # what readline has buffered, too
    assert process.wait(60) == 1
    assert changes_of(printed)[-1]["change"] == "end"


def test_a_landing_zone_that_grows_and_is_left_as_it_is(tmp_path: Path) -> None:
    landing = tmp_path / "landing"
    read_capture([HEALTHY], landing)
    process = start(landing, "--json")
    read_capture([STUCK], landing)
    assert process.stdout
    first = json.loads(process.stdout.readline())
    assert first["rule"] == "stuck_commit"
    held = sorted(landing.rglob("*.parquet"))
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 1
    assert held == sorted(landing.rglob("*.parquet"))
    assert held


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("-", "--lake", "lake"), "--follow keeps no tables"),
        (("a.pcap", "b.pcap"), "--follow takes one of"),
        (("none.pcap",), "does not exist"),
        (("-",), "is empty"),
    ],
)
def test_wrong_use_and_nothing_to_read(arguments: tuple[str, ...], reason: str) -> None:
    process = start(*arguments, stdin=subprocess.DEVNULL)
    printed, errors = process.communicate(timeout=60)
    assert process.returncode == 2
    assert reason in errors.decode()
    assert not printed


class Endless:
    """A feed of which more and more comes, until it is asked to end; replaces what takes it as well."""

    can_end, is_behind, has_something, frames, last_us, other_ports, errors = True, True, True, 0, None, (), ()

    def __init__(self) -> None:
        self.taken, self.judged, self.is_asked, self.has_ended = 0, 0, False, False

    def take(self) -> tuple[str, str] | None:
        if self.has_ended:
            return None
        self.taken += 1
        assert self.taken < 1000, "nobody asks it to end"
        self.has_ended = self.is_asked
        return "frames", "gaps"

    def stop(self) -> None:
        self.is_asked = True

    def judge(self) -> list[Any]:
        self.judged += 1
        return []

    def add(self, *_: str) -> None: ...
    def changes(self, *_: object) -> None: ...

    def _nothing(self) -> list[Any]:
        return []

    notes = limits = incident_changes = _nothing


@pytest.mark.parametrize("way", ["diagnose --follow", "top"])
def test_it_ends_when_asked_to_though_more_and_more_comes(way: str) -> None:
    feed: Any = Endless()
    stop = Stop()
    stop.ask()
    if way == "top":
        order: Any = None
        assert not _Session("-", feed, order, 2.0, Console()).run(feed, stop)
    else:
        _follow(feed, feed, stop, feed)
    assert feed.has_ended
    assert feed.judged
