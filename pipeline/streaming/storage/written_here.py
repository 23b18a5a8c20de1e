"""How does this process write Arrow tables to a lake on its machine? By delta-rs: a commit without a Spark job.

A commit of Spark takes a second and several jobs, however few its rows are. The log, the constraints that are held and
the transaction ids of batches are the same, so that Spark and others read and write the same tables in turn.
"""

from __future__ import annotations

import time

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, WriterProperties, write_deltalake

from pipeline.analysis.fit import fit
from pipeline.arrow import arrow_schema
from pipeline.streaming.storage.lake import Lake
from pipeline.tables import Table

_ZSTD = WriterProperties(compression="ZSTD")
Once = tuple[str, int]
"""Transaction id and number of a write that happens once."""


def append_here(rows: pa.Table, lake: Lake, table: Table, once: Once | None = None) -> None:
    """Append rows; at most once, if ``once`` states which write this is."""
    place = DeltaTable(lake.path(table))
    if not _is_done(place, once):
        write_deltalake(
            place, _typed(rows, table), mode="append", writer_properties=_ZSTD, commit_properties=_properties(once)
        )


def overwrite_here(
    rows: pa.Table, lake: Lake, table: Table, once: Once | None = None, where: str | None = None
) -> None:
    """Replace the whole content of a table, or the rows that a condition holds for, in one commit."""
    place = DeltaTable(lake.path(table))
    if not _is_done(place, once):
        write_deltalake(
            place,
            _typed(rows, table),
            mode="overwrite",
            predicate=where,
            writer_properties=_ZSTD,
            commit_properties=_properties(once),
        )


def _is_done(place: DeltaTable, once: Once | None) -> bool:
    if once is None:
        return False
    done = place.transaction_version(once[0])
    return done is not None and done >= once[1]


def _properties(once: Once | None) -> CommitProperties | None:
    if once is None:
        return None
    # Spark forgets ids without a time at once: to it they are older than it keeps them.
    return CommitProperties(app_transactions=[Transaction(*once, last_updated=int(time.time() * 1000))])


def _typed(rows: pa.Table, table: Table) -> pa.Table:
    return fit(rows, table).cast(arrow_schema(table.columns))
