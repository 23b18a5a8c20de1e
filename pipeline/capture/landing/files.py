"""From rows to landing files: which rows share a file, its name, and what its manifest states.

Names and contents follow from the rows and their order alone. (DESIGN: landing zone.)
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from decoder.model import Frame, Gap
from pipeline.lake.arrow import arrow_array, arrow_schema
from pipeline.tables import GAP_LANDING_COLUMNS, LANDING_COLUMNS

ROWS_PER_FILE = 100_000
BYTES_PER_FILE = 32 * 1024 * 1024
"""A file is finished at this many rows or frame bytes: large enough to be worth a task, and small enough for the
memory, which holds it up to three times: rows that are gathered, rows that are written, and their file."""

MANIFESTS = "_manifest"
"""Readers of Hive-style directories ignore names that begin with ``_`` or ``.``."""

FRAMES = arrow_schema(LANDING_COLUMNS)
GAPS = arrow_schema(GAP_LANDING_COLUMNS)

_DAY_US = 86_400_000_000
_UNIQUE = {"exchange_id", "seq", "ts", "ts_end", "correlation_id", "reply_to", "size", "frame", "idle_us"}
_WRITE: dict[str, Any] = {
    "use_dictionary": [name for name in (*FRAMES.names, *GAPS.names) if name not in _UNIQUE],
    "write_statistics": [name for name in (*FRAMES.names, *GAPS.names) if name != "frame"],
}
_KEPT: dict[str, Any] = {"compression": "zstd", "compression_level": 3}
"""See docs/landing.md for what was measured."""
_READ_ONCE: dict[str, Any] = {"compression": "lz4"}
"""Twice as large, and written and read in half of the time (docs/lab-book/diagnosis.md)."""


@dataclass(frozen=True, slots=True)
class LandingFile:
    """A file ready to be stored.

    Attributes:
        folder: where it goes, relative to the landing zone.
        manifests: where its manifest goes.
        start: capture time of its first row, µs since the epoch; part of its name.
        end: that of its last row.
        rows: how many.
        frame_bytes: of its frames on the wire; 0 for gaps.
    """

    folder: str
    manifests: str
    start: int
    end: int
    rows: int
    frame_bytes: int
    content: bytes

    def manifest(self, path: str) -> bytes:
        """What the file at ``path`` (relative to the landing zone) holds, as JSON."""
        return orjson.dumps(
            {
                "path": path,
                "rows": self.rows,
                "bytes": len(self.content),
                "sha256": hashlib.sha256(self.content).hexdigest(),
                "min_ts": _iso(self.start),
                "max_ts": _iso(self.end),
                "frame_bytes": self.frame_bytes,
            },
            option=orjson.OPT_INDENT_2,
        )


@dataclass(slots=True)
class Batch:
    """Rows that are written together, in the order in which they came.

    Attributes:
        rows: frames and gaps.
        size: bytes of the frames.
    """

    rows: int = 0
    size: int = 0
    _tables: list[pa.Table] = field(default_factory=list)
    _frames: list[Frame] = field(default_factory=list)
    _gaps: list[Gap] = field(default_factory=list)

    @property
    def is_full(self) -> bool:
        """Whether it is time to write."""
        return self.rows >= ROWS_PER_FILE or self.size >= BYTES_PER_FILE

    def add(self, item: Frame | Gap) -> None:
        """Take one row."""
        self.rows += 1
        if isinstance(item, Frame):
            self.size += len(item.frame)
            self._frames.append(item)
        else:
            self._gaps.append(item)

    def add_table(self, table: pa.Table, ends: np.ndarray[Any, np.dtype[np.int64]], start: int) -> int:
        """Take frames from row ``start`` on until full: as many as if they had come one by one.

        Args:
            table: frames, with the schema FRAMES.
            ends: bytes of the frames up to and including each row of the table.
            start: first row to take.

        Returns:
            The first row not taken.
        """
        before = int(ends[start - 1]) if start else 0
        full = int(np.searchsorted(ends, before + BYTES_PER_FILE - self.size)) + 1
        stop: int = min(table.num_rows, start + ROWS_PER_FILE - self.rows, full)
        self._gather()
        self._tables.append(table.slice(start, stop - start))
        self.rows += stop - start
        self.size += int(ends[stop - 1]) - before
        return stop

    def files(self, *, are_read_once: bool = False) -> Iterator[LandingFile]:
        """The rows as files, a day each: frames, then gaps.

        Args:
            are_read_once: whether they go after they were read: then time counts, and not space.
        """
        self._gather()
        options = _WRITE | (_READ_ONCE if are_read_once else _KEPT)
        tables, self._tables = self._tables, []  # each is free as soon as it is copied
        if tables:
            yield from _files("", tables, options)
        if self._gaps:
            yield from _files("gaps/", [_table(self._gaps, GAPS)], options)

    def _gather(self) -> None:
        if self._frames:
            self._tables.append(_table(self._frames, FRAMES))
            self._frames = []


def frame_ends(table: pa.Table) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Bytes of the frames of a table up to and including each row."""
    ends = pc.cumulative_sum(pc.binary_length(table["frame"]).cast(pa.int64())).combine_chunks()
    return np.frombuffer(ends.buffers()[1], np.int64, len(ends)) if len(ends) else np.empty(0, np.int64)


def _table(rows: Sequence[Frame] | Sequence[Gap], schema: pa.Schema) -> pa.Table:
    values = [list(map(attrgetter(name), rows)) for name in schema.names]
    return pa.Table.from_arrays(list(map(arrow_array, values, schema.types)), schema=schema)


def _files(prefix: str, tables: list[pa.Table], options: Mapping[str, Any]) -> Iterator[LandingFile]:
    # Pages follow the chunks, so that the same rows in other chunks would make another file.
    table = pa.concat_tables(tables).combine_chunks()
    tables.clear()
    days = table["ts"].cast(pa.date32())
    present = days.unique().sort()
    for day in present:
        part = table if len(present) == 1 else table.filter(pc.equal(days, day)).combine_chunks()
        span = pc.min_max(part["ts"].cast(pa.int64()))
        sink = pa.BufferOutputStream()
        pq.write_table(part, sink, **options)
        yield LandingFile(
            folder=f"{prefix}date={day.cast(pa.string())}",
            manifests=f"{MANIFESTS}/{prefix}".rstrip("/"),
            start=span["min"].as_py(),
            end=span["max"].as_py(),
            rows=part.num_rows,
            frame_bytes=pc.sum(part["size"].cast(pa.int64())).as_py() if "size" in part.column_names else 0,
            content=sink.getvalue().to_pybytes(),
        )


def _iso(ts: int) -> str:
    return f"{np.datetime64(ts, 'us')}Z"
