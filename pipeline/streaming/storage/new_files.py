"""Files that are new to a stream, read as a table of just these files, with the columns that are needed.

Spark hands a batch to foreachBatch as rows that it reads again for each use, with all columns that the stream selects.
So ours select nothing but the file that each row is in, for which no column is read, and a batch reads its files.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.dataset as ds
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from pipeline.analysis.fit import fit, schema_of
from pipeline.streaming.storage.lake import struct_type
from pipeline.tables import Column, Table

_PATH, _SIZE, _MODIFIED = _NEWS = ("file_path", "file_size", "file_modification_time")


@dataclass(frozen=True, slots=True)
class NewFile:
    """A file of a batch.

    Attributes:
        uri: as Spark writes it, with %20 for a space.
        rows: in it, of those the batch has.
        size: bytes; None if the stream did not state it.
        modified_us: µs since the epoch; None likewise.
    """

    uri: str
    rows: int
    size: int | None
    modified_us: int | None

    @property
    def path(self) -> str:
        """As Spark is given what to read."""
        return literally(unquote(self.uri))


def literally(path: str) -> str:
    """A pattern that only this path fits: what Spark is given to read may always be a pattern."""
    return re.sub(r"[\\*?\[\]{}]", r"\\\g<0>", path)


def with_metadata() -> list[SparkColumn]:
    """What a stream of plain files selects."""
    return [F.col(f"_metadata.{name}").alias(name) for name in _NEWS]


def names_alone() -> list[SparkColumn]:
    """What a stream of a Delta table selects, which has no metadata column."""
    unknown = F.lit(None)
    return [
        F.input_file_name().alias(_PATH),
        unknown.cast("bigint").alias(_SIZE),
        unknown.cast("timestamp").alias(_MODIFIED),
    ]


def new_files(batch: DataFrame) -> list[NewFile]:
    """The files of a batch of such a stream, by name."""
    modified_us = F.unix_micros(_MODIFIED).alias("modified_us")
    counted = batch.groupBy(*_NEWS).agg(F.count("*").alias("rows")).select("*", modified_us).collect()
    files = (NewFile(row.file_path, row.rows, row.file_size, row.modified_us) for row in counted)
    return sorted(files, key=lambda file: file.uri)


def bytes_of(files: Iterable[NewFile]) -> int:
    """Bytes of files on this machine; of one that is gone none: whoever reads it reports that."""
    paths = map(Path, paths_here(files))
    return sum(path.stat().st_size for path in paths if path.exists())


def read_files_here(files: Iterable[NewFile], table: Table) -> pa.Table:
    """The rows of Parquet files on this machine, with the columns of a table; ``date`` is the day of ``ts``."""
    return fit(with_date(_lying(paths_here(files), table).to_table()), table)


PIECE_BYTES = 48 << 20
"""Of rows in memory that are taken together: bodies may be long."""


def in_pieces(paths: Sequence[str], table: Table, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
    """The same by and by, at least one piece: in memory are those that make a piece.

    Args:
        paths: of files on this machine.
        table: whose rows they hold.
        columns: that are wanted, without ``date``; None: all.
    """
    held: list[pa.RecordBatch] = []
    size = 0
    known = schema_of(table) if columns is None else pa.schema([schema_of(table).field(name) for name in columns])

    def piece() -> pa.Table:
        rows = pa.Table.from_batches(held, pa.schema([field for field in known if field.name != "date"]))
        return fit(with_date(rows), table) if columns is None else rows

    has_any = False
    # Not side by side: a worker has one core, and what is read ahead is held.
    names = None if columns is None else list(columns)
    of_all = _lying(paths, table).to_batches(names, use_threads=False, batch_readahead=1, fragment_readahead=1)
    for batch in of_all:
        held.append(batch)
        size += batch.nbytes
        if size >= PIECE_BYTES:
            yield piece()
            held, size, has_any = [], 0, True
    if held or not has_any:
        yield piece()


def paths_here(files: Iterable[NewFile]) -> list[str]:
    """Where files on this machine are."""
    return [unquote(urlsplit(file.uri).path) for file in files]


def _lying(paths: Sequence[str], table: Table) -> ds.Dataset:
    known = pa.schema([field for field in schema_of(table) if field.name != "date"])
    return ds.dataset(list(paths), schema=known, format="parquet")


def with_date(rows: pa.Table) -> pa.Table:
    """Rows with the day of ``ts``."""
    days = rows.column("ts").cast(pa.timestamp("us")).cast(pa.date32(), safe=False)
    return rows.append_column("date", days)


def are_here(files: Iterable[NewFile]) -> bool:
    """Whether all of them are on this machine."""
    return all(urlsplit(file.uri).scheme in ("", "file") for file in files)


def read_columns_here(files: Iterable[NewFile], table: Table, columns: Sequence[str]) -> pa.Table | None:
    """Some columns of Parquet files on this machine with rows of a table; None if they cannot be read."""
    try:
        return ds.dataset(paths_here(files), schema=schema_of(table), format="parquet").to_table(list(columns))
    except (OSError, pa.ArrowException):
        return None


def read_files(spark: SparkSession, files: Iterable[NewFile], columns: Iterable[Column]) -> DataFrame:
    """The rows of Parquet files; a column that a file lacks is null.

    Args:
        spark: the session.
        files: at least one.
        columns: their columns, as far as they are wanted; none that are in names of folders.
    """
    reader = spark.read.schema(struct_type(columns)).option("recursiveFileLookup", "true")  # no columns from folders
    return reader.parquet(*(file.path for file in files))
