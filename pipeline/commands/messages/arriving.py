"""Frames as they arrive: of a pipe, of a capture file that grows, of a ring into which a capture rotates its files."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from decoder.model import Frame, Gap, PayloadPolicy
from pipeline.capture.packets.packet import CaptureError, DamagedCaptureError, Packet
from pipeline.capture.packets.pipe import TICK_S, Stop
from pipeline.capture.packets.sources import STDIN, read_packets, read_stream
from pipeline.capture.runs.agent import Agent
from pipeline.capture.runs.one_capture import check_link_types
from pipeline.capture.runs.reading import LIVE_S
from pipeline.capture.runs.ring import Ring
from pipeline.capture.stats import CaptureStats
from pipeline.capture.tcp.work_limits import WorkLimits

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

Take = Callable[[Frame], None]
Pause = Callable[[], None]


def take_arriving(
    path: str,
    take: Take,
    on_pause: Pause,
    stop: Stop,
    *,
    follows: bool = False,
    allow_truncated: bool | None = False,
    payload_policy: PayloadPolicy = "lengths",
    work: WorkLimits | None = None,
    stats: CaptureStats,
) -> None:
    """Take each frame as soon as its last byte is there, in the order of arrival; a request does not wait.

    Args:
        path: ``-`` is standard input.
        take: called for each frame.
        on_pause: called whenever nothing comes for a moment, and a few times a second while something does.
        stop: asked to, it ends in good order.
        follows: a file is read on when it grows, and a directory is a ring (see pipeline.capture.runs.ring).
        allow_truncated, payload_policy, work, stats: see pipeline.capture.runs.one_capture.frames_of.

    Raises:
        CaptureError: it cannot be read.
    """
    agent = Agent(payload_policy=payload_policy, stats=stats, work=work)
    cpu, arrived = time.process_time(), time.monotonic()

    def pass_on(found: Iterator[Frame | Gap]) -> None:
        for item in found:
            if isinstance(item, Frame):
                take(item)

    def on_wait() -> bool:
        agent.keep_up(int((time.process_time() - cpu) * 1e6))
        pass_on(agent.wait(int((time.monotonic() - arrived) * 1e6)))
        on_pause()
        return not stop.asked()

    try:
        for packet in _followed(path, on_wait, agent, stop) if follows else read_packets(path, on_wait, agent.note):
            if not stats.packets and time.time() - packet.ts_us / 1e6 < LIVE_S:
                agent.hasten()
            arrived = time.monotonic()
            pass_on(agent.take(packet))
            pass_on(agent.release())
    except DamagedCaptureError:
        if not (allow_truncated or stop.asked()):
            raise
    finally:
        pass_on(agent.finish())
        on_pause()
    check_link_types(stats, path)


def _followed(path: str, on_wait: Callable[[], bool], agent: Agent, stop: Stop) -> Iterator[Packet]:
    if path == STDIN:
        yield from read_packets(path, on_wait, agent.note)
    elif Path(path).is_dir():
        yield from _ring(path, on_wait, agent, stop)
    else:
        yield from _growing(path, on_wait, agent, lambda: False)


def _growing(path: str, on_wait: Callable[[], bool], agent: Agent, is_over: Callable[[], bool]) -> Iterator[Packet]:
    try:
        file = Path(path).open("rb", buffering=0)  # noqa: SIM115 - closed below
    except OSError as error:
        raise CaptureError(path, f"cannot be followed: {error.strerror}") from error
    with file:
        yield from read_stream(_Growing(file, on_wait, is_over), path, agent.note)


def _ring(directory: str, on_wait: Callable[[], bool], agent: Agent, stop: Stop) -> Iterator[Packet]:
    """The packets of the files that are there, from the oldest on, and of those that come."""
    ring, read = Ring(directory, lambda _: None), set()
    while not stop.asked():
        file = next((one for one in ring.look() if one.id not in read), None)
        if file is None:
            if not on_wait():
                return
            time.sleep(TICK_S)
            continue
        read.add(file.id)

        def is_over() -> bool:
            return any(one.id not in read for one in ring.look())

        try:
            yield from _growing(file.path, on_wait, agent, is_over)
        except DamagedCaptureError:
            continue  # rotated within a packet, or overwritten


class _Growing(io.RawIOBase):
    """A file that is read on as it grows, until ``is_over`` says that another one has taken its place."""

    def __init__(self, file: BinaryIO | io.FileIO, on_wait: Callable[[], bool], is_over: Callable[[], bool]) -> None:
        self._file, self._on_wait, self._is_over = file, on_wait, is_over
        self._looked = time.monotonic()

    def readable(self) -> bool:
        """See io.IOBase."""
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """See io.RawIOBase."""
        target = memoryview(buffer).cast("B")
        while True:
            data = self._file.read(len(target)) or b""
            is_last = not data and self._is_over()
            if is_last:  # what was written before the other one began
                data = self._file.read(len(target)) or b""
            is_time = time.monotonic() - self._looked > TICK_S
            if not data or is_time:
                self._looked = time.monotonic()
                if not self._on_wait():
                    return 0
            if data:
                target[: len(data)] = data
                return len(data)
            if is_last:
                return 0
            time.sleep(TICK_S)
