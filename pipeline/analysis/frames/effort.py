"""How much work a batch of landed frames gives the plain reader, and from where on the compiled kernel pays.

Loading machine code that an earlier process kept takes 60 ms of CPU time, as long as the plain reader takes for 1,000
small frames or for 200 KB of fields: a field at a time, so that bytes count and not only frames (six Metadata responses
can be 26 MB). Compiling takes half a minute, once, which pays from ten times as much on. Long runs of zeros do not
count: under the usual payload policy they are records, which no reader walks.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa

from decoder.kernel.cache import is_compiled

KERNEL_AFTER = 1_000
"""Frames from which on loading the compiled kernel pays."""

KERNEL_AFTER_BYTES = 200_000
"""Bytes of frames, long runs of zeros left out, from which on it does."""

COMPILING_AFTER = 10_000
"""Frames from which on compiling it pays."""

COMPILING_AFTER_BYTES = 2_000_000
"""Bytes from which on that does."""

_ZEROS = bytes(16)
"""A number or two may be zero; this many are records that were overwritten."""


@dataclass(slots=True)
class Effort:
    """What a reader was given so far: frames, and their bytes that it walks."""

    frames: int = 0
    bytes_to_walk: int = 0

    def add(self, frames: pa.Table | pa.RecordBatch) -> None:
        """Count the rows of a landing zone."""
        self.frames += frames.num_rows
        self.bytes_to_walk += bytes_to_walk(frames)

    def pays(self) -> bool:
        """Whether all this is enough to load the kernel."""
        return self.reaches(KERNEL_AFTER, KERNEL_AFTER_BYTES) and (
            self.reaches(COMPILING_AFTER, COMPILING_AFTER_BYTES) or _is_kernel_compiled()
        )

    def reaches(self, frames: int, bytes_to_walk: int) -> bool:
        """Whether it is this many frames, or bytes."""
        return self.frames >= frames or self.bytes_to_walk >= bytes_to_walk


@lru_cache(maxsize=1)
def _is_kernel_compiled() -> bool:
    kernels = (("decoder.kafka.kernel", "bodies.read_frames"), ("decoder.mongodb.kernel", "messages.read_messages"))
    return all(is_compiled(*kernel) for kernel in kernels)


def pays_for_kernel(frames: pa.Table) -> bool:
    """Whether it pays to load the kernel for these rows alone."""
    effort = Effort()
    effort.add(frames)
    return effort.pays()


def bytes_to_walk(frames: pa.Table | pa.RecordBatch) -> int:
    """Bytes of landed frames without long runs of zeros."""
    column = frames.column("frame")
    return sum(map(_of_chunk, column.chunks if isinstance(column, pa.ChunkedArray) else [column]))


def _of_chunk(frames: pa.Array) -> int:
    offsets, data = frames.buffers()[1:]
    if not len(frames) or data is None:
        return 0
    ends = np.frombuffer(offsets, np.int32)
    begin, end = int(ends[frames.offset]), int(ends[frames.offset + len(frames)])
    return without_zeros(data[begin:end].to_pybytes())


def without_zeros(data: bytes) -> int:
    """Bytes of a frame, or of several, without long runs of zeros."""
    return len(data) - len(_ZEROS) * data.count(_ZEROS)
