"""Adds the decoded columns to a batch of landed rows; one bad frame costs one row."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pyarrow as pa

from decoder import Codec
from pipeline.analysis.frames.pieces import decode_or_halve, pieces
from pipeline.analysis.frames.plain import decode_plainly
from pipeline.config.memory_limits import has_room_to_compile


def decode_batch(codec: Codec, batch: pa.RecordBatch, *, by_kernel: bool = False) -> Iterator[pa.RecordBatch]:
    """Add the decoded columns to a batch of landed rows, in one piece or several. Never raises on a frame's account.

    What fails as a piece is halved until it is the row alone that fails, which stays with error code ``internal``.

    Args:
        codec: the plain reader.
        batch: rows of the landing zone.
        by_kernel: let the kernel read what it can; the same result, sooner once it is loaded.
    """
    decode = _decode_by_kernel if by_kernel and has_room_to_compile() else decode_plainly
    for piece in pieces(batch):
        yield from decode_or_halve(partial(decode, codec), piece)


def _decode_by_kernel(codec: Codec, piece: pa.RecordBatch) -> pa.RecordBatch:
    """By the kernel, or plainly where it takes too much memory."""
    from pipeline.analysis.frames.kernel import decode_by_kernel  # noqa: PLC0415 - loading it takes seconds

    try:
        return decode_by_kernel(codec, piece)
    except MemoryError:
        return decode_plainly(codec, piece)
