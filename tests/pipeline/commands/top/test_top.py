"""``wirelake top`` as a program: one screen and the end, a pipe, a terminal with keys, bad input."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner, Result

from pipeline.cli import app
from pipeline.config.settings import StreamSettings
from pipeline.embedded.inputs import read_inputs
from pipeline.embedded.live_monitor import LiveMonitor
from pipeline.errors import UserError
from tests.paths import CAPTURES, ROOT
from tests.pipeline.commands.top.golden import WIDTHS, file_of
from tests.pipeline.embedded.test_streaming_diagnoser import pieces

STUCK, HEALTHY = CAPTURES / "stuck_commit.pcap", CAPTURES / "healthy.pcap"
STEERS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def invoke(*arguments: str | Path, columns: int = 120) -> Result:
    environment = {"COLUMNS": str(columns), "TERM": "xterm", "NO_COLOR": None}
    return CliRunner().invoke(app, ["top", *map(str, arguments)], env=environment)


@pytest.mark.parametrize("columns", WIDTHS)
def test_one_screen_is_the_kept_one_and_the_exit_code_tells_of_critical_incidents(columns: int) -> None:
    done = invoke(STUCK, "--once", columns=columns)
    kept = file_of("stuck_commit.pcap", columns).read_text(encoding="utf-8")
    assert done.stdout.splitlines()[1:] == kept.splitlines()[1:]
    assert done.exit_code == 1
    assert "\x1b" not in done.stdout


def test_only_the_ports_that_were_asked_for() -> None:
    done = invoke(STUCK, "--once", "--port", "9092", "--port", "9093")
    assert "payments" in done.stdout or "billing" in done.stdout
    other = invoke(STUCK, "--once", "--port", "27017")
    assert isinstance(other.exception, UserError)
    assert "but of port 9092" in str(other.exception)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("a.pcap", "b.pcap"), "several captures need --once"),
        (("none.pcap", "--once"), "does not exist"),
        ((ROOT / "README.md", "--once"), "README.md"),
        ((STUCK, "--once", "--conf", "none.yaml"), "none.yaml"),
    ],
)
def test_bad_input_is_a_sentence(arguments: tuple[str | Path, ...], reason: str) -> None:
    done = invoke(*arguments)
    assert isinstance(done.exception, UserError)
    assert reason in str(done.exception)


@pytest.mark.parametrize("arguments", [("--every", "0.1"), ("--window", "0"), ("--port", "0"), ("--sort", "name")])
def test_wrong_options_are_refused(arguments: tuple[str, ...]) -> None:
    done = invoke(STUCK, *arguments)
    assert done.exit_code == 2
    assert arguments[0] in done.stderr


def test_the_help_has_examples() -> None:
    text = invoke("--help").stdout
    assert "| wirelake top -" in text
    assert "--once" in text


def test_an_incident_is_new_for_a_while_whatever_the_pieces() -> None:
    watch = LiveMonitor(StreamSettings(), 60_000_000, by_kernel=False)
    news: list[dict[str, str]] = []
    for frames, gaps in pieces(STUCK, [0.3, 0.6]):
        watch.add(frames, gaps)
        watch.judge()
        found = watch.now()
        assert found is not None
        news.append({str(row["rule"]): found.news.get(row["incident_id"], "") for row in found.incidents})
    assert any("new" in one.values() for one in news)
    assert watch.last_us is not None
    later = watch.now(watch.last_us + 100_000_000)
    assert later is not None
    assert later.incidents
    assert not later.news
    assert not later.traffic.apis
    assert later.window.last_us == watch.last_us + 100_000_000
    assert later.groups
    assert all(group.members == 0 for group in later.groups)


def test_what_a_client_said_of_its_library_outlives_what_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.embedded.streaming_diagnoser.LEAST_EXCHANGES", 100)
    watch = LiveMonitor(StreamSettings(), 5_000_000, by_kernel=False)
    for frames, gaps in pieces(STUCK, []):
        watch.add(frames, gaps)
    watch.judge()
    assert watch.now() is not None
    for _ in range(3):
        watch.keep_less()
    watch.judge()
    found = watch.now()
    assert found is not None
    assert found.since_us is not None
    assert {one.client: one.software for one in found.traffic.clients}["billing-2"].startswith("apache-kafka-java")


def test_frames_of_other_ports_are_left_out_and_named() -> None:
    landed = read_inputs([str(HEALTHY)])
    watch = LiveMonitor(StreamSettings(), 60_000_000, frozenset({1}), by_kernel=False)
    assert watch.now() is None
    watch.add(landed.frames, landed.gaps)
    watch.judge()
    assert watch.now() is None
    assert watch.frames == 0
    assert watch.other_ports == [9092]
    assert isinstance(landed.frames, pa.Table)


def start(*arguments: str | Path, **options: Any) -> subprocess.Popen[bytes]:
    inherited = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
    return subprocess.Popen(
        [sys.executable, "-m", "pipeline.cli", "top", *map(str, arguments)], cwd=ROOT,
        env={**inherited, "TERM": "xterm-256color"}, **options,
    )  # fmt: skip


def take_terminal() -> None:
    """Standard output becomes the controlling terminal, in a new process."""
    os.setsid()
    fcntl.ioctl(1, termios.TIOCSCTTY, 0)


class Terminal:
    """A terminal of 40 lines and 120 columns, and what was written to it."""

    def __init__(self) -> None:
        self.ours, self.theirs = pty.openpty()
        fcntl.ioctl(self.theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        self.settings = termios.tcgetattr(self.theirs)
        self.raw = ""

    def until(self, pattern: str, seconds: float = 60) -> str:
        """What is written from now on until something is; all control sequences left out."""
        begin, found = time.monotonic(), ""
        while time.monotonic() - begin < seconds:
            if select.select([self.ours], [], [], 0.2)[0]:
                some = os.read(self.ours, 65536).decode("utf-8", "replace")
                self.raw += some
                found += some
            plain = STEERS.sub("", found)
            if re.search(pattern, plain):
                return plain
        raise AssertionError(f"{pattern} did not come, but {STEERS.sub('', found)[-3000:]}")

    def rest(self, process: subprocess.Popen[bytes]) -> str:
        """What is still written until the process has ended."""
        begin, found = time.monotonic(), ""
        while select.select([self.ours], [], [], 0.2)[0] or process.poll() is None:
            assert time.monotonic() - begin < 60
            if select.select([self.ours], [], [], 0)[0]:
                found += os.read(self.ours, 65536).decode("utf-8", "replace")
        self.raw += found
        return STEERS.sub("", found)

    def press(self, key: str) -> None:
        os.write(self.ours, key.encode())


@pytest.mark.slow
class TestLive:
    def test_a_ring_on_a_terminal_with_keys(self, tmp_path: Path) -> None:
        shutil.copy(STUCK, tmp_path / "ring0.pcap")
        shutil.copy(HEALTHY, tmp_path / "ring1.pcap")
        terminal = Terminal()
        process = start(
            tmp_path, "--every", "0.5", stdin=terminal.theirs, stdout=terminal.theirs, stderr=terminal.theirs
        )
        terminal.until(r"CRITICAL NEW[^\n]*billing")
        terminal.until("LAG▼")
        terminal.press("t")
        terminal.until("TREND▼")
        terminal.press("E")
        terminal.until("ERRORS▼")
        process.send_signal(signal.SIGTSTP)
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        assert termios.tcgetattr(terminal.theirs)[3] == terminal.settings[3]
        process.send_signal(signal.SIGCONT)
        terminal.until("APIS")
        terminal.press("q")
        last = terminal.rest(process)
        assert process.returncode == 0
        assert "CLIENTS" in last
        assert "ERRORS▼" in last
        assert "\x1b[?1049h" in terminal.raw
        assert "\x1b[?1049l" in terminal.raw
        assert termios.tcgetattr(terminal.theirs)[3] == terminal.settings[3]

    def test_a_pipe_beside_a_terminal_to_its_end(self) -> None:
        terminal = Terminal()
        process = start(
            "-", "--every", "0.5", stdin=subprocess.PIPE, stdout=terminal.theirs, stderr=terminal.theirs,
            preexec_fn=take_terminal,
        )  # fmt: skip
        assert process.stdin
        process.stdin.write(STUCK.read_bytes())
        process.stdin.flush()
        terminal.until(r"CRITICAL NEW[^\n]*billing")
        terminal.press("p")
        terminal.until("P99▼")
        process.stdin.close()
        last = terminal.rest(process)
        assert process.returncode == 0
        assert "1,330 exchanges" in last
        assert "billing" in last

    def test_into_a_pipe_go_plain_screens_and_a_signal_ends_it(self) -> None:
        process = start("-", "--every", "0.5", stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert process.stdin
        assert process.stdout
        process.stdin.write(STUCK.read_bytes())
        process.stdin.flush()
        found = b""
        while found.count(b"wirelake top -") < 2:
            more = os.read(process.stdout.fileno(), 65536)
            assert more, process.communicate()[1].decode()  # it has ended
            found += more
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors.decode()
        text = (found + rest).decode()
        assert "\x1b" not in text
        assert text.count("wirelake top -") >= 3
        assert not errors

    @pytest.mark.parametrize(("given", "reason"), [("-", "is empty"), ("none.pcap", "does not exist")])
    def test_nothing_to_read(self, given: str, reason: str) -> None:
        process = start(given, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        printed, errors = process.communicate(timeout=60)
        assert process.returncode == 2
        assert reason in errors.decode()
        assert not printed

    def test_a_terminal_is_no_capture(self) -> None:
        terminal = Terminal()
        process = start("-", stdin=terminal.theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 2
        assert "standard input is a terminal" in errors.decode()
