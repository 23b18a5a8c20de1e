"""How do the texts that the kernel writes become columns? As Arrow arrays around the same memory.

What the kernel gives back, the plain reader reads, and its rows take their places.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from decoder import Codec
from decoder.codec import CODEC_VERSION
from decoder.columns import Bools, Ints, Texts
from decoder.kafka import batch as kafka
from decoder.kafka import kernel as kafka_kernel
from decoder.kafka.program import compile_programs
from decoder.mongodb import batch as mongodb
from decoder.mongodb import kernel as mongodb_kernel
from pipeline.arrow import arrow_type
from pipeline.streaming.decode import DECODED_COLUMNS, decode_rows, json_text

_BYTES_AT_ONCE = 64 * 1024 * 1024
"""Frames handed to the kernel in one call: their text, several times as long, must stay below Arrow's 2 GiB."""


def decode_by_kernel(codec: Codec, batch: pd.DataFrame) -> pd.DataFrame:
    """See pipeline.streaming.decode.decode_batch."""
    pieces = [_decode_piece(codec, piece) for piece in _pieces(batch)]
    decoded: pd.DataFrame = pd.concat(pieces) if len(pieces) > 1 else pieces[0]
    return decoded


def _pieces(batch: pd.DataFrame) -> Iterator[pd.DataFrame]:
    ends = np.cumsum(_sizes(batch))
    start = 0
    while start < len(batch):
        taken = ends[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, taken + _BYTES_AT_ONCE, side="right")))
        yield batch.iloc[start:stop]
        start = stop
    if not len(batch):
        yield batch


def _sizes(batch: pd.DataFrame) -> Ints:
    """Bytes of each frame, decompressed where the kernel is given it so."""
    sizes = batch["frame"].map(len).to_numpy(np.int64, copy=True)
    is_mongodb = (batch["protocol"] == "mongodb").to_numpy()
    sizes[is_mongodb] = batch["frame"][is_mongodb].map(mongodb.size_when_read)
    return sizes


def _decode_piece(codec: Codec, piece: pd.DataFrame) -> pd.DataFrame:
    columns = {column.name: pa.nulls(len(piece), arrow_type(column.type)) for column in DECODED_COLUMNS}
    is_left = np.ones(len(piece), np.bool_)
    for protocol, read in (("kafka", _kafka), ("mongodb", _mongodb)):
        is_its = (piece["protocol"] == protocol).to_numpy()
        if is_its.any():
            found, is_read = read(piece if is_its.all() else piece[is_its])
            _fill(columns, is_its, found)
            is_left[is_its] = ~is_read
    if is_left.any():
        _fill(columns, is_left, decode_rows(codec, piece[is_left]))
    series = {name: _series(column, piece.index) for name, column in columns.items()}
    decoded: pd.DataFrame = piece.assign(**series)
    return decoded


def _fill(columns: dict[str, pa.Array], is_place: Bools, found: Mapping[str, Any]) -> None:
    """Put values where ``is_place`` says; they are as many as it has places."""
    for name, values in found.items():
        array = values if isinstance(values, pa.Array) else pa.array(values, columns[name].type)
        columns[name] = array if is_place.all() else pc.replace_with_mask(columns[name], pa.array(is_place), array)


def _kafka(piece: pd.DataFrame) -> tuple[dict[str, pa.Array], Bools]:
    """The columns of what the kernel read, and which frames that are; null where the plain reader has to fill in."""
    is_response = (piece["direction"] == "response").to_numpy()
    keys, versions = (_integers(piece[name]) for name in ("api_key", "api_version"))
    flags = piece["flags"].to_numpy(np.int64)
    read = kafka.read_batch(piece["frame"].tolist(), is_response, keys, versions, flags)
    is_read = read.outcomes != kafka_kernel.GIVEN_BACK
    columns = _columns_of(is_read) | {
        "api_name": _api_names().take(pa.array(np.where(is_read, read.api_keys, 0))),
        "client_id": _texts(read.client_id, read.outcomes == kafka_kernel.DECODED),
        "header": _texts(read.header, is_read),
        "body": _texts(read.body, is_read),
        "record_batches": _texts(read.batches, np.diff(read.batches.offsets) > 0),
    }
    embedded = dict(kafka.embedded_in(read, is_response, flags))
    if embedded:
        texts = [json_text(embedded[number]) if number in embedded else None for number in range(len(piece))]
        columns["embedded"] = pa.array(texts, pa.string())
    return columns, is_read


def _mongodb(piece: pd.DataFrame) -> tuple[dict[str, pa.Array], Bools]:
    """As :func:`_kafka`."""
    is_response = (piece["direction"] == "response").to_numpy()
    read = mongodb.read_batch(piece["frame"].tolist(), is_response, piece["flags"].to_numpy(np.int64))
    is_read = read.outcomes != mongodb_kernel.GIVEN_BACK
    columns = _columns_of(is_read) | {
        "api_name": _texts(read.api_name, read.outcomes & mongodb_kernel.HAS_NAME != 0),
        "client_id": _texts(read.client_id, read.outcomes & mongodb_kernel.HAS_CLIENT_ID != 0),
        "header": _texts(read.header, is_read),
        "body": _texts(read.body, is_read),
    }
    return columns, is_read


def _columns_of(is_read: Bools) -> dict[str, pa.Array]:
    """What all frames that a kernel read have in common."""
    return {"decode_status": pa.repeat("ok", len(is_read)), "codec_version": pa.repeat(CODEC_VERSION, len(is_read))}


def _series(column: pa.Array, index: pd.Index[Any]) -> pd.Series[Any]:
    """A series around Arrow's own memory; null is None in it, as in what the plain reader gives."""
    series: pd.Series[Any] = pd.Series(pd.arrays.ArrowExtensionArray(column), index=index, copy=False)
    return series


def _integers(column: pd.Series[Any]) -> Ints:
    """Nullable integers, which pandas hands over as floats."""
    return pd.to_numeric(column).fillna(kafka.NONE).to_numpy(np.int64)


def _texts(texts: Texts, is_valid: Bools) -> pa.Array:
    validity = np.packbits(is_valid, bitorder="little")
    offsets = texts.offsets.astype(np.int32)
    buffers = [pa.py_buffer(validity), pa.py_buffer(offsets), pa.py_buffer(texts.data)]
    return pa.StringArray.from_buffers(len(is_valid), buffers[1], buffers[2], buffers[0])


@lru_cache(maxsize=1)
def _api_names() -> pa.Array:
    """Name of each api key, by its number."""
    names = compile_programs().api_names
    return pa.array([names.get(key) for key in range(max(names) + 1)], pa.string())
