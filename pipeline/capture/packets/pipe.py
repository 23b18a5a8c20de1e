"""Reads packets from a pipe as they come, without waiting for its end."""

from __future__ import annotations

import io
import os
import select
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

TICK_S = 0.25
"""How often somebody who waits for packets looks at the clock."""

_LITTLE_BYTES = 32_768
"""Half of what a pipe of Linux holds."""


class Pipe(io.RawIOBase):
    """A file descriptor that is read as its bytes come.

    Args:
        descriptor: where to read; left open.
        on_wait: called every TICK_S while nothing comes, and at least as often while something does; False ends the
            stream here.
        rest_s: how long to rest after little has come, so that more comes at once: each time costs as much as many
            packets do.
    """

    def __init__(self, descriptor: int, on_wait: Callable[[], bool], rest_s: float = 0.0) -> None:
        self._descriptor = descriptor
        self._on_wait = on_wait
        self._rest_s = rest_s
        self._has_little = False
        self._looked = time.monotonic()

    def readable(self) -> bool:
        """See io.IOBase."""
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """See io.RawIOBase."""
        if self._has_little:
            time.sleep(self._rest_s)
        while True:
            is_ready = bool(select.select([self._descriptor], [], [], TICK_S)[0])
            if not is_ready or time.monotonic() - self._looked > TICK_S:
                self._looked = time.monotonic()
                if not self._on_wait():
                    return 0
            if is_ready:
                count = os.readv(self._descriptor, [buffer])
                self._has_little = 0 < count < _LITTLE_BYTES and self._rest_s > 0
                return count


class Prefixed(io.RawIOBase):
    """A stream whose first bytes have been read already."""

    def __init__(self, begin: bytes, stream: io.RawIOBase) -> None:
        self._begin = begin
        self._stream = stream

    def readable(self) -> bool:
        """See io.IOBase."""
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """See io.RawIOBase."""
        if not self._begin:
            return self._stream.readinto(buffer) or 0
        target = memoryview(buffer).cast("B")
        data, self._begin = self._begin[: len(target)], self._begin[len(target) :]
        target[: len(data)] = data
        return len(data)


class Stop:
    """Whether somebody wants us to end in good order.

    Attributes:
        since: when it was asked for (time.monotonic, s); None if not yet.
    """

    def __init__(self) -> None:
        self.since: float | None = None

    def ask(self) -> None:
        """End as soon as it is good."""
        if self.since is None:
            self.since = time.monotonic()

    def asked(self, seconds_ago: float = 0.0) -> bool:
        """Whether it was asked for, and so long ago."""
        return self.since is not None and time.monotonic() - self.since >= seconds_ago


@contextmanager
def stop_on_signals() -> Iterator[Stop]:
    """SIGINT, SIGTERM and SIGHUP ask for a stop in good order; a second one interrupts at once.

    SIGHUP stays ignored under nohup, and does not interrupt: of a terminal that closes shell and system both signal.
    """
    stop = Stop()

    def ask(number: int, _: FrameType | None) -> None:
        if stop.asked() and number != signal.SIGHUP:
            raise KeyboardInterrupt
        stop.ask()

    numbers = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    before = {number: signal.signal(number, ask) for number in numbers}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
