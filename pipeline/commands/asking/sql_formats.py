"""An answer in the formats that programs and documents take: JSON lines, CSV, Markdown, Parquet."""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.commands.asking.sql_cells import OPTIONS, cell, for_json
from pipeline.errors import UserError
from pipeline.terminal import json_line, printable

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""A text that begins with one of these is run as a formula when a spreadsheet opens the CSV (CWE-1236)."""
_MARKUP = re.compile(r"([\\`*\[\]|<>~]|(?<!\w)[_#]|_(?!\w))")
"""What Markdown or the HTML in it would not show as it is."""


def write_json(row: dict[str, Any]) -> None:
    """Write an object as a line, at once."""
    sys.stdout.buffer.write(json_line(row, for_json, OPTIONS))
    sys.stdout.buffer.flush()


def write_csv(names: Sequence[str], rows: Iterable[tuple[Any, ...]]) -> None:
    """Write CSV with a header; no text in it is run as a formula."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    for row in chain([tuple(names)], rows):
        writer.writerow([_guarded(value) for value in row])
    sys.stdout.flush()


def _guarded(value: Any) -> str:
    text = cell(value)
    return f"'{text}" if isinstance(value, str) and text.startswith(_FORMULA) else text


def write_markdown(names: Sequence[str], rows: Iterable[tuple[Any, ...]]) -> None:
    """Write a table of GitHub's Markdown; texts are shown as they are."""
    for number, row in enumerate(chain([tuple(names)], rows)):
        sys.stdout.write(f"| {' | '.join(_marked(value) for value in row)} |\n")
        if number == 0:
            sys.stdout.write(f"|{'---|' * len(names)}\n")
    sys.stdout.flush()


def _marked(value: Any) -> str:
    return _MARKUP.sub(r"\\\1", printable(cell(value))).replace("\\<", "&lt;").replace("\\>", "&gt;")


def write_parquet(names: Sequence[str], batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> None:
    """Write a Parquet file to standard output.

    Raises:
        UserError: it is a terminal.
    """
    if sys.stdout.isatty():
        raise UserError("Parquet is no text: send it to a file, … --format parquet > answer.parquet")
    named = pa.schema([field.with_name(name) for field, name in zip(schema, names, strict=True)])
    with pq.ParquetWriter(pa.PythonFile(sys.stdout.buffer, "w"), named, compression="zstd") as writer:
        for batch in batches:
            writer.write_batch(pa.RecordBatch.from_arrays(batch.columns, schema=named))
    sys.stdout.buffer.flush()
