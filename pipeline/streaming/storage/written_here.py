"""Writes Arrow tables to a lake on this machine: by delta-rs, a commit without a Spark job.

A commit of Spark takes a second and several jobs, however few its rows are. The log, the constraints that are held and
the transaction ids of batches are the same, so that Spark and others read and write the same tables in turn.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.transaction import AddAction, RemoveAction

from pipeline.analysis.fit import fit
from pipeline.lake.arrow import arrow_schema
from pipeline.lake.delta_writer import writer_properties
from pipeline.streaming.storage.lake import Lake
from pipeline.streaming.storage.new_tables import without_spaces
from pipeline.streaming.storage.sinks import Batch
from pipeline.streaming.storage.table_files import TableFile
from pipeline.tables import Table


def append_here(rows: pa.Table, lake: Lake, table: Table, batch: Batch | None = None) -> None:
    """Append rows, at most once for each ``batch``."""
    _write(rows, lake, table, batch, mode="append")


def overwrite_here(
    rows: pa.Table, lake: Lake, table: Table, batch: Batch | None = None, where: str | None = None
) -> None:
    """Replace the whole content of a table, or the rows that a condition holds for, in one commit."""
    _write(rows, lake, table, batch, mode="overwrite", predicate=where)


def takes_files(lake: Lake, table: Table) -> bool:
    """Whether files that our writer made may be committed to a table: it is on this machine, and demands nothing more.

    Somebody may have given it constraints of their own, or features of Delta's that our writer does not know.
    """
    if not lake.is_local:
        return False
    held = DeltaTable(lake.path(table))
    demanded, configuration = set(held.protocol().writer_features or ()), held.metadata().configuration
    constraints = {
        name.removeprefix(_CONSTRAINT): without_spaces(rule)
        for name, rule in configuration.items()
        if name.startswith(_CONSTRAINT)
    }
    ours = {name: without_spaces(rule) for name, rule in table.checks.items()}
    plain = held.protocol().min_writer_version <= _WITH_CONSTRAINTS or demanded <= _FEATURES
    return plain and constraints == ours


def commit_files(files: Iterable[TableFile], lake: Lake, table: Table, batch: Batch | None = None) -> None:
    """Append files that :class:`TableWriter` made in the table's folder, in one commit, at most once for each batch."""
    place = DeltaTable(lake.path(table))
    found = _properties(place, table, batch)
    if found is None:
        return
    actions: list[AddAction | RemoveAction] = [
        AddAction(one.path, one.size, json.loads(one.partition), one.modified_ms, True, one.statistics) for one in files
    ]
    place.create_write_transaction(actions, "append", place.schema(), list(table.partition_by), commit_properties=found)


_CONSTRAINT = "delta.constraints."
_WITH_CONSTRAINTS = 3
"""Writers of this version hold to constraints, and nothing beyond."""
_FEATURES = {"appendOnly", "invariants", "checkConstraints"}


def _properties(place: DeltaTable, table: Table, batch: Batch | None) -> CommitProperties | None:
    """What a commit carries so that a batch writes once; None: it has."""
    if batch is None:
        return CommitProperties()
    app_id = batch.app_id(table)
    done = place.transaction_version(app_id)
    if done is not None and done >= batch.number:
        return None
    # Spark forgets ids without a time at once: to it they are older than it keeps them.
    once = Transaction(app_id, batch.number, last_updated=int(time.time() * 1000))
    return CommitProperties(app_transactions=[once])


def _write(rows: pa.Table, lake: Lake, table: Table, batch: Batch | None, **how: Any) -> None:
    place = DeltaTable(lake.path(table))
    properties = _properties(place, table, batch)
    if properties is not None:
        how |= {"writer_properties": writer_properties(table), "commit_properties": properties}
        write_deltalake(place, _typed(rows, table), **how)


def _typed(rows: pa.Table, table: Table) -> pa.Table:
    return fit(rows, table).cast(arrow_schema(table.columns))
