"""``wirelake capture live``: packets of an interface into the landing zone.

Capturing needs a privilege, so a program made for it does that and nothing else: tcpdump, or dumpcap. Its packets come
through a pipe.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from pipeline.capture.landing.object_stores import open_store
from pipeline.capture.packets.packet import CaptureError, Damage, DamagedCaptureError
from pipeline.capture.packets.pcap import HEAD_BYTES, MAGICS
from pipeline.capture.packets.pipe import Pipe, Prefixed, Stop
from pipeline.capture.packets.sources import read_stream
from pipeline.capture.runs.drops import Drops, dropped_packets, without_reports
from pipeline.capture.runs.one_capture import check_link_types
from pipeline.capture.runs.options import RunOptions
from pipeline.capture.runs.run import CaptureRun
from pipeline.capture.stats import CaptureStats
from pipeline.setup.system import TCPDUMP, capture_right, install_command

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from pipeline.capture.fast_path.block import ArrivingBlocks

BUFFER_MIB = 32
"""Default of the kernel's buffer, MiB: what it holds while we are busy."""

DRAIN_S = 1.5
"""How long the program continues after a stop was asked for. The kernel hands over a block of packets when it is full
or a second old; what it still holds when the program ends is lost."""

PATIENCE_S = 10.0
"""How long the program may take to end when asked to, s."""

TOGETHER_S = 1.0
"""How long packets wait for others that are read together with them, s: each connection costs its part each time."""

_REST_S = 0.01
"""How long packets wait for others while few come, s."""

LOOK_EVERY_S = 10.0
"""How often tcpdump is asked what the kernel has dropped, s, so that the loss has a time. dumpcap reports it last."""

_PROGRAMS = ("tcpdump", "dumpcap")
_ICMP_ERRORS = (
    "(icmp and (icmp[0] == 3 or icmp[0] == 11) and icmp[17] == 6) or (icmp6 and ip6[40] <= 3 and ip6[54] == 6)"
)
"""Of ICMP what :mod:`pipeline.capture.network.icmp` reads: errors that quote a TCP segment."""

_MOST_WORDS = 4096
"""Bytes of its log that are looked at: the last reports."""

