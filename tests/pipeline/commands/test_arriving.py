"""Messages are printed as they arrive: of a pipe, of a file that grows, of a ring."""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.paths import CAPTURES, ROOT

CAPTURE = CAPTURES / "version_negotiation.pcap"
HEADER = 24
CUT_OFF = "warning: cut off: 1 message whose end was not captured\n"


def packets() -> list[bytes]:
    data, found, at = CAPTURE.read_bytes(), [], HEADER
    while at < len(data):
        size = 16 + struct.unpack_from("<I", data, at + 8)[0]
        found.append(data[at : at + size])
        at += size
    return found


class Running:
    """A ``wirelake decode`` whose lines are read as they come."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "pipeline.cli", "decode", *arguments],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT,
        )  # fmt: skip
        assert self.process.stdout is not None
        os.set_blocking(self.process.stdout.fileno(), False)
        self.text = ""

    def wait_for(self, lines: int, seconds: float = 30) -> int:
        """Lines so far, once there are this many."""
        assert self.process.stdout is not None
        until = time.monotonic() + seconds
        while time.monotonic() < until and self.text.count("\n") < lines:
            self.text += (self.process.stdout.read() or b"").decode()
            time.sleep(0.01)
        return self.text.count("\n")

    def end(self) -> tuple[int, str]:
        self.process.send_signal(signal.SIGINT)
        assert self.process.stdout is not None
        os.set_blocking(self.process.stdout.fileno(), True)
        out, errors = self.process.communicate(timeout=30)
        self.text += out.decode()
        return self.process.returncode, errors.decode()


@pytest.fixture
def running() -> Iterator[list[Running]]:
    started: list[Running] = []
    yield started
    for one in started:
        one.process.kill()
        one.process.wait()


@pytest.mark.slow
def test_a_pipe_is_not_waited_for(running: list[Running]) -> None:
    some = packets()
    running.append(one := Running("-"))
    assert one.process.stdin is not None
    assert one.process.stdout is not None
    one.process.stdin.write(CAPTURE.read_bytes()[:HEADER] + b"".join(some[:40]))
    one.process.stdin.flush()
    early = one.wait_for(5)
    assert early >= 5, "the pipe is still open, and nothing more comes"
    one.process.stdin.write(b"".join(some[40:]))
    one.process.stdin.close()
    os.set_blocking(one.process.stdout.fileno(), True)
    one.text += one.process.stdout.read().decode()
    assert one.process.wait(30) == 0
    whole = subprocess.run(
        [sys.executable, "-m", "pipeline.cli", "decode", str(CAPTURE)], capture_output=True, text=True, cwd=ROOT,
        check=True,
    )  # fmt: skip
    # Arrival is not quite the order of time, by which they are numbered: a message counts from its first byte.
    assert sorted(line[7:] for line in one.text.splitlines()) == sorted(line[7:] for line in whole.stdout.splitlines())


@pytest.mark.slow
def test_a_file_that_grows_is_followed_until_it_is_stopped(running: list[Running], tmp_path: Path) -> None:
    some, file = packets(), tmp_path / "growing.pcap"
    file.write_bytes(CAPTURE.read_bytes()[:HEADER] + b"".join(some[:60]) + some[60][:9])
    running.append(one := Running("--follow", str(file)))
    first = one.wait_for(10)
    assert first >= 10
    with file.open("ab") as more:
        more.write(some[60][9:] + b"".join(some[61:]))
    assert one.wait_for(first + 20) >= first + 20
    assert one.end() == (0, "")


@pytest.mark.slow
def test_a_ring_is_followed_from_file_to_file(running: list[Running], tmp_path: Path) -> None:
    some, header = packets(), CAPTURE.read_bytes()[:HEADER]
    (tmp_path / "ring_1.pcap").write_bytes(header + b"".join(some[:100]))
    running.append(one := Running("--follow", str(tmp_path), "--json"))
    first = one.wait_for(10)
    (tmp_path / "ring_2.pcap").write_bytes(header + b"".join(some[100:200]))
    second = one.wait_for(first + 20)
    assert second >= first + 20
    (tmp_path / "ring_3.pcap").write_bytes(header + b"".join(some[200:]))
    assert one.wait_for(second + 20) >= second + 20
    code, errors = one.end()
    assert code == 0
    assert errors in ("", CUT_OFF)
    assert '"status":"malformed"' not in one.text


@pytest.mark.slow
def test_what_cannot_be_followed_is_a_sentence(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pipeline.cli", "decode", "--follow", str(tmp_path / "no.pcap")],
        capture_output=True, text=True, cwd=ROOT, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert "does not exist; --follow takes" in done.stderr
