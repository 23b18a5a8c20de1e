"""What a query answers, as values of text and JSON and as the files that other programs take."""

from __future__ import annotations

import base64
import csv
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import chain
from typing import IO, Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.errors import UserError

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""A text that begins with one of these is run as a formula when a spreadsheet opens the CSV (CWE-1236)."""
OPTIONS = orjson.OPT_UTC_Z | orjson.OPT_NON_STR_KEYS


def for_json(value: Any) -> Any:
    """What JSON has no form for, and orjson therefore asks about."""
    match value:
        case bytes():
            return base64.b64encode(value).decode()
        case Decimal() if value == value.to_integral_value() and abs(value) < 2**63:  # DuckDB's sum() of a bigint
            return int(value)
        case _:
            return str(value)


def cell(value: Any) -> str:
    """A value as text, for CSV and tables."""
    match value:
        case None:
            return ""
        case str():
            return value
        case _:
            return orjson.dumps(value, for_json, OPTIONS).decode().strip('"')


def distinct(names: Iterable[str]) -> list[str]:
    """Names of columns, made unique: ``a``, ``a_2``."""
    seen: dict[str, int] = {}
    unique = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        unique.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return unique


def rows_of(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[Any, ...]]:
    """The rows of an answer.

    Raises:
        UserError: Python has no value for one of its times.
    """
    for batch in batches:
        try:
            values = [column.to_pylist() for column in batch.columns]
        except (OverflowError, ValueError) as error:
            raise UserError(f"a time that is out of Python's range ({error}): cast it to VARCHAR") from error
        yield from zip(*values, strict=True)


def write_csv(
    names: Sequence[str], rows: Iterable[tuple[Any, ...]], out: IO[str], shown: Callable[[str], str] = str
) -> None:
    """Write CSV with a header; no text in it is run as a formula.

    Args:
        names: of the columns.
        rows: all of them.
        out: where to.
        shown: what becomes of each text; by default it stays as it is, as programs want it.
    """
    writer = csv.writer(out, lineterminator="\n")
    for row in chain([tuple(names)], rows):
        writer.writerow([shown(_guarded(value)) for value in row])


def write_parquet(names: Sequence[str], batches: Iterable[pa.RecordBatch], schema: pa.Schema, out: IO[bytes]) -> None:
    """Write a Parquet file."""
    named = pa.schema([field.with_name(name) for field, name in zip(schema, names, strict=True)])
    with pq.ParquetWriter(pa.PythonFile(out, "w"), named, compression="zstd") as writer:
        for batch in batches:
            writer.write_batch(pa.RecordBatch.from_arrays(batch.columns, schema=named))


def _guarded(value: Any) -> str:
    text = cell(value)
    return f"'{text}" if isinstance(value, str) and text.startswith(_FORMULA) else text
