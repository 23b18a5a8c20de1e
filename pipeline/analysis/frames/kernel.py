"""Makes columns of the texts that the kernel writes, as Arrow arrays around the same memory.

What the kernel gives back, the plain reader reads, and its rows take their places.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from decoder import Codec
from decoder.codec import CODEC_VERSION
from decoder.columns import Bools, Ints, Texts
from decoder.protocol import NONE, Column, WireProtocol
from decoder.protocols import protocols
from decoder.work import most_text
from pipeline.analysis.columns.nullable import text_array, truths
from pipeline.analysis.frames.plain import DECODED_COLUMNS, decode_rows, with_columns
from pipeline.lake.arrow import arrow_type


def decode_by_kernel(codec: Codec, batch: pa.RecordBatch) -> pa.RecordBatch:
    """See pipeline.analysis.frames.decode.decode_batch; of a batch whose texts fit a column."""
    columns = {column.name: pa.nulls(batch.num_rows, arrow_type(column.type)) for column in DECODED_COLUMNS}
    is_left = np.ones(batch.num_rows, np.bool_)
    for name, protocol in protocols().items():
        is_its = _is(batch, "protocol", name)
        read = _read(protocol, batch if is_its.all() else batch.filter(pa.array(is_its))) if is_its.any() else None
        if read is not None:
            found, is_read = read
            _fill(columns, is_its, found)
            is_left[is_its] = ~is_read
    if is_left.any():
        _fill(columns, is_left, decode_rows(codec, batch.filter(pa.array(is_left))))
    return with_columns(batch, columns)


def _fill(columns: dict[str, pa.Array], is_place: Bools, found: Mapping[str, Any]) -> None:
    """Put values where ``is_place`` is set; they are as many as it has places."""
    for name, values in found.items():
        array = values if isinstance(values, pa.Array) else pa.array(values, columns[name].type)
        columns[name] = array if is_place.all() else pc.replace_with_mask(columns[name], pa.array(is_place), array)


def _read(protocol: WireProtocol, piece: pa.RecordBatch) -> tuple[dict[str, pa.Array], Bools] | None:
    """The columns of what was read, and which frames that are; null where the plain reader has to fill in."""
    frames = piece.column("frame").to_pylist()
    numbers = (_integers(piece.column(name)) for name in ("api_key", "api_version", "flags"))
    read = protocol.decode_many(frames, _is(piece, "direction", "response"), *numbers)
    if read is None:
        return None
    texts = [column.values for column in read.columns.values() if isinstance(column.values, Texts)]
    is_read = read.is_read & _fits(frames, *texts)
    columns = {name: _array(column) for name, column in read.columns.items()}
    return _columns_of(is_read) | columns, is_read


def _array(column: Column) -> pa.Array:
    if isinstance(column.values, Texts):
        return text_array((column.values, column.is_valid))
    if column.names:
        return pa.array(column.names, pa.string()).take(pa.array(column.values, mask=~column.is_valid))
    return pa.array(column.values, pa.string())


def _fits(frames: Sequence[bytes], *columns: Texts) -> Bools:
    """The frames whose texts are all short enough; the plain reader cuts the others."""
    fits, always = np.ones(len(frames), np.bool_), most_text(0)
    for texts in columns:
        sizes = np.diff(texts.offsets)
        for number in np.flatnonzero(sizes > always).tolist():
            fits[number] &= sizes[number] <= most_text(len(frames[number]))
    return fits


def _columns_of(is_read: Bools) -> dict[str, pa.Array]:
    """What all frames that a kernel read have in common."""
    return {"decode_status": pa.repeat("ok", len(is_read)), "codec_version": pa.repeat(CODEC_VERSION, len(is_read))}


def _is(batch: pa.RecordBatch, name: str, value: str) -> Bools:
    return truths(pc.equal(batch.column(name), value))


def _integers(column: pa.Array) -> Ints:
    known: Ints = pc.fill_null(column, NONE).to_numpy(zero_copy_only=False).astype(np.int64)
    return known
