"""How do the texts that the kernel writes become columns? As Arrow arrays around the same memory.

What the kernel gives back, the plain reader reads, and its rows take their places.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from decoder import Codec
from decoder.codec import CODEC_VERSION
from decoder.columns import Bools, Ints, Texts
from decoder.kafka import batch as kafka
from decoder.kafka.codec.program import compile_programs
from decoder.kafka.kernel import bodies as kafka_kernel
from decoder.mongodb import batch as mongodb
from decoder.mongodb.kernel import messages as mongodb_kernel
from decoder.work import most_text
from pipeline.analysis.frames.plain import DECODED_COLUMNS, decode_rows, json_text, with_columns
from pipeline.arrow import arrow_type


def decode_by_kernel(codec: Codec, batch: pa.RecordBatch) -> pa.RecordBatch:
    """See pipeline.analysis.frames.decode.decode_batch; of a batch whose texts fit a column."""
    columns = {column.name: pa.nulls(batch.num_rows, arrow_type(column.type)) for column in DECODED_COLUMNS}
    is_left = np.ones(batch.num_rows, np.bool_)
    for protocol, read in (("kafka", _kafka), ("mongodb", _mongodb)):
        is_its = _is(batch, "protocol", protocol)
        if is_its.any():
            found, is_read = read(batch if is_its.all() else batch.filter(pa.array(is_its)))
            _fill(columns, is_its, found)
            is_left[is_its] = ~is_read
    if is_left.any():
        _fill(columns, is_left, decode_rows(codec, batch.filter(pa.array(is_left))))
    return with_columns(batch, columns)


def _fill(columns: dict[str, pa.Array], is_place: Bools, found: Mapping[str, Any]) -> None:
    """Put values where ``is_place`` says; they are as many as it has places."""
    for name, values in found.items():
        array = values if isinstance(values, pa.Array) else pa.array(values, columns[name].type)
        columns[name] = array if is_place.all() else pc.replace_with_mask(columns[name], pa.array(is_place), array)


def _kafka(piece: pa.RecordBatch) -> tuple[dict[str, pa.Array], Bools]:
    """The columns of what the kernel read, and which frames that are; null where the plain reader has to fill in."""
    is_response = _is(piece, "direction", "response")
    keys, versions, flags = (_integers(piece.column(name)) for name in ("api_key", "api_version", "flags"))
    frames = piece.column("frame").to_pylist()
    read = kafka.read_batch(frames, is_response, keys, versions, flags)
    is_read = (read.outcomes != kafka_kernel.GIVEN_BACK) & _fits(frames, read.body, read.batches)
    columns = _columns_of(is_read) | {
        "api_name": _api_names().take(pa.array(np.where(is_read, read.api_keys, 0))),
        "client_id": _texts(read.client_id, read.outcomes == kafka_kernel.DECODED),
        "header": _texts(read.header, is_read),
        "body": _texts(read.body, is_read),
        "record_batches": _texts(read.batches, np.diff(read.batches.offsets) > 0),
    }
    embedded = dict(kafka.embedded_in(read, is_response, flags))
    if embedded:
        texts = [json_text(embedded[number]) if number in embedded else None for number in range(piece.num_rows)]
        columns["embedded"] = pa.array(texts, pa.string())
    return columns, is_read


def _mongodb(piece: pa.RecordBatch) -> tuple[dict[str, pa.Array], Bools]:
    """As :func:`_kafka`."""
    is_response = _is(piece, "direction", "response")
    frames = piece.column("frame").to_pylist()
    read = mongodb.read_batch(frames, is_response, _integers(piece.column("flags")))
    is_read = (read.outcomes != mongodb_kernel.GIVEN_BACK) & _fits(frames, read.body)
    columns = _columns_of(is_read) | {
        "api_name": _texts(read.api_name, read.outcomes & mongodb_kernel.HAS_NAME != 0),
        "client_id": _texts(read.client_id, read.outcomes & mongodb_kernel.HAS_CLIENT_ID != 0),
        "header": _texts(read.header, is_read),
        "body": _texts(read.body, is_read),
    }
    return columns, is_read


def _fits(frames: Sequence[bytes], *columns: Texts) -> Bools:
    """Of which frames no text is longer than it may be; the plain reader cuts the others."""
    most = np.fromiter((most_text(len(frame)) for frame in frames), np.int64, len(frames))
    fits = np.ones(len(frames), np.bool_)
    for texts in columns:
        fits &= np.diff(texts.offsets) <= most
    return fits


def _columns_of(is_read: Bools) -> dict[str, pa.Array]:
    """What all frames that a kernel read have in common."""
    return {"decode_status": pa.repeat("ok", len(is_read)), "codec_version": pa.repeat(CODEC_VERSION, len(is_read))}


def _is(batch: pa.RecordBatch, name: str, value: str) -> Bools:
    found: Bools = pc.equal(batch.column(name), value).to_numpy(zero_copy_only=False)
    return found


def _integers(column: pa.Array) -> Ints:
    known: Ints = pc.fill_null(column, kafka.NONE).to_numpy(zero_copy_only=False).astype(np.int64)
    return known


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
