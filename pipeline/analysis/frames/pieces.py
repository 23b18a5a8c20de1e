"""Lets one frame fail alone: batches are cut so that their texts fit a column, and halved where they fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from decoder.protocol import WireProtocol
from decoder.protocols import protocols
from pipeline.analysis.frames.plain import DECODED_COLUMNS, rejected_row, with_columns
from pipeline.analysis.safety.guard import report
from pipeline.lake.arrow import arrow_type, byte_lengths, int_values

_BYTES_AT_ONCE = 64 * 1024 * 1024
"""Frames decoded at once: their text, several times as long, must stay below Arrow's 2 GiB a column."""


def pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Slices of a batch whose frames have no more than _BYTES_AT_ONCE together, or one frame."""
    ends = np.cumsum(_sizes(batch))
    start = 0
    while start < batch.num_rows:
        taken = ends[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, taken + _BYTES_AT_ONCE, side="right")))
        yield batch.slice(start, stop - start)
        start = stop


def decode_or_halve(
    decode: Callable[[pa.RecordBatch], pa.RecordBatch], piece: pa.RecordBatch
) -> Iterator[pa.RecordBatch]:
    """Decode a piece; what fails is halved until it is one row, which stays, with the reason."""
    try:
        decoded = decode(piece)
    except Exception as error:  # a fault of ours must cost one row, not the stream, which would fail at each restart
        if piece.num_rows > 1:
            half = piece.num_rows // 2
            for part in (piece.slice(0, half), piece.slice(half)):
                yield from decode_or_halve(decode, part)
            return
        decoded = _rejected(piece, error)
    yield decoded


def _rejected(piece: pa.RecordBatch, error: Exception) -> pa.RecordBatch:
    names = (piece.column(name)[0].as_py() for name in ("connection_id", "direction", "seq"))
    report(error, "decoding of a frame", "/".join(map(str, names)))
    row = rejected_row(error)
    return with_columns(piece, {c.name: pa.array([row[c.name]], arrow_type(c.type)) for c in DECODED_COLUMNS})


def _sizes(batch: pa.RecordBatch) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Bytes of each frame, of compressed ones those inside."""
    frames = batch.column("frame")
    sizes = byte_lengths(frames)
    for name, protocol in protocols().items():
        if type(protocol).size_when_read is WireProtocol.size_when_read:
            continue  # nothing in it is compressed
        is_its = pc.equal(batch.column("protocol"), name)
        places = int_values(pc.indices_nonzero(is_its))
        sizes[places] = [protocol.size_when_read(frame) for frame in frames.filter(is_its).to_pylist()]
    return sizes
