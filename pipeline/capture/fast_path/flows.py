"""The flows (pairs of endpoints) that packets belong to, by numbers, for arrays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from pipeline.capture.fast_path.block import Block
from pipeline.capture.fast_path.packet_kernel import KEY_WORDS, Segments, dissect, find_flow, new_segments, sort_others
from pipeline.capture.network.link import Endpoint, Segment

Ints = np.ndarray[Any, np.dtype[np.int64]]

MAX_ENDS = 8192
"""Flows whose endpoints are remembered as they are written elsewhere."""

_FIRST_ROOM = 1024


class Flows:
    """Numbers the flows: pairs of endpoints."""

    def __init__(self) -> None:
        self.count = 0
        self._keys = np.zeros((_FIRST_ROOM, KEY_WORDS), np.uint64)
        self._slots = np.full(4 * _FIRST_ROOM, -1, np.int32)
        self._key = np.zeros(KEY_WORDS, np.uint64)
        self._ends: dict[int, tuple[Endpoint, Endpoint]] = {}

    def dissect(self, block: Block) -> Segments:
        """The segments of a block's packets."""
        segments = new_segments(len(block))
        done = 0
        while done < len(block):
            done, self.count = dissect(
                block.data, block.starts, block.captured, block.original, block.linktypes, done, len(block), segments,
                self._keys, self._slots, self.count, self._key,
            )  # fmt: skip
            if self.count == len(self._keys):
                self._grow()
        sort_others(block.data, block.starts, block.captured, block.linktypes, segments.kind)
        return segments

    def number(self, one: Endpoint, other: Endpoint) -> int:
        """Of the flow between two endpoints."""
        low, high = sorted((one, other))
        words = [int.from_bytes(address, "big") for address, _ in (low, high)]
        head = (4 if len(low[0]) == 4 else 6) << 32
        mask = (1 << 64) - 1
        self._key[:] = [
            words[0] >> 64, words[0] & mask, words[1] >> 64, words[1] & mask, head | low[1] << 16 | high[1],
        ]  # fmt: skip
        flow = int(find_flow(self._keys, self._slots, self.count, self._key))
        if flow == self.count:
            self.count += 1
            if self.count == len(self._keys):
                self._grow()
        return flow

    def segments(self, block: Block, segments: Segments, numbers: Ints) -> Iterator[Segment]:
        """Some of the segments, one for each number."""
        data = block.data.data
        columns = (
            segments.flow, segments.side, segments.seq, segments.ack, segments.flags, segments.start, segments.size,
            segments.length,
        )  # fmt: skip
        rows = zip(*(column[numbers].tolist() for column in columns), strict=True)
        for flow, side, seq, ack, flags, start, size, length in rows:
            ends = self._ends.get(flow) or self._endpoints(flow)
            yield Segment(ends[side], ends[1 - side], seq, ack, flags, bytes(data[start : start + size]), length)

    def _endpoints(self, flow: int) -> tuple[Endpoint, Endpoint]:
        """The lower and the higher end."""
        words = [int(word) for word in self._keys[flow]]
        size = 4 if words[4] >> 32 == 4 else 16
        addresses = [(words[at] << 64 | words[at + 1]).to_bytes(size, "big") for at in (0, 2)]
        ends = (addresses[0], words[4] >> 16 & 0xFFFF), (addresses[1], words[4] & 0xFFFF)
        if len(self._ends) >= MAX_ENDS:
            self._ends.clear()
        self._ends[flow] = ends
        return ends

    def _grow(self) -> None:
        keys = self._keys
        self._keys = np.zeros((2 * len(keys), KEY_WORDS), np.uint64)
        self._slots = np.full(8 * len(keys), -1, np.int32)
        for flow in range(self.count):
            find_flow(self._keys, self._slots, flow, keys[flow])
