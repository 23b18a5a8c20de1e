"""How do the texts that the kernel writes become columns? As Arrow arrays around the same memory.

What the kernel gives back, the plain reader reads, and its rows take their places.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, cast

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from decoder import Codec
from decoder.codec import CODEC_VERSION
from decoder.kafka import kernel
from decoder.kafka.batch import NONE, ReadBatch, Texts, embedded_in, read_batch
from decoder.kafka.program import compile_programs
from decoder.model import Direction
from decoder.mongodb.quick import read_quickly
from pipeline.arrow import arrow_type
from pipeline.streaming.decode import DECODED_COLUMNS, decode_row, decode_rows, json_text

_BYTES_AT_ONCE = 64 * 1024 * 1024
"""Frames handed to the kernel in one call: their text, several times as long, must stay below Arrow's 2 GiB."""
_OK_ROW: dict[str, object] = {column.name: None for column in DECODED_COLUMNS} | {
    "decode_status": "ok", "codec_version": CODEC_VERSION,
}  # fmt: skip


def decode_by_kernel(codec: Codec, batch: pd.DataFrame) -> pd.DataFrame:
    """See pipeline.streaming.decode.decode_batch."""
    pieces = [_decode_piece(codec, piece) for piece in _pieces(batch)]
    decoded: pd.DataFrame = pd.concat(pieces) if len(pieces) > 1 else pieces[0]
    return decoded


def _pieces(batch: pd.DataFrame) -> Iterator[pd.DataFrame]:
    ends = np.cumsum(batch["frame"].map(len).to_numpy(np.int64))
    start = 0
    while start < len(batch):
        taken = ends[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, taken + _BYTES_AT_ONCE, side="right")))
        yield batch.iloc[start:stop]
        start = stop
    if not len(batch):
        yield batch


def _decode_piece(codec: Codec, piece: pd.DataFrame) -> pd.DataFrame:
    # The kernel reads Kafka only; it gives back a response without a request, so that is what all else is called.
    is_other = (piece["protocol"] != "kafka").to_numpy()
    is_response = (piece["direction"] == "response").to_numpy() | is_other
    keys, versions = (np.where(is_other, NONE, _integers(piece[name])) for name in ("api_key", "api_version"))
    flags = piece["flags"].to_numpy(np.int64)
    read = read_batch(piece["frame"].tolist(), is_response, keys, versions, flags)
    columns = _columns(read)
    embedded = dict(embedded_in(read, is_response, flags))
    if embedded:
        texts = [json_text(embedded[number]) if number in embedded else None for number in range(len(piece))]
        columns["embedded"] = pa.array(texts, pa.string())
    is_left = read.outcomes == kernel.GIVEN_BACK
    if is_left.any():
        mask = pa.array(is_left)
        for name, values in decode_rows(codec, piece[is_left], _row).items():
            columns[name] = pc.replace_with_mask(columns[name], mask, pa.array(values, columns[name].type))
    series = {name: _series(column, piece.index) for name, column in columns.items()}
    decoded: pd.DataFrame = piece.assign(**series)
    return decoded


def _row(
    codec: Codec, frame: bytes, protocol: str, direction: str, api_key: int | None, api_version: int | None, flags: int
) -> dict[str, object]:
    """See decode_row: the kernel for MongoDB takes a message at a time."""
    found = read_quickly(bytes(frame), cast(Direction, direction), flags) if protocol == "mongodb" else None
    if found is None:
        return decode_row(codec, frame, protocol, direction, api_key, api_version, flags)
    told = {"api_name": found.api_name, "header": json_text(found.header), "body": found.body.decode()}
    return _OK_ROW | told


def _series(column: pa.Array, index: pd.Index[Any]) -> pd.Series[Any]:
    """A series around Arrow's own memory; null is None in it, as in what the plain reader gives."""
    series: pd.Series[Any] = pd.Series(pd.arrays.ArrowExtensionArray(column), index=index, copy=False)
    return series


def _integers(column: pd.Series[Any]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Nullable integers, which pandas hands over as floats."""
    return pd.to_numeric(column).fillna(NONE).to_numpy(np.int64)


def _columns(read: ReadBatch) -> dict[str, pa.Array]:
    """The decoded columns; null where the plain reader has to fill in."""
    is_read = read.outcomes != kernel.GIVEN_BACK
    text = {
        "api_name": _api_names().take(pa.array(np.where(is_read, read.api_keys, 0))),
        "client_id": _texts(read.client_id, read.outcomes == kernel.DECODED),
        "header": _texts(read.header, is_read),
        "body": _texts(read.body, is_read),
        "record_batches": _texts(read.batches, np.diff(read.batches.offsets) > 0),
        "decode_status": pa.repeat("ok", len(is_read)),
        "codec_version": pa.repeat(CODEC_VERSION, len(is_read)),
    }
    types = {column.name: arrow_type(column.type) for column in DECODED_COLUMNS}
    return {name: text[name] if name in text else pa.nulls(len(is_read), type_) for name, type_ in types.items()}


def _texts(texts: Texts, is_valid: np.ndarray[Any, np.dtype[np.bool_]]) -> pa.Array:
    validity = np.packbits(is_valid, bitorder="little")
    offsets = texts.offsets.astype(np.int32)
    buffers = [pa.py_buffer(validity), pa.py_buffer(offsets), pa.py_buffer(texts.data)]
    return pa.StringArray.from_buffers(len(is_valid), buffers[1], buffers[2], buffers[0])


@lru_cache(maxsize=1)
def _api_names() -> pa.Array:
    """Name of each api key, by its number."""
    names = compile_programs().api_names
    return pa.array([names.get(key) for key in range(max(names) + 1)], pa.string())
