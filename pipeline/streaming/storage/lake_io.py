"""Brings rows of the lake to a function of :mod:`pipeline.analysis`, which is the same wherever it runs.

Where a derivation looks at few rows, and the lake is on this machine, it runs in this process: Delta's log names the
files, Arrow reads them, delta-rs writes what comes out. Else Spark's workers run it on bundles of groups
(:mod:`pipeline.streaming.spark.bundles`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timezone
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from pipeline.analysis.duplicates.duplicate_flows import counted, counted_sql
from pipeline.analysis.fit import fit as fit_arrow
from pipeline.analysis.fit import schema_of
from pipeline.analysis.tables import InFiles, Row, Some, Tables
from pipeline.lake.delta_reader import open_dataset
from pipeline.streaming.spark.bundles import Derivation, map_bundles, map_tables
from pipeline.streaming.storage.lake import Lake, holds, is_empty, read_table, struct_type
from pipeline.streaming.storage.local_rows import local_rows
from pipeline.streaming.storage.sinks import Batch, append, day_of, fit, overwrite, replace_dates, replace_since
from pipeline.streaming.storage.table_scan import TableScan, in_arrow, in_duckdb, in_spark
from pipeline.streaming.storage.worker_files import Written
from pipeline.streaming.storage.written_here import append_here, commit_files, overwrite_here
from pipeline.tables import DUPLICATE_FLOWS, Column, Table

Made: TypeAlias = "pa.Table | DataFrame"
"""Rows in memory, or those that Spark is yet to compute."""
Appended: TypeAlias = "Made | Written"
"""The same, or rows that are in the table's folder already."""
FEW_ROWS = 500_000
"""So many rows, of all tables that it looks at, a derivation takes in this process: some hundred MB."""
FEW_BYTES = 64 << 20
"""Nor more than this many bytes of files: bodies may be long, and are ten times as long in memory as in zstd."""

MOST_STREAMED = 20_000_000
"""So many rows a derivation takes in this process that asks them by SQL: in memory are some numbers of each."""
_OF_BATCH = "SELECT 1 AS one FROM rows WHERE checkpoint = $checkpoint AND batch_id = $number LIMIT 1"


