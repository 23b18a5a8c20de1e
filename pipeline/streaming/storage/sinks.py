"""Writes a table so that a replayed batch changes nothing: by Delta transaction ids, or by looking first.

A batch that is replayed after a crash carries the same (app id, version) again, and Delta skips the write. The app id
holds the id of the checkpoint, because a new checkpoint counts its batches from 0 again, and the table's name, because
two writes to one table under one app id would skip the second.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta

from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from pipeline.streaming.storage.lake import Lake, holds, snapshot
from pipeline.tables import Table

_EPOCH = datetime(1970, 1, 1)


@dataclass(frozen=True, slots=True)
class Batch:
    """Identity of a micro-batch: the id of its query's checkpoint, and its number there.

    ``may_repeat``: another process may have done it, or a part of it. Where a lock keeps others away, only the first
    batch of a query can.
    """

    checkpoint_id: str
    number: int
    may_repeat: bool = True

    @classmethod
    def current(cls, spark: SparkSession, number: int, *, may_repeat: bool = True) -> Batch:
        """The batch that runs in this thread; the query's id is stored in its checkpoint and survives restarts."""
        query_id = spark.sparkContext.getLocalProperty("sql.streaming.queryId")
        if not query_id:
            raise RuntimeError("not called from a streaming query: there is no checkpoint to tie the write to")
        return cls(query_id, number, may_repeat)

    def app_id(self, table: Table) -> str:
        """Delta's ``txnAppId`` for the write to ``table``."""
        return f"wirelake/{self.checkpoint_id}/{table.full_name}"


def fit(frame: DataFrame, table: Table) -> DataFrame:
    """``frame`` with exactly the columns of ``table``, in order and type."""
    return frame.select(*(F.col(c.name).cast(c.type).alias(c.name) for c in table.columns))


def append(frame: DataFrame, lake: Lake, table: Table, batch: Batch | None) -> None:
    """Append rows, at most once for each ``batch`` (None: outside a stream, not guarded)."""
    writer = fit(frame, table).write.format("delta").mode("append")
    if batch is not None:
        writer = writer.option("txnAppId", batch.app_id(table)).option("txnVersion", batch.number)
    writer.save(lake.path(table))


def is_appended(spark: SparkSession, lake: Lake, table: Table, batch: Batch) -> bool:
    """Whether an earlier try of ``batch`` has appended its rows to ``table``. Costs only where it may be a repeat."""
    if not batch.may_repeat:
        return False
    version = snapshot(spark, lake, table).transactions().get(batch.app_id(table))
    return bool(version.isDefined() and version.get() >= batch.number)


def overwrite(frame: DataFrame, lake: Lake, table: Table, batch: Batch | None = None) -> None:
    """Replace the whole content of a small table."""
    writer = fit(frame, table).coalesce(1).write.format("delta").mode("overwrite")
    if batch is not None:
        writer = writer.option("txnAppId", batch.app_id(table)).option("txnVersion", batch.number)
    writer.save(lake.path(table))


def replace_dates(frame: DataFrame, lake: Lake, table: Table, first: date, last: date | None = None) -> None:
    """Replace all rows from ``first`` to ``last`` (inclusive; None: to the end) in one commit."""
    _replace(frame, lake, table, f"date >= DATE'{first}'" + (f" AND date <= DATE'{last}'" if last else ""))


def replace_since(frame: DataFrame, lake: Lake, table: Table, column: str, since_us: int) -> None:
    """Replace all rows whose timestamp ``column`` is ``since_us`` (µs since the epoch) or later, in one commit."""
    # The table's ``date`` is the day of the column: whole folders are left out.
    condition = f"date >= DATE'{day_of(since_us)}' AND {column} >= timestamp_micros({since_us})"
    _replace(frame, lake, table, condition)


def _replace(frame: DataFrame, lake: Lake, table: Table, condition: str) -> None:
    writer = fit(frame, table).write.format("delta").mode("overwrite").option("replaceWhere", condition)
    writer.save(lake.path(table))


def delete_rows(spark: SparkSession, lake: Lake, table: Table, rows: Column) -> bool:
    """Delete such rows; without any there is no commit. Returns whether there were."""
    if not holds(spark, lake, table, rows):
        return False
    DeltaTable.forPath(spark, lake.path(table)).delete(rows)
    return True


def day_of(micros: int) -> date:
    """The UTC day of a time in µs since the epoch."""
    return (_EPOCH + timedelta(microseconds=micros)).date()


def us_of(day: date) -> int:
    """The beginning of a UTC day, µs since the epoch."""
    return (datetime(day.year, day.month, day.day) - _EPOCH) // timedelta(microseconds=1)
