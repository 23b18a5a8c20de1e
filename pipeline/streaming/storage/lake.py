"""Where the tables are, and how they come into being: turns the registry into Delta tables, here only."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

from delta.tables import DeltaTable
from deltalake import DeltaTable as LocalTable
from pyspark.errors import PySparkException
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name
from pyspark.sql.types import StructType

from pipeline.errors import UserError
from pipeline.lake.drift import OWN, Stated, demand_readable
from pipeline.lake.layout import demand_layout
from pipeline.lake.s3 import S3Place
from pipeline.streaming.spark.side_by_side import side_by_side
from pipeline.streaming.storage.carry_over import carry_over
from pipeline.streaming.storage.new_tables import is_complete, without_spaces, write_first_commit
from pipeline.tables import FRAMES, LAYOUT, LAYOUT_PROPERTY, TABLES, WRITTEN_BY_DIAGNOSE, Column, Table, quoted

_FOLDERS = {"gold": "gold_news"}
"""Of checkpoints that are not named as their query is. Until 2026-11 gold read six tables; a checkpoint of that cannot
be continued from."""
_COLUMN_MAPPING = "delta.columnMapping.mode"
_KEPT_FROM = "wirelake.framesKeptFrom"
"""Property of bronze.frames."""


class LakeError(UserError):
    """Raised when the lake cannot be used; the message explains what to do."""


@dataclass(frozen=True, slots=True)
class Lake:
    """A lake by the URI or path of its root (local path, ``s3a://`` for all of S3, ``abfss://``, ``gs://``)."""

    root: str

    @classmethod
    def at(cls, root: str | Path) -> Lake:
        """The lake at ``root``; a local path is made absolute, so that workers of any directory agree."""
        text = str(root)
        if (s3 := S3Place.of(text)) is not None:
            return cls(s3.for_hadoop)
        return cls(text.rstrip("/") if "://" in text else str(Path(text).absolute()))

    @property
    def is_local(self) -> bool:
        """Whether it is in the local file system."""
        return "://" not in self.root

    def path(self, table: Table) -> str:
        """Where ``table`` is."""
        return f"{self.root}/{table.path}"

    def checkpoint(self, query: str) -> str:
        """Where the streaming query ``query`` keeps its checkpoint."""
        return f"{self.root}/_checkpoints/{_FOLDERS.get(query, query)}"


def struct_type(columns: Iterable[Column]) -> StructType:
    """The Spark schema of ``columns``; nullability is enforced by the tables, not by readers."""
    return StructType.fromDDL(", ".join(f"`{c.name}` {c.type}" for c in columns))


def read_table(spark: SparkSession, lake: Lake, table: Table) -> DataFrame:
    """The current content of ``table``.

    A table that holds no file is treated as empty there and then: Spark plans nothing that would read it.
    """
    rows = spark.read.format("delta").load(lake.path(table))
    return rows.where(F.lit(False)) if is_empty(spark, lake, table) else rows


def is_empty(spark: SparkSession, lake: Lake, table: Table) -> bool:
    """Whether ``table`` holds no row for certain, as Delta's log has it."""
    checksum = snapshot(spark, lake, table).checksumOpt()  # Delta writes one beside each version
    return bool(checksum.isDefined() and checksum.get().numFiles() == 0)


def holds(spark: SparkSession, lake: Lake, table: Table, rows: SparkColumn) -> bool:
    """Whether ``table`` has such rows."""
    return not read_table(spark, lake, table).where(rows).isEmpty()


def snapshot(spark: SparkSession, lake: Lake, table: Table) -> Any:
    """A table's state as Delta's log has it (a Java object): sizes of files, properties. No Spark job."""
    logs = spark.sparkContext._jvm.org.apache.spark.sql.delta.DeltaLog
    return logs.forTableWithSnapshot(spark._jsparkSession, lake.path(table))._2()


def version_of(spark: SparkSession, lake: Lake, table: Table) -> tuple[str, int]:
    """The id of a table, which a recreated one does not share, and the number of its newest commit."""
    if lake.is_local:
        held = LocalTable(lake.path(table))
        return str(held.metadata().id), held.version()
    state = snapshot(spark, lake, table)
    return state.metadata().id(), state.version()


def frames_kept_from(spark: SparkSession, lake: Lake) -> date | None:
    """The UTC day from which on ``bronze.frames`` has all frames: maintenance has dropped what came before it.

    None: it never has dropped any.
    """
    if lake.is_local:
        return frames_kept_from_here(lake)
    found = snapshot(spark, lake, FRAMES).metadata().configuration().get(_KEPT_FROM)
    return date.fromisoformat(found.get()) if found.isDefined() else None


def frames_kept_from_here(lake: Lake) -> date | None:
    """The first day with frames, of a lake on this machine, without Spark."""
    found = LocalTable(lake.path(FRAMES)).metadata().configuration.get(_KEPT_FROM)
    return None if found is None else date.fromisoformat(found)


def note_frames_kept_from(spark: SparkSession, lake: Lake, day: date) -> None:
    """Note that frames from before ``day`` are about to be dropped; the latest day that was noted counts."""
    known = frames_kept_from(spark, lake)
    if known is None or known < day:
        spark.sql(f"ALTER TABLE delta.`{lake.path(FRAMES)}` SET TBLPROPERTIES ('{_KEPT_FROM}' = '{day}')")


def create_tables(
    spark: SparkSession,
    lake: Lake,
    tables: Iterable[Table] | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> None:
    """Create the tables that do not exist yet; carry over what an earlier layout has.

    Args:
        spark: the session.
        lake: where.
        tables: which ones; None: all of the registry.
        progress: called with a line of text before what may take long.

    Raises:
        LakeError: the lake cannot be written to.
    """
    check_lake(lake)
    carry_over(spark, lake.root, progress, is_local=lake.is_local)
    wanted = TABLES.values() if tables is None else tables
    side_by_side(*(partial(_ensure, spark, lake, table) for table in wanted))


def check_lake(lake: Lake) -> None:
    """Look whether a job may write to a lake; of one in an object store that shows when it is done.

    Raises:
        LakeError: it may not; the message explains what to do.
    """
    if not lake.is_local:
        return
    root = Path(lake.root)
    if (root / WRITTEN_BY_DIAGNOSE).exists():
        raise LakeError(
            f"{lake.root} was written by `wirelake diagnose --lake`, all at once: no job can continue with it. "
            "Name another folder"
        )
    try:
        root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=root):
            pass
    except OSError as error:
        raise not_writable(root, error) from error


def not_writable(root: str | Path, error: OSError) -> LakeError:
    """The error for a lake in which nothing can be written."""
    return LakeError(f"cannot write to the lake {root}: {error.strerror}; name a folder that this user may write to")


def _ensure(spark: SparkSession, lake: Lake, table: Table) -> None:
    try:
        if lake.is_local and is_complete(Path(lake.path(table)), table):
            return
        if DeltaTable.isDeltaTable(spark, lake.path(table)):
            _complete(spark, lake, table)
        else:
            _create(spark, lake, table)
    except (PySparkException, OSError) as error:
        raise LakeError(f"cannot create table {table.full_name} in {lake.root}: {_first_line(error)}") from error


def demand_readable_by_all(spark: SparkSession, lake: Lake, table: Table) -> None:
    """As :func:`pipeline.lake.drift.demand_readable`, of a table that Spark opens.

    Raises:
        UserError: another program has given it features that change what its files mean.
    """
    state = snapshot(spark, lake, table)
    features, configuration = state.protocol().readerFeatures(), state.metadata().configuration()
    names = features.get().mkString(",").split(",") if features.isDefined() else []
    mode = configuration.get(_COLUMN_MAPPING)
    properties = {_COLUMN_MAPPING: mode.get() if mode.isDefined() else None}
    demand_readable(
        lake.root, table, Stated.by_schema(filter(None, names), properties, state.metadata().schemaString())
    )


def _create(spark: SparkSession, lake: Lake, table: Table) -> None:
    if lake.is_local:
        write_first_commit(Path(lake.path(table)), table, struct_type(table.columns), _properties(table))
        return
    builder = DeltaTable.createIfNotExists(spark).location(lake.path(table)).comment(table.comment)
    for column in table.columns:
        builder = builder.addColumn(column.name, column.type, nullable=column.nullable, comment=column.comment)
    for key, value in _properties(table).items():
        builder = builder.property(key, value)
    if table.partition_by:
        builder = builder.partitionedBy(*table.partition_by)
    builder.execute()


def _properties(table: Table) -> dict[str, str]:
    constraints = {f"delta.constraints.{name}": condition for name, condition in table.checks.items()}
    # By default Delta takes the first 32 columns: that costs more than writing some of them.
    statistics = {"delta.dataSkippingStatsColumns": ",".join(table.sought_by)}
    return {**OWN, LAYOUT_PROPERTY: str(LAYOUT), **statistics, **constraints}


def _complete(spark: SparkSession, lake: Lake, table: Table) -> None:
    """Add the columns and constraints that are newer than the table; replace constraints that were changed."""
    place = f"delta.`{lake.path(table)}`"
    if not lake.is_local:  # where preflight cannot look
        demand_readable_by_all(spark, lake, table)
    metadata = snapshot(spark, lake, table).metadata()
    stated = metadata.configuration().get(LAYOUT_PROPERTY)
    layout = stated.get() if stated.isDefined() else None
    demand_layout(lake.root, {LAYOUT_PROPERTY: layout})
    present = set(metadata.schema().fieldNames())
    for column in table.columns:
        if column.name not in present:
            comment = quoted(column.comment)
            spark.sql(f"ALTER TABLE {place} ADD COLUMNS (`{column.name}` {column.type} COMMENT {comment})")
    for name, condition in table.checks.items():
        known = metadata.configuration().get(f"delta.constraints.{name}")
        if known.isDefined() and without_spaces(known.get()) == without_spaces(condition):
            continue
        if known.isDefined():
            spark.sql(f"ALTER TABLE {place} DROP CONSTRAINT {name}")
        spark.sql(f"ALTER TABLE {place} ADD CONSTRAINT {name} CHECK ({condition})")
    if layout != str(LAYOUT):
        spark.sql(f"ALTER TABLE {place} SET TBLPROPERTIES ('{LAYOUT_PROPERTY}' = '{LAYOUT}')")


def register(spark: SparkSession, lake: Lake) -> None:
    """Make every table known to the session's catalog as ``schema.name``, for SQL."""
    for table in TABLES.values():
        if not DeltaTable.isDeltaTable(spark, lake.path(table)):
            continue
        spark.sql(f"CREATE SCHEMA IF NOT EXISTS `{table.schema}`")
        if table.former is not None:
            spark.sql(f"DROP TABLE IF EXISTS {table.former.full_name}")
        spark.sql(f"DROP TABLE IF EXISTS {table.full_name}")  # another lake may be registered; external: data stay
        spark.sql(f"CREATE TABLE {table.full_name} USING delta LOCATION '{lake.path(table)}'")


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