_NO_DEVICE = re.compile(
    r"no such device|does not exist|no interface|doesn't exist|not a valid interface", re.IGNORECASE
)
_NO_RIGHT = re.compile(r"permission|not permitted|are you root|must be root", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Tap:
    """What to capture.

    Attributes:
        interface: name of the interface; ``any`` for all of them (Linux).
        ports: TCP ports; none for all of them.
        buffer_mib: size of the kernel's buffer, MiB.
    """

    interface: str
    ports: Sequence[int] = ()
    buffer_mib: int = BUFFER_MIB

    @property
    def filter(self) -> str:
        """In the language of pcap-filter(7); with ICMP errors, which state why connections fail."""
        return " or ".join([*(f"tcp port {port}" for port in self.ports)] or ["tcp"]) + f" or {_ICMP_ERRORS}"

    def command(self) -> list[str]:
        """The program that captures, writing whole packets to its standard output.

        Raises:
            CaptureError: neither program is installed.
        """
        for name in _PROGRAMS:
            path = shutil.which(name)
            if path is not None and name == "tcpdump":
                kib = str(self.buffer_mib * 1024)
                return [path, "-i", self.interface, "-n", "-s", "0", "-B", kib, "-U", "-w", "-", self.filter]
            if path is not None:
                mib = str(self.buffer_mib)
                return [path, "-i", self.interface, "-q", "-s", "0", "-B", mib, "-P", "-w", "-", "-f", self.filter]
        raise CaptureError(self.interface, f"capturing needs tcpdump: {install_command(TCPDUMP)}")


def capture_live(
    tap: Tap,
    landing: str | Path,
    *,
    stop: Stop | None = None,
    on_start: Callable[[list[str]], None] = lambda _: None,
    on_progress: Callable[[CaptureStats], None] | None = None,
    **options: Unpack[RunOptions],
) -> CaptureStats:
    """Capture into the landing zone until a stop is asked for; the packets under way then are read first.

    Args:
        tap: what to capture.
        landing: path or URL of the landing zone; see pipeline.capture.landing.object_stores.
        stop: asked to, it ends in good order.
        on_start: called with the program's command once it captures.
        on_progress: called now and then.
        options: how the agent reads, and its frames land.

    Raises:
        CaptureError: the program is missing or cannot capture; also if it ends by itself, after all it has captured
            was published.
        LandingError: the landing zone cannot be written.
    """
    command, stop = tap.command(), stop or Stop()
    run = CaptureRun(open_store(landing), on_progress=on_progress, **options)
    run.agent.hasten()
    run.hurry()  # before the first packet, since it takes a while
    drops = Drops(run.agent.agent_id, tap.interface, _now_us())
    reader = _Reader(run, tap.interface)
    with run, _started(command) as program:

        def on_wait() -> bool:
            reader.catch_up()
            run.wait()
            if (log := program.recent_log()) is not None:
                run.stats.kernel_dropped = dropped_packets(log)
                run.add_now(drops.since_last(run.stats.kernel_dropped, _now_us()))
            if stop.asked(DRAIN_S):
                program.end()
            return not stop.asked(DRAIN_S + PATIENCE_S)

        pipe = Pipe(program.output, on_wait, _REST_S)
        begin = _first_bytes(pipe)
        if not begin:  # not even the header of a capture, which comes once the interface is open
            log = program.last_words()
            if program.has_failed or not stop.asked():
                raise _explained(tap, log)
        on_start(command)
        reader.read(begin, pipe)
        log = program.last_words()
        run.stats.kernel_dropped = dropped_packets(log)
        run.add_now(drops.since_last(run.stats.kernel_dropped, _now_us()))
        run.finish()
        if not stop.asked():
            raise CaptureError(
                tap.interface, f"{Path(command[0]).name} ended by itself: {_one_line(without_reports(log))}"
            )
        check_link_types(run.stats, tap.interface)
        return run.stats


class _Reader:
    """Takes what the program captures, as it comes."""

    def __init__(self, run: CaptureRun, name: str) -> None:
        self._run = run
        self._name = name
        self._arriving: ArrivingBlocks | None = None
        self._caught_up = time.monotonic()

    def read(self, begin: bytes, pipe: Pipe) -> None:
        """Take all packets; one whose end is missing, since the program was killed, is left out.

        Args:
            begin: first bytes of the capture; empty for none.
            pipe: what follows them.
        """
        from pipeline.capture.fast_path.block import ArrivingBlocks  # noqa: PLC0415 - loads compiled code

        try:
            if begin[:4] in MAGICS and len(begin) == HEAD_BYTES:
                self._arriving = ArrivingBlocks(pipe, begin, self._run.take_block)
                self._arriving.read()
            elif begin:
                for packet in read_stream(Prefixed(begin, pipe), self._name):
                    self._run.take(packet)
        except (Damage, DamagedCaptureError):
            pass  # the caller reports that it did not end in good order

    def catch_up(self) -> None:
        """Take the packets that have come so far, if those that came first have waited long enough."""
        now = time.monotonic()
        if self._arriving is not None and now - self._caught_up >= TOGETHER_S:
            self._caught_up = now
            self._arriving.catch_up()


def _first_bytes(pipe: Pipe) -> bytes:
    """The head of a capture, or what there is of it."""
    begin = b""
    while len(begin) < HEAD_BYTES and (more := pipe.read(HEAD_BYTES - len(begin))):
        begin += more
    return begin


def _explained(tap: Tap, log: str) -> CaptureError:
    """What the last words of a program that did not start mean, and what to do."""
    program = shutil.which(tap.command()[0]) or "tcpdump"
    if _NO_RIGHT.search(log):
        return CaptureError(
            tap.interface,
            f"this user may not capture; run as root, or give the program the right, once: {capture_right(program)}",
        )
    if _NO_DEVICE.search(log):
        names = ", ".join(["any", *sorted(name for _, name in socket.if_nameindex())])
        return CaptureError(tap.interface, f"there is no such interface; --interface can be one of: {names}")
    return CaptureError(tap.interface, f"{Path(program).name} does not start: {_one_line(log)}")


def _now_us() -> int:
    return time.time_ns() // 1000


def _one_line(log: str) -> str:
    return "; ".join(line.strip() for line in log.splitlines() if line.strip()) or "it printed nothing"


class _Program:
    """The capturing program, running."""

    def __init__(self, process: subprocess.Popen[bytes], output: int, words: IO[bytes]) -> None:
        self.output = output
        self._process = process
        self._words = words
        self._can_report = Path(str(process.args[0])).name == "tcpdump" if isinstance(process.args, list) else False
        self._asked = time.monotonic()

    def recent_log(self) -> str | None:
        """Now and then what it has printed so far; then it is asked again for what was dropped. None: not yet."""
        if not self._can_report or time.monotonic() - self._asked < LOOK_EVERY_S:
            return None
        self._asked = time.monotonic()
        # Not by seeking: it writes where this file is.
        log = os.pread(self._words.fileno(), _MOST_WORDS, max(0, os.fstat(self._words.fileno()).st_size - _MOST_WORDS))
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGUSR1)
        return log.decode(errors="replace")

    def end(self) -> None:
        """Ask it to end in good order; it writes what it still has."""
        if self._process.poll() is None:
            self._process.terminate()

    @property
    def has_failed(self) -> bool:
        """Whether it has ended with an error of its own, not because it was asked to."""
        return (self._process.returncode or 0) > 0

    def last_words(self) -> str:
        """Wait for its end; what it wrote to standard error."""
        try:
            self._process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._words.seek(0)
        return self._words.read().decode(errors="replace")


@contextmanager
def _started(command: list[str]) -> Iterator[_Program]:
    """The program, in a session of its own: Ctrl-C is for us, and we end it in good time."""
    read_end, write_end = os.pipe()
    with io.FileIO(read_end) as output, tempfile.TemporaryFile() as words:
        with io.FileIO(write_end, "wb") as writing:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=writing, stderr=words, start_new_session=True
            )
        program = _Program(process, output.fileno(), words)
        try:
            yield program
        finally:
            output.close()  # it may be waiting for us to read
            program.end()
            program.last_words()
