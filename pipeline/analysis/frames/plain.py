"""Fills the decoded columns by the plain reader, a row at a time; one bad frame costs one row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from decoder import Codec, limits
from decoder.codec import CODEC_VERSION
from decoder.columns import json_text
from decoder.errors import ErrorCode
from decoder.model import Direction, Message, Status
from decoder.protocols import protocols
from decoder.work import most_text
from pipeline.tables import FRAMES, LANDING_COLUMNS

if TYPE_CHECKING:
    import pyarrow as pa

DECODED_COLUMNS = [c for c in FRAMES.columns if c.name != "date" and c.name not in {k.name for k in LANDING_COLUMNS}]
_INPUTS = ("frame", "protocol", "direction", "api_key", "api_version", "flags")


def decode_plainly(codec: Codec, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Add the decoded columns to a batch of landed rows."""
    from pipeline.lake.arrow import arrow_array, arrow_type  # noqa: PLC0415

    found = decode_rows(codec, batch)
    return with_columns(batch, {c.name: arrow_array(found[c.name], arrow_type(c.type)) for c in DECODED_COLUMNS})


def with_columns(batch: pa.RecordBatch, columns: Mapping[str, pa.Array]) -> pa.RecordBatch:
    """A batch with more columns behind its own."""
    import pyarrow as pa  # noqa: PLC0415 - on the worker only

    return pa.RecordBatch.from_arrays([*batch.columns, *columns.values()], names=[*batch.schema.names, *columns])


def decode_rows(codec: Codec, batch: pa.RecordBatch) -> dict[str, list[object]]:
    """The decoded columns of a batch by the plain reader."""
    columns: dict[str, list[object]] = {c.name: [] for c in DECODED_COLUMNS}
    for row in zip(*(batch.column(name).to_pylist() for name in _INPUTS), strict=True):
        for name, value in decode_row(codec, *row).items():
            columns[name].append(value)
    return columns


def decode_row(
    codec: Codec,
    frame: bytes,
    protocol: str,
    direction: str,
    api_key: int | None,
    api_version: int | None,
    flags: int,
) -> dict[str, object]:
    """The decoded columns of one frame."""
    try:
        message = codec.decode(
            frame,
            protocol=protocol,
            direction=cast(Direction, direction),
            api_key=api_key,
            api_version=api_version,
            flags=flags,
        )
        return _columns(message, most_text(len(frame)))
    except Exception as error:  # a fault of ours, or a protocol newer than this codec: one row is marked
        return rejected_row(error) if protocol in protocols() else _unknown_protocol()


def rejected_row(error: Exception) -> dict[str, object]:
    """The decoded columns of a frame that we failed on. The text of an error may quote the frame: its kind must do."""
    failed = Message({}, {}, "malformed", ErrorCode.INTERNAL.value, 0, type(error).__name__)
    return _columns(failed, limits.TEXT_FLOOR)


def _unknown_protocol() -> dict[str, object]:
    return _columns(Message({}, {}, "unknown_api", ErrorCode.UNKNOWN_API.value, 0), limits.TEXT_FLOOR)


def _columns(message: Message, most_bytes: int) -> dict[str, object]:
    """The columns of a message. A text of more than ``most_bytes`` stays out, and a code marks it."""
    texts = {
        "header": json_text(message.header) if message.header else None,
        "body": json_text(message.body) if message.body or message.status == "ok" else None,
        "record_batches": json_text(message.record_batches) if message.record_batches else None,
        "embedded": json_text(message.embedded) if message.embedded else None,
    }
    too_large = [name for name, text in texts.items() if text is not None and _is_longer(text, most_bytes)]
    if too_large:
        code, status = ErrorCode.BODY_TOO_LARGE.value, "partial" if message.status == "ok" else message.status
        message = replace(message, status=cast(Status, status), error_code=code, error_offset=0)
        texts |= dict.fromkeys(too_large)
    return {
        **texts,
        "api_name": message.api_name,
        "client_id": message.client_id,
        "decode_status": message.status,
        "error_code": message.error_code,
        "error_offset": message.error_offset,
        "codec_version": CODEC_VERSION,
    }


def _is_longer(text: str, most_bytes: int) -> bool:
    return 4 * len(text) > most_bytes and len(text.encode()) > most_bytes
