"""Requests that wait for their response: held back, so that each comes just before it; and not for too long."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Protocol

from decoder.model import Frame

HOLD_US = 30_000_000
HOLD_FRAMES = 10_000
HOLD_BYTES = 32 * 1024 * 1024
"""How long (µs of capture time), and how many requests (and their bytes) wait for their response before they are
passed on without it, so that a request that is never answered neither stays unseen nor fills the memory."""

ROW_BYTES = 1024
"""What a request takes that is held back, beside its bytes."""


class Held(Protocol):
    """A request that is held back and is no frame yet."""

    @property
    def size(self) -> int:
        """Bytes."""

    def as_frame(self) -> Frame:
        """The frame."""


class PendingRequests:
    """The requests of one capture that are held back, by the id of their exchange."""

    def __init__(self) -> None:
        self._held: OrderedDict[str, tuple[int, Frame | Held]] = OrderedDict()
        self._bytes = 0

    def hold(self, exchange_id: str, request: Frame | Held, since: int) -> None:
        """Hold a request back from ``since`` (steady time, µs) on."""
        self._held[exchange_id] = since, request
        self._bytes += _bytes_of(request)

    def take(self, exchange_id: str) -> Frame | Held | None:
        """Hold a request back no longer; as it was given."""
        _, request = self._held.pop(exchange_id, (0, None))
        if request is not None:
            self._bytes -= _bytes_of(request)
        return request

    def let_go(self, exchange_id: str) -> Frame | None:
        """As :meth:`take`, a frame."""
        request = self.take(exchange_id)
        return request if request is None or isinstance(request, Frame) else request.as_frame()

    def overdue(self, now: int) -> Iterator[Frame]:
        """Let those go that have been held back for too long at ``now`` (steady time, µs), or that are too many."""
        while self._held and self._is_overdue(next(iter(self._held.values()))[0], now):
            yield from self._oldest()

    def all(self) -> Iterator[Frame]:
        """Let all go."""
        while self._held:
            yield from self._oldest()

    def _oldest(self) -> Iterator[Frame]:
        request = self.let_go(next(iter(self._held)))
        if request is not None:
            yield request

    def _is_overdue(self, oldest: int, now: int) -> bool:
        return now - oldest > HOLD_US or len(self._held) > HOLD_FRAMES or self._bytes > HOLD_BYTES


def _bytes_of(request: Frame | Held) -> int:
    """What a request takes that is held back: a compressed one may be stored uncompressed, and a row takes some."""
    return ROW_BYTES + (len(request.frame) if isinstance(request, Frame) else request.size)
