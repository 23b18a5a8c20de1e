"""How much work a batch of landed frames gives the plain reader, and from where on the compiled kernel pays.

Loading the kernel takes about a second. The plain reader takes as long for 10,000 small frames, or for 2 MB of
fields: a field at a time, so that bytes count and not only frames (six Metadata responses can be 26 MB). Zero bytes do
not count: under the usual payload policy they are records, which no reader walks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

KERNEL_AFTER = 10_000
"""Frames from which on loading the compiled kernel pays."""

KERNEL_AFTER_BYTES = 2_000_000
"""Bytes of frames, zeros left out, from which on it does."""


@dataclass(slots=True)
class Effort:
    """What a reader was given so far: frames, and their bytes that are not zero."""

    frames: int = 0
    nonzero_bytes: int = 0

    def add(self, frames: pa.Table | pa.RecordBatch) -> None:
        """Count the rows of a landing zone."""
        self.frames += frames.num_rows
        self.nonzero_bytes += nonzero_bytes(frames)

    def pays(self, after_frames: int = KERNEL_AFTER, after_bytes: int = KERNEL_AFTER_BYTES) -> bool:
        """Whether all this is enough to load the kernel."""
        return self.frames >= after_frames or self.nonzero_bytes >= after_bytes


def pays_for_kernel(frames: pa.Table) -> bool:
    """Whether it pays to load the kernel for these rows alone."""
    effort = Effort()
    effort.add(frames)
    return effort.pays()


def nonzero_bytes(frames: pa.Table | pa.RecordBatch) -> int:
    """Bytes of landed frames that are not zero."""
    column = frames.column("frame")
    return sum(map(_nonzero, column.chunks if isinstance(column, pa.ChunkedArray) else [column]))


def _nonzero(frames: pa.Array) -> int:
    offsets, data = frames.buffers()[1:]
    if not len(frames) or data is None:
        return 0
    ends = np.frombuffer(offsets, np.int32)
    begin, end = int(ends[frames.offset]), int(ends[frames.offset + len(frames)])
    return int(np.count_nonzero(np.frombuffer(data, np.uint8)[begin:end]))
