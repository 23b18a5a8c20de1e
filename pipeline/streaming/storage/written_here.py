"""How does this process write Arrow tables to a lake on its machine? By delta-rs: a commit without a Spark job.

A commit of Spark takes a second and several jobs, however few its rows are. The log, the constraints that are held and
the transaction ids of batches are the same, so that Spark and others read and write the same tables in turn.
"""

from __future__ import annotations

import time
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, WriterProperties, write_deltalake

from pipeline.analysis.fit import fit
from pipeline.arrow import arrow_schema
from pipeline.streaming.storage.lake import Lake
from pipeline.streaming.storage.sinks import Batch
from pipeline.tables import Table

_ZSTD = WriterProperties(compression="ZSTD")


def append_here(rows: pa.Table, lake: Lake, table: Table, batch: Batch | None = None) -> None:
    """Append rows, at most once for each ``batch``."""
    _write(rows, lake, table, batch, mode="append")


def overwrite_here(
    rows: pa.Table, lake: Lake, table: Table, batch: Batch | None = None, where: str | None = None
) -> None:
    """Replace the whole content of a table, or the rows that a condition holds for, in one commit."""
    _write(rows, lake, table, batch, mode="overwrite", predicate=where)


def _write(rows: pa.Table, lake: Lake, table: Table, batch: Batch | None, **how: Any) -> None:
    place, properties = DeltaTable(lake.path(table)), None
    if batch is not None:
        app_id = batch.app_id(table)
        done = place.transaction_version(app_id)
        if done is not None and done >= batch.number:
            return
        # Spark forgets ids without a time at once: to it they are older than it keeps them.
        once = Transaction(app_id, batch.number, last_updated=int(time.time() * 1000))
        properties = CommitProperties(app_transactions=[once])
    write_deltalake(place, _typed(rows, table), writer_properties=_ZSTD, commit_properties=properties, **how)


def _typed(rows: pa.Table, table: Table) -> pa.Table:
    return fit(rows, table).cast(arrow_schema(table.columns))
