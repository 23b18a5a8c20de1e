"""Carries a lake of an earlier layout over: its tables get the folders, columns and values of today.

Each step can be done again after a crash: a table is moved as a whole, with its log, so that checkpoints and
transaction ids continue; columns are renamed in one commit that writes the rows again; and the property that states the
layout is set last (:mod:`pipeline.streaming.storage.lake`). Rewritten are small tables, ``gold.findings`` and
``gold.incidents``, and ``silver.exchanges`` (:mod:`pipeline.streaming.storage.bodies_once`).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
from delta.tables import DeltaTable
from deltalake import DeltaTable as LocalTable
from deltalake import write_deltalake
from deltalake.exceptions import DeltaError
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from pipeline.analysis.fit import fit
from pipeline.lake.delta_writer import writer_properties
from pipeline.lake.former_layout import column_sql, current_rows, is_former, name_in
from pipeline.streaming.storage.bodies_once import give_up_bodies, give_up_bodies_here
from pipeline.tables import EXCHANGES, TABLES, Table

_LOG = "_delta_log"


def carry_over(spark: SparkSession, root: str, progress: Callable[[str], None], *, is_local: bool) -> None:
    """Carry over what a lake still has of an earlier layout; of any other lake nothing is written.

    Args:
        spark: the session.
        root: the lake's folder or URL.
        progress: called with a line of text before what may take long.
        is_local: whether it is a folder of this machine.
    """
    for table in TABLES.values():
        if table.former is not None:
            (_move_here if is_local else _move)(spark, f"{root}/{table.former.path}", f"{root}/{table.path}")
        if any(column.has_former for column in table.columns):
            (_rename_here if is_local else _rename)(spark, f"{root}/{table.path}", table)
    if is_local:
        give_up_bodies_here(root, progress)
    elif DeltaTable.isDeltaTable(spark, f"{root}/{EXCHANGES.path}"):
        give_up_bodies(spark, root, progress)


def _move_here(_spark: SparkSession, former: str, current: str) -> None:
    if Path(former, _LOG).is_dir() and not Path(current, _LOG).exists():
        Path(former).rename(current)


def _move(spark: SparkSession, former: str, current: str) -> None:
    """In an object store: copied, then removed. What a crash leaves of it is copied once more."""
    hadoop, configuration = spark._jvm.org.apache.hadoop.fs, spark._jsparkSession.sessionState().newHadoopConf()
    files = hadoop.Path(former).getFileSystem(configuration)
    source, target = files.makeQualified(hadoop.Path(former)), files.makeQualified(hadoop.Path(current))
    if not files.exists(hadoop.Path(former, _LOG)):
        return
    each = files.listFiles(source, True)
    while each.hasNext():
        file: Any = each.next().getPath()
        below = hadoop.Path(target, source.toUri().relativize(file.toUri()).getPath())
        hadoop.FileUtil.copy(files, file, files, below, False, True, configuration)
    files.delete(source, True)


def _rename_here(_spark: SparkSession, place: str, table: Table) -> None:
    try:
        held = LocalTable(place)
        properties = held.metadata().configuration
    except (DeltaError, OSError, ValueError):  # it is not there; or whoever reads it says what is wrong
        return
    if not is_former(properties):
        return
    rows = fit(current_rows(held.to_pyarrow_table(), table), table)
    fields = [
        pa.field(one.name, rows.column(one.name).type, one.nullable or has_nulls, {"comment": one.comment})
        for one in table.columns
        for has_nulls in [rows.column(one.name).null_count > 0]
    ]
    write_deltalake(
        held, rows.cast(pa.schema(fields)), mode="overwrite", schema_mode="overwrite",
        writer_properties=writer_properties(table),
    )  # fmt: skip


def _rename(spark: SparkSession, place: str, table: Table) -> None:
    if not DeltaTable.isDeltaTable(spark, place):
        return
    properties = dict(DeltaTable.forPath(spark, place).detail().collect()[0].properties)
    if not is_former(properties):
        return
    rows = spark.read.format("delta").load(place)
    columns = [
        F.expr(column_sql(name, one).replace('"', "`")).alias(one.name, metadata={"comment": one.comment})
        for one in table.columns
        if (name := name_in(rows.columns, one)) is not None
    ]
    rows.select(*columns).write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(place)
