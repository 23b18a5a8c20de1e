"""Landing files on this machine, read by the worker that decodes their rows: no row passes through the JVM.

Spark reads a row from columns, makes a row of it, columns again for Python, and objects for pandas: half of what it
takes to decode frames and write them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeline.lake.arrow import arrow_schema
from pipeline.tables import LANDING_COLUMNS

_LANDING = arrow_schema(LANDING_COLUMNS)
_HANDED = pa.schema([(f.name, pa.int64() if pa.types.is_timestamp(f.type) else f.type) for f in _LANDING])
_TEXT = "BYTE_ARRAY"
"""Parquet's name of the type of texts and bytes."""
_ROWS = 5_000
"""Rows of a batch."""
_BYTES = 32 << 20
"""Of a batch, however short a file states long frames by a dictionary."""


def landed_batches(paths: Iterable[str]) -> Iterator[pa.RecordBatch]:
    """Rows of landing files in their order, with the columns and types that Spark hands to a worker.

    A column that a file lacks is null, as for Spark. Times are int64, µs since the epoch.

    Args:
        paths: of files on this machine.

    Raises:
        pa.ArrowException, OSError: a file cannot be read, or a column has another type and does not fit.
    """
    for path in paths:
        about = pq.read_metadata(path)
        with pq.ParquetFile(path, metadata=about, read_dictionary=_with_dictionary(about)) as file:
            held = [name for name in _LANDING.names if name in file.schema_arrow.names]
            for group in range(about.num_row_groups):
                for batch in file.iter_batches(_rows_of(about.row_group(group)), [group], held, use_threads=False):
                    yield from map(_fitted, _pieces(batch))


def _with_dictionary(about: pq.FileMetaData) -> list[str]:
    """Columns of texts that some row group has as numbers of a dictionary."""
    groups = (about.row_group(number) for number in range(about.num_row_groups))
    columns = (group.column(number) for group in groups for number in range(group.num_columns))
    return sorted({one.path_in_schema for one in columns if one.has_dictionary_page and one.physical_type == _TEXT})


def _rows_of(about: pq.RowGroupMetaData) -> int:
    mean = about.total_byte_size // max(about.num_rows, 1)
    return int(max(1, min(_ROWS, _BYTES // max(mean, 1))))


def _pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """A batch in pieces that take no more than they may once each row has its own text."""
    if batch.num_rows < 2 or sum(map(_bytes_of, batch.columns)) <= _BYTES:
        yield batch
        return
    half = batch.num_rows // 2
    yield from _pieces(batch.slice(0, half))
    yield from _pieces(batch.slice(half))


def _bytes_of(column: pa.Array) -> int:
    """Bytes of a column's values, each counted as often as it comes."""
    if not pa.types.is_dictionary(column.type):
        return int(column.nbytes)
    return int(pc.sum(pc.binary_length(column.dictionary).take(column.indices).cast(pa.int64())).as_py() or 0)


def _fitted(batch: pa.RecordBatch) -> pa.RecordBatch:
    columns = [
        _column(batch.column(name), _LANDING.field(name).type)
        if name in batch.schema.names
        else pa.nulls(batch.num_rows, _HANDED.field(name).type)
        for name in _LANDING.names
    ]
    return pa.RecordBatch.from_arrays(columns, schema=_HANDED)


def _column(values: pa.Array, kind: pa.DataType) -> pa.Array:
    fitting = values if values.type == kind else values.cast(kind)
    return fitting.cast(pa.int64()) if pa.types.is_timestamp(kind) else fitting
