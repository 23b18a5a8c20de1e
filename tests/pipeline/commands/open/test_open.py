"""The command ``wirelake open`` in a real terminal, and where there is none."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pipeline.cli import app
from pipeline.errors import UserError
from tests.paths import CAPTURES, ROOT
from tests.pipeline.commands.top.test_top import Terminal

STUCK = str(CAPTURES / "stuck_commit.pcap")


@contextmanager
def started(terminal: Terminal, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """The command in a terminal, ended whatever happens."""
    inherited = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
    process = subprocess.Popen(
        [sys.executable, "-m", "pipeline.cli", "open", *arguments],
        stdin=terminal.theirs, stdout=terminal.theirs, stderr=terminal.theirs, cwd=ROOT,
        env={**inherited, "TERM": "xterm-256color"}, start_new_session=True,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def opened(terminal: Terminal, text: str) -> None:
    """Press Enter until a text is shown: what is pressed while lines are still drawn goes to those before."""
    for _ in range(10):
        terminal.press("\r")
        with suppress(AssertionError):
            terminal.until(text, 6)
            return
    raise AssertionError(f"{text} did not come")


def is_restored(terminal: Terminal) -> bool:
    """Whether the terminal is as it was: its settings, its screen, its cursor, no reports of the mouse."""
    last = {name: terminal.raw.rfind(f"\x1b[?{name}") for name in ("1049h", "1049l", "25h", "25l", "1000h", "1000l")}
    pairs = (("1049h", "1049l"), ("25l", "25h"), ("1000h", "1000l"))
    is_undone = all(-1 < last[done] < last[undone] for done, undone in pairs)
    return is_undone and termios.tcgetattr(terminal.theirs) == terminal.settings


@pytest.mark.slow
class TestInATerminal:
    def test_from_an_incident_to_the_bytes_of_a_field(self) -> None:
        terminal = Terminal()
        with started(terminal, STUCK) as process:
            terminal.until("CRITICAL")
            terminal.press("\r")
            terminal.until("What happened")
            terminal.press("\r")
            terminal.until("Request, 111 B")
            terminal.press("/groupId")
            terminal.until("20-27")
            opened(terminal, "20 to 27 of the message")
            terminal.press("q")
            terminal.rest(process)
            assert process.returncode == 0
        assert is_restored(terminal)

    def test_a_capture_that_grows(self, tmp_path: Path) -> None:
        whole = Path(STUCK).read_bytes()
        capture = tmp_path / "growing.pcap"
        capture.write_bytes(whole[: len(whole) // 2])
        terminal = Terminal()
        with started(terminal, str(capture)) as process:
            terminal.until("CRITICAL")
            capture.write_bytes(whole)
            terminal.until("1,330 exchanges", 300)
            terminal.press("q")
            terminal.rest(process)
            assert process.returncode == 0
        assert is_restored(terminal)

    @pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
    def test_a_signal_gives_the_terminal_back(self, number: signal.Signals, code: int) -> None:
        terminal = Terminal()
        with started(terminal, STUCK) as process:
            terminal.until("CRITICAL")
            process.send_signal(number)
            terminal.rest(process)
            assert process.returncode == code
        assert is_restored(terminal)

    def test_what_cannot_be_read_is_a_sentence(self) -> None:
        terminal = Terminal()
        with started(terminal, "none.pcap") as process:
            text = terminal.rest(process)
            assert process.returncode == 2
        assert re.search(r"error: none\.pcap.* does not exist", text)
        assert "1049h" not in terminal.raw


def test_without_a_terminal_it_names_what_to_use() -> None:
    command = [sys.executable, "-m", "pipeline.cli", "open", STUCK]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, stdin=subprocess.DEVNULL)
    assert done.returncode == 2
    assert done.stderr == (
        "error: `wirelake open` needs a terminal: for a pipe or a file use `wirelake diagnose FILE` or `wirelake "
        "findings --lake LAKE`\n"
    )
    assert not done.stdout


def test_a_pipe_is_for_another_command() -> None:
    done = CliRunner().invoke(app, ["open", "-"])
    assert isinstance(done.exception, UserError)
    assert "`wirelake diagnose -`" in str(done.exception)


def test_help_needs_no_terminal() -> None:
    shown = CliRunner().invoke(app, ["open", "--help"])
    assert shown.exit_code == 0
    assert "wirelake open incident.pcap" in shown.stdout