@dataclass(frozen=True, slots=True)
class LakeIO:
    """Reads and derives rows of a lake.

    Attributes:
        few: rows that a derivation takes in this process.
    """

    spark: SparkSession
    lake: Lake
    few: int = FEW_ROWS
    _copies: list[pa.Table] = field(default_factory=list)

    def read(self, wanted: TableScan) -> pa.Table:
        """Rows that are few by nature."""
        if not self.lake.is_local:
            return _arrow_of(self.frame(wanted), wanted)
        return self._read_here(wanted)

    def scan(self, wanted: TableScan) -> Some:
        """Rows that are read as a query needs them, if they are on this machine; else as :meth:`read`."""
        if not self.lake.is_local:
            return self.read(wanted)
        found = local_rows(self.lake.root, wanted.table)
        if isinstance(found, InFiles):
            return replace(found, sql=f"SELECT * FROM ({found.sql}) WHERE {in_duckdb(wanted)}")
        where = in_arrow(wanted)
        return found if where is None else found.filter(where)

    def look_up(self, wanted: TableScan) -> pa.Table:
        """As :meth:`read`, of a few rows among many: of the others no more is read than what distinguishes them."""
        if not self.lake.is_local:
            return self.read(wanted)
        tables = Tables({"rows": self._scan_once(wanted)})
        try:
            found = fit_arrow(tables.table("SELECT * FROM rows"), wanted.table)
            return found.select(wanted.columns) if wanted.columns else found
        finally:
            tables.close()

    def bounds(self, wanted: TableScan, column: str) -> tuple[int, int] | None:
        """The least and the greatest value of a column; None without any."""
        if self.lake.is_local:
            found = pc.min_max(self._read_here(replace(wanted, columns=(column,))).column(column)).as_py()
            least, greatest = found["min"], found["max"]
        else:
            least, greatest = self.frame(wanted).agg(F.min(column), F.max(column)).collect()[0]
        return None if least is None else (least, greatest)

    def ask(self, wanted: TableScan, sql: str, **parameters: object) -> list[Row]:
        """What a query gives of ``rows`` on this machine; of them is read what it needs."""
        tables = Tables({"rows": self._scan_once(wanted)})
        try:
            return tables.rows(sql, **parameters)
        finally:
            tables.close()

    def note(self, noted: pa.Table, table: Table, batch: Batch) -> None:
        """Append rows that carry their batch (``checkpoint``, ``batch_id``), unless the table has those of this batch.

        Looking costs something only where a batch may be a replay.
        """
        if not self.is_noted(table, batch):
            self.append(noted, table)

    def is_noted(self, table: Table, batch: Batch) -> bool:
        """Whether an earlier try of ``batch`` has left its notes in ``table``."""
        if not batch.may_repeat or self.is_empty(table):
            return False
        if not self.lake.is_local:
            its = (F.col("checkpoint") == batch.checkpoint_id) & (F.col("batch_id") == batch.number)
            return holds(self.spark, self.lake, table, its)
        return bool(self.ask(TableScan(table), _OF_BATCH, checkpoint=batch.checkpoint_id, number=batch.number))

    def frame(self, wanted: TableScan) -> DataFrame:
        """The rows as Spark reads them."""
        rows = read_table(self.spark, self.lake, wanted.table)
        for test in in_spark(wanted):
            rows = rows.where(test)
        if wanted.once and not self.is_empty(DUPLICATE_FLOWS):
            copies = self._held_copies()
            rows = map_tables(rows, lambda some: counted(some, copies), rows.schema, "copies left out")
        rows = rows.select(*wanted.columns) if wanted.columns else rows
        return rows.distinct() if wanted.distinct else rows

    def derive(
        self,
        function: Derivation,
        inputs: Mapping[str, TableScan],
        by: Sequence[str],
        output: Table | Sequence[Column],
        shared: Mapping[str, pa.Table] | None = None,
        *,
        streams: bool = False,
    ) -> Made:
        """What a function makes of rows: an Arrow table where it ran here, else a frame that is yet to be computed.

        Args:
            function: takes the inputs, and what is shared, by name.
            inputs: rows of the lake, cut by ``by``.
            by: SQL expressions over columns of all inputs: what distinguishes groups.
            output: the columns that the function gives.
            shared: what goes to each call as it is.
            streams: whether the function asks its inputs by SQL alone (:class:`pipeline.analysis.tables.Tables`): then
                it takes up to :data:`MOST_STREAMED` rows where they are.
        """
        here: Mapping[str, Some] | None = self.collect_if_small(inputs)
        if here is None and streams:
            here = self._where_they_lie(inputs)
        if here is not None:
            return function({**here, **(shared or {})})
        frames = {name: self.frame(wanted) for name, wanted in inputs.items()}
        return self.derive_in_spark(function, frames, by, output, shared)

    def collect_if_small(self, inputs: Mapping[str, TableScan], few: int | None = None) -> dict[str, pa.Table] | None:
        """Rows that one process derives from; None: they are more than ``few`` (None: as ever), or are elsewhere."""
        if not self.lake.is_local:
            return None
        held = {name: self._dataset(wanted) for name, wanted in inputs.items()}
        if not self._are_few(((held[n], wanted) for n, wanted in inputs.items()), self.few if few is None else few):
            return None
        return {name: self._read_from(held[name], wanted) for name, wanted in inputs.items()}

    def derive_in_spark(
        self,
        function: Derivation,
        rows: Mapping[str, DataFrame],
        by: Sequence[str],
        output: Table | Sequence[Column],
        shared: Mapping[str, pa.Table] | None = None,
    ) -> DataFrame:
        """The same of frames, by Spark's workers."""
        columns, step = (output.columns, output.full_name) if isinstance(output, Table) else (output, "some rows")
        given, keys = dict(shared or {}), [F.expr(one) for one in by]
        return map_bundles(
            rows, keys, lambda tables: function({**given, **tables}), struct_type(columns), f"table {step}"
        )

    def is_empty(self, table: Table) -> bool:
        """Whether a table holds no row for certain."""
        if self.lake.is_local:
            held = self._dataset(TableScan(table))
            return held is None or next(iter(held.get_fragments()), None) is None
        return is_empty(self.spark, self.lake, table)

    def append(self, made: Appended, table: Table, batch: Batch | None = None) -> None:
        """Append rows, at most once for each ``batch``."""
        if isinstance(made, Written):
            commit_files(made.files, self.lake, table, batch)
        elif self._is_here(made):
            append_here(made, self.lake, table, batch)
        else:
            append(self.as_frame(made, table), self.lake, table, batch)

    def overwrite(self, made: Made, table: Table, batch: Batch | None = None) -> None:
        """Replace the whole content of a small table."""
        if self._is_here(made):
            overwrite_here(made, self.lake, table, batch)
        else:
            overwrite(self.as_frame(made, table), self.lake, table, batch)

    def replace_dates(self, made: Made, table: Table, first: date, last: date | None = None) -> None:
        """Replace all rows from ``first`` to ``last`` (inclusive; None: to the end) in one commit."""
        if self._is_here(made):
            where = f"date >= '{first}'" + (f" AND date <= '{last}'" if last else "")
            overwrite_here(made, self.lake, table, where=where)
        else:
            replace_dates(self.as_frame(made, table), self.lake, table, first, last)

    def replace_since(self, made: Made, table: Table, column: str, since_us: int) -> None:
        """Replace all rows whose timestamp ``column`` is ``since_us`` (µs since the epoch) or later, in one commit.

        The table's ``date`` is the day of that column.
        """
        if self._is_here(made):
            where = f"date >= '{day_of(since_us)}' AND {column} >= '{_stamp(since_us)}'"
            overwrite_here(made, self.lake, table, where=where)
        else:
            replace_since(self.as_frame(made, table), self.lake, table, column, since_us)

    def merge(self, made: Made, table: Table, same: str, within: Mapping[str, tuple[object, object]]) -> None:
        """Put rows in the place of those that are the same, and add the others. Without any there is no commit.

        Args:
            made: whole rows.
            table: where they belong.
            same: when a row ``s`` of them takes the place of a row ``t`` of the table, as SQL.
            within: by column the least and the greatest value (inclusive; numbers or dates) of rows whose place may be
                taken.
        """
        if self._is_here(made):
            if made.num_rows:
                # Not by delta-rs' own MERGE: it writes texts of a type that Arrow's filters do not know (string_view).
                taken = f"SELECT 1 FROM made AS s WHERE {same}"
                others = f"SELECT * FROM rows AS t WHERE {_between(within, 't.')} AND NOT EXISTS ({taken})"
                tables = Tables({"rows": self.scan(TableScan(table)), "made": made})
                try:
                    kept = fit_arrow(tables.table(others), table)
                finally:
                    tables.close()
                rows = pa.concat_tables([kept, fit_arrow(made, table)])
                overwrite_here(rows, self.lake, table, where=_between(within))
            return
        frame = fit(self.as_frame(made, table), table).persist()
        try:
            if not frame.isEmpty():
                target = DeltaTable.forPath(self.spark, self.lake.path(table)).alias("t")
                target.merge(
                    frame.alias("s"), f"{_between(within, 't.')} AND {same}"
                ).whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
        finally:
            frame.unpersist()

    def _is_here(self, made: Made) -> bool:
        return isinstance(made, pa.Table) and self.lake.is_local

    def as_frame(self, made: Made, columns: Table | Sequence[Column]) -> DataFrame:
        """What :meth:`derive` gave, for a table to be written."""
        if isinstance(made, DataFrame):
            return made
        some = columns.columns if isinstance(columns, Table) else columns
        return frame_of(self.spark, made, some)

    def as_arrow(self, made: Made, columns: Sequence[Column]) -> pa.Table:
        """The same in memory, where that is small."""
        return made.select([c.name for c in columns]) if isinstance(made, pa.Table) else made.toArrow()

    # --- in this process

    def _are_few(self, lying: Iterable[tuple[Any | None, TableScan]], most: int) -> bool:
        left, bytes_left = most, FEW_BYTES
        for held, one in lying:
            if held is None:
                continue
            parts = list(held.get_fragments(in_arrow(one)))
            count = sum(part.count_rows() for part in parts)
            size = sum(part.filesystem.get_file_info(part.path).size for part in parts)
            if 0 <= left < count or bytes_left < size:  # some may not be wanted
                asked = self.ask(one, "SELECT count(*) AS rows FROM rows")[0].rows
                size = _bytes_of(parts, one.columns) * asked // max(count, 1)
                count = asked
            left, bytes_left = left - count, bytes_left - size
            if left < 0 or bytes_left < 0:
                return False
        return True

    def _where_they_lie(self, inputs: Mapping[str, TableScan]) -> Mapping[str, Some] | None:
        """Rows for queries that read what they ask for; None: they are too many, or are elsewhere."""
        if not self.lake.is_local:
            return None
        counts = (self.ask(replace(one, once=False), "SELECT count(*) AS rows FROM rows") for one in inputs.values())
        if sum(count.rows for (count,) in counts) > MOST_STREAMED:
            return None
        return {name: self._scan_once(one) for name, one in inputs.items()}

    def _scan_once(self, wanted: TableScan) -> Some:
        """As :meth:`scan`, without rows of copies where ``once`` says so."""
        found = self.scan(wanted)
        if not (wanted.once and self._held_copies().num_rows):
            return found
        if isinstance(found, InFiles):
            sql = f"WITH held AS ({found.sql}) {counted_sql('held', 'held_copies')}"
            return replace(found, sql=sql, beside={"held_copies": self._held_copies()})
        return self.counted(found if isinstance(found, pa.Table) else found.to_table())

    def _dataset(self, wanted: TableScan) -> Any | None:
        return open_dataset(self.lake.root, wanted.table)

    def _read_here(self, wanted: TableScan) -> pa.Table:
        return self._read_from(self._dataset(wanted), wanted)

    def _read_from(self, held: Any | None, wanted: TableScan) -> pa.Table:
        columns = list(wanted.columns) or None
        if held is None:
            empty = schema_of(wanted.table).empty_table()
            return empty.select(columns) if columns else empty
        needed = columns if columns is None or not wanted.once else sorted({*columns, "exchange_id", "ts"})
        rows = held.to_table(needed, filter=in_arrow(wanted))
        if columns is None:  # columns that are newer than the table
            rows = fit_arrow(rows, wanted.table)
        rows = _plain(rows)
        return self.counted(rows) if wanted.once else rows

    def counted(self, rows: pa.Table) -> pa.Table:
        """Rows with ``exchange_id`` and ``ts``; of a connection that was seen several times, one copy."""
        return counted(rows, self._held_copies())

    def _held_copies(self) -> pa.Table:
        if not self._copies:
            self._copies.append(self.read(TableScan(DUPLICATE_FLOWS)))
        return self._copies[0]

    def forget_copies(self) -> None:
        """Copies have changed."""
        self._copies.clear()


