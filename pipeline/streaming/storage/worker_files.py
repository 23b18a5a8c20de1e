"""Files of tables that Spark's workers have written, on their way to the commit.

Workers give back a line for each (:class:`pipeline.streaming.storage.table_files.TableFile`); rows never travel.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.accumulators import Accumulator
from pyspark.sql import DataFrame, SparkSession

from pipeline.lake.permissions import current_umask
from pipeline.streaming.spark.failures import Failures, failures_of, noting_in_worker
from pipeline.streaming.storage.lake import Lake
from pipeline.streaming.storage.new_files import in_pieces
from pipeline.streaming.storage.table_files import TableFile, TableWriter
from pipeline.tables import Table

if TYPE_CHECKING:
    import pandas as pd

LINE = "path string, partition string, rows bigint, size bigint, modified_ms bigint, statistics string"
"""Of a TableFile, in its order."""


@dataclass(frozen=True, slots=True)
class Written:
    """Rows of a table in files that are still to be committed.

    Attributes:
        table: in whose folder they are.
        files: none of them empty.
    """

    lake: Lake
    table: Table
    files: tuple[TableFile, ...]

    @property
    def rows(self) -> int:
        """In all files."""
        return sum(one.rows for one in self.files)

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(one.size for one in self.files)

    @property
    def paths(self) -> list[str]:
        """Where they are."""
        return [f"{self.lake.path(self.table)}/{one.path}" for one in self.files]

    def read(self, columns: Sequence[str] | None = None, most: int | None = None) -> pa.Table:
        """Their rows, and of these some columns (not ``date``; None: all), at least the first ``most``; None: all."""
        found: list[pa.Table] = []
        for piece in in_pieces(self.paths, self.table, columns):
            found.append(piece)
            if most is not None and sum(some.num_rows for some in found) >= most:
                break
        return pa.concat_tables(found)

    def remove(self) -> None:
        """Take the files away."""
        for path in self.paths:
            Path(path).unlink(missing_ok=True)


def lines_of(files: Sequence[TableFile]) -> Iterator[pd.DataFrame]:
    """What a function within ``mapInPandas`` yields of files, if there are any: rows of :data:`LINE`."""
    if files:
        yield frame_of_rows([astuple(one) for one in files])


def frame_of_rows(rows: Sequence[tuple[Any, ...]]) -> pd.DataFrame:
    """Rows as pandas has them."""
    import pandas as pd  # noqa: PLC0415 - on the worker only

    made: pd.DataFrame = pd.DataFrame(list(rows))
    return made


def files_of(lines: DataFrame) -> list[TableFile]:
    """The files that workers have written."""
    return [TableFile(*row) for row in lines.collect()]


def in_tasks(
    spark: SparkSession, count: int, work: Callable[[int], Iterable[tuple[Any, ...]]], output: str
) -> list[Any]:
    """What each of this many tasks of Spark's gives.

    Args:
        spark: the session.
        count: of tasks.
        work: takes the number of the task, and gives rows.
        output: their columns.
    """
    umask = current_umask()

    def run(numbers: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        os.umask(umask)
        for frame in numbers:
            for number in frame["id"]:
                for row in work(int(number)):
                    yield frame_of_rows([row])

    return spark.range(0, count, 1, count).mapInPandas(run, output).collect() if count else []


def rewritten(spark: SparkSession, written: Written, change: Callable[[pa.Table], pa.Table]) -> Written:
    """The same files with rows that a function has changed, file by file; the earlier ones go.

    Args:
        spark: the session.
        written: files.
        change: takes some rows of the table and gives them back otherwise.
    """
    paths, folder, table = written.paths, written.lake.path(written.table), written.table
    work = partial(_rewrite, paths, folder, table, change, failures_of(spark))
    found = in_tasks(spark, len(paths), work, LINE)
    written.remove()
    return Written(written.lake, table, tuple(TableFile(*row) for row in found))


def _rewrite(
    paths: Sequence[str],
    folder: str,
    table: Table,
    change: Callable[[pa.Table], pa.Table],
    failures: Accumulator[Failures],
    number: int,
) -> list[tuple[Any, ...]]:
    found: list[TableFile] = []
    with TableWriter(folder, table) as writer:
        for piece in in_pieces([paths[number]], table):
            with noting_in_worker(failures):
                changed = change(piece)
            found += writer.add(changed)
        found += writer.close()
    return [astuple(one) for one in found]


def groups_of(sizes: Iterable[int], most: int) -> list[range]:
    """Things in their order in at most this many groups of about the same size; each has one at least."""
    all_sizes = list(sizes)
    share = sum(all_sizes) / max(most, 1)
    found: list[range] = []
    begin, held = 0, 0
    for number, size in enumerate(all_sizes):
        if number > begin and held + size / 2 > share and len(found) < most - 1:
            found.append(range(begin, number))
            begin, held = number, 0
        held += size
    return [*found, range(begin, len(all_sizes))] if all_sizes else []
