"""Puts the fragments of an IP packet together."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, OrderedDict
from dataclasses import dataclass, field
from typing import NamedTuple

MAX_PACKETS = 256
"""Packets being put together at once; the oldest gives way. A flood of first fragments must not fill the memory."""

MAX_BYTES = 65_535
"""The largest IP payload that fragments can describe; offsets beyond it are an attack ("ping of death")."""

TIMEOUT_US = 30_000_000
"""How long to wait for the rest of a packet, as Linux does. Identifications are used again: later fragments belong to
another packet."""

Key = tuple[bytes, bytes, int, int]
"""Source, destination, identification, protocol."""


class Fragment(NamedTuple):
    """A part of an IP packet's payload.

    Attributes:
        offset: its position in the payload, bytes.
        more: whether others follow it.
        payload: its bytes, as far as they were captured.
        length: bytes that the IP header declares.
    """

    offset: int
    more: bool
    payload: bytes
    length: int


@dataclass(slots=True)
class _Partial:
    """A packet; the ranges of it that are there run from ``lows`` to ``highs``, in order and apart.

    Thousands of fragments of eight bytes may leave as many ranges, so each looks only at those that it touches.
    """

    since: int
    packets: int = 0
    data: bytearray = field(default_factory=bytearray)
    lows: list[int] = field(default_factory=list)
    highs: list[int] = field(default_factory=list)
    size: int | None = None
    captured: int = MAX_BYTES  # from here on a snap length has cut something off
    contradictory: bool = False

    @property
    def whole(self) -> bool:
        return self.size is not None and self.lows == [0] and self.highs == [self.size]

    def add(self, fragment: Fragment) -> bool:
        """Take a fragment; whether it agrees with the others."""
        start, end = fragment.offset, fragment.offset + fragment.length
        size = self.size if fragment.more else end
        if end > MAX_BYTES or self.size not in (None, size) or (size is not None and max(end, len(self.data)) > size):
            return False
        content = fragment.payload.ljust(fragment.length, b"\0")
        begin, behind = bisect_left(self.highs, start), bisect_right(self.lows, end)  # the ranges that it touches
        for number in range(begin, behind):
            first, last = max(self.lows[number], start), min(self.highs[number], end)
            if first < last and self.data[first:last] != content[first - start : last - start]:
                return False
        self.size = size
        self.data.extend(bytes(max(0, end - len(self.data))))
        self.data[start:end] = content
        if len(fragment.payload) < fragment.length:
            self.captured = min(self.captured, start + len(fragment.payload))
        if begin < behind:
            start, end = min(start, self.lows[begin]), max(end, self.highs[behind - 1])
        self.lows[begin:behind], self.highs[begin:behind] = [start], [end]
        return True


class Fragments:
    """IP packets with missing fragments; whole ones stay for a while, to know their copies.

    Fragments may overlap if they agree on the bytes. If they do not, the packet is given up, as RFC 5722 demands, and
    what else comes of it is dropped until the time is over: which of them its receiver believed cannot be known.

    Args:
        dropped: counts the fragments of packets that never became whole: ``fragments_incomplete``, or
            ``fragments_contradictory``.
    """

    def __init__(self, dropped: Counter[str]) -> None:
        self._dropped = dropped
        self._partial: OrderedDict[Key, _Partial] = OrderedDict()

    def add(self, key: Key, fragment: Fragment, ts: int) -> tuple[bytes, int] | None:
        """Take a fragment captured at ``ts`` (µs); if it completes its packet, the payload captured and its length."""
        while self._partial and ts - next(iter(self._partial.values())).since > TIMEOUT_US:
            self._give_up_oldest()
        partial = self._partial.get(key)
        if partial is not None and partial.whole:
            if partial.add(fragment):
                return None  # a copy
            del self._partial[key]  # the identification is used again
            partial = None
        if partial is None:
            partial = self._partial[key] = _Partial(ts)
            if len(self._partial) > MAX_PACKETS:
                self._give_up_oldest()
        partial.packets += 1
        if not partial.contradictory and not partial.add(fragment):
            partial.contradictory = True
            partial.data, partial.lows, partial.highs = bytearray(), [], []
        if not partial.whole:
            return None
        size = len(partial.data)
        return bytes(memoryview(partial.data)[: min(size, partial.captured)]), size

    def finish(self) -> None:
        """Nothing more will come: count what is left."""
        while self._partial:
            self._give_up_oldest()

    def _give_up_oldest(self) -> None:
        _, partial = self._partial.popitem(last=False)
        if partial.contradictory:
            self._dropped["fragments_contradictory"] += partial.packets
        elif not partial.whole:
            self._dropped["fragments_incomplete"] += partial.packets