def _stamp(micros: int) -> str:
    return (
        datetime.fromtimestamp(micros // 1_000_000, timezone.utc).strftime("%Y-%m-%d %H:%M:%S.")
        + f"{micros % 1_000_000:06d}Z"
    )


def _between(bounds: Mapping[str, tuple[object, object]], prefix: str = "") -> str:
    return " AND ".join(
        f"{prefix}{name} {sign} '{bound}'"
        for name, both in bounds.items()
        for sign, bound in zip((">=", "<="), both, strict=True)
    )


def _bytes_of(parts: Iterable[Any], columns: Sequence[str]) -> int:
    """What some columns (none: all) take in Parquet files."""
    found = 0
    for part in parts:
        groups = (part.metadata.row_group(number) for number in range(part.metadata.num_row_groups))
        chunks = (group.column(number) for group in groups for number in range(group.num_columns))
        found += sum(
            chunk.total_compressed_size
            for chunk in chunks
            if not columns or chunk.path_in_schema.split(".")[0] in columns
        )
    return found


def _plain(rows: pa.Table) -> pa.Table:
    """Delta's reader may give dictionaries for partitions."""
    for number, one in enumerate(rows.schema):
        if pa.types.is_dictionary(one.type):
            rows = rows.set_column(number, one.name, rows.column(number).cast(one.type.value_type))
    return rows


def _arrow_of(frame: DataFrame, wanted: TableScan) -> pa.Table:
    rows: pa.Table = frame.toArrow()
    return rows if wanted.columns else fit_arrow(rows, wanted.table)


def frame_of(spark: SparkSession, rows: pa.Table, columns: Sequence[Column]) -> DataFrame:
    """An Arrow table as a frame of one partition or two."""
    schema = struct_type(columns)
    return spark.createDataFrame(rows.select([c.name for c in columns]), schema=schema)


def same_rows(left: pa.Table, right: pa.Table, table: Table) -> bool:
    """Whether two small tables hold the same rows, in any order."""
    order = [(name, "ascending") for name in table.key]
    one, other = (fit_arrow(rows, table).sort_by(order).combine_chunks() for rows in (left, right))
    return bool(one.equals(other))
