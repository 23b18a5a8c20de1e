"""How do raw frames become decoded rows? ``mapInPandas`` with a broadcast codec; one bad frame costs one row."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, cast

import orjson
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from decoder import Codec
from decoder.codec import CODEC_VERSION
from decoder.errors import ErrorCode
from decoder.model import Direction, Message
from pipeline.settings import StreamSettings
from pipeline.streaming.lake import struct_type
from pipeline.tables import FRAMES, LANDING_COLUMNS, Column

if TYPE_CHECKING:
    import pandas as pd

_TIMES = ("ts", "ts_end")
DECODED_COLUMNS = [c for c in FRAMES.columns if c.name != "date" and c.name not in {k.name for k in LANDING_COLUMNS}]
_OUTPUT = [
    # Times travel as integers: pandas' nanoseconds end in 2262, a damaged capture's clock may not.
    *(Column(c.name, "bigint", c.comment) if c.name in _TIMES else c for c in LANDING_COLUMNS),
    *DECODED_COLUMNS,
]


def decode_frames(
    landed: DataFrame, codec: Codec | None = None, *, kernel_after: int = StreamSettings().kernel_after_frames
) -> DataFrame:
    """Decode landed rows into rows of ``bronze.frames``; a pure function of each row.

    Args:
        landed: the landing zone's columns (others are dropped).
        codec: to use instead of a new one.
        kernel_after: see StreamSettings.kernel_after_frames.
    """
    spark = landed.sparkSession
    rows = landed.select(*(_as_micros(c) for c in LANDING_COLUMNS))
    decoded = rows.mapInPandas(_decoder(spark, codec or Codec(), kernel_after), struct_type(_OUTPUT))
    timed = decoded.withColumns({name: F.timestamp_micros(name) for name in _TIMES})
    return timed.withColumn("date", F.to_date("ts")).select(*FRAMES.column_names)


def _as_micros(column: Column) -> SparkColumn:
    return F.unix_micros(column.name).alias(column.name) if column.name in _TIMES else F.col(column.name)


def _decoder(
    spark: SparkSession, codec: Codec, kernel_after: int
) -> Callable[[Iterator[pd.DataFrame]], Iterator[pd.DataFrame]]:
    shared = spark.sparkContext.broadcast(codec)

    def decode_batches(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for batch in batches:
            by_kernel = _Worker.frames_read >= kernel_after
            yield decode_batch(shared.value, batch, by_kernel=by_kernel)
            _Worker.frames_read += len(batch)

    return decode_batches


class _Worker:
    """What a Python worker remembers from one task to the next."""

    frames_read = 0


def decode_batch(codec: Codec, batch: pd.DataFrame, *, by_kernel: bool = False) -> pd.DataFrame:
    """Add the decoded columns to a pandas batch of landed rows. Never raises on a frame's account.

    Args:
        codec: the plain reader.
        batch: rows of the landing zone.
        by_kernel: let the kernel read what it can; the same result, sooner once it is loaded.
    """
    if by_kernel:
        from pipeline.streaming.decode_kernel import decode_by_kernel  # noqa: PLC0415 - loading it takes seconds

        return decode_by_kernel(codec, batch)
    import pandas as pd  # noqa: PLC0415 - on the worker only

    columns = decode_rows(codec, batch)
    series = {name: pd.Series(values, index=batch.index, dtype=object) for name, values in columns.items()}
    decoded: pd.DataFrame = batch.assign(**series)
    return decoded


def decode_rows(codec: Codec, batch: pd.DataFrame) -> dict[str, list[object]]:
    """The decoded columns of a batch by the plain reader."""
    inputs = (
        *(batch[name] for name in ("frame", "protocol", "direction")),
        *(_nullable(batch[name]) for name in ("api_key", "api_version")),
        batch["flags"],
    )
    columns: dict[str, list[object]] = {c.name: [] for c in DECODED_COLUMNS}
    for row in zip(*inputs, strict=True):
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
            bytes(frame),
            protocol=protocol,
            direction=cast(Direction, direction),
            api_key=api_key,
            api_version=api_version,
            flags=int(flags),
        )
        return _columns(message)
    except (
        Exception
    ) as error:  # a fault of ours, or a protocol newer than this codec: one row says so, the stream goes on
        code = ErrorCode.INTERNAL if protocol == "kafka" else ErrorCode.UNKNOWN_API
        status = "malformed" if protocol == "kafka" else "unknown_api"
        return _columns(Message({}, {}, cast(Any, status), code.value, 0, str(error), api_key, api_version))


def _columns(message: Message) -> dict[str, object]:
    return {
        "api_name": message.api_name,
        "client_id": message.client_id,
        "header": json_text(message.header) if message.header else None,
        "body": json_text(message.body) if message.body or message.status == "ok" else None,
        "record_batches": json_text(message.record_batches) if message.record_batches else None,
        "embedded": json_text(message.embedded) if message.embedded else None,
        "decode_status": message.status,
        "error_code": message.error_code,
        "error_offset": message.error_offset,
        "codec_version": CODEC_VERSION,
    }


def json_text(value: object) -> str:
    """Compact JSON, as the columns hold it."""
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # integers beyond 64 bits or keys that are no strings: rare enough for the slow way
        return json.dumps(value, separators=(",", ":"), ensure_ascii=True)


def _nullable(column: pd.Series[Any]) -> list[int | None]:
    """Integers, which pandas hands over as floats where some are null, or as its own NA."""
    return [None if missing else int(value) for value, missing in zip(column, column.isna(), strict=True)]
