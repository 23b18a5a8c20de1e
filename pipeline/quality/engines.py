"""What reads a lake's tables for Great Expectations: pandas in this process where they are few rows, else Spark.

Both run the same suites and give the same verdicts: a planted defect for each expectation shows it (tests). Which one
it is, is decided once a run.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict
from datetime import date
from typing import Any, Protocol

import great_expectations as gx
import pyarrow as pa
from delta.tables import DeltaTable
from deltalake import DeltaTable as LocalTable
from great_expectations import expectations as gxe
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name everybody uses

from pipeline.analysis.fit import table_of_columns
from pipeline.analysis.tables import SPARK_NAMES, Tables
from pipeline.errors import UserError
from pipeline.lake.delta_reader import count_rows, schema_stated
from pipeline.lake.drift import drifted
from pipeline.lake.migration import migrations
from pipeline.quality.landing_files import Zone, ZoneBySpark, ZoneHere
from pipeline.quality.model import Ask, QualityResult
from pipeline.quality.reconcile import TO_DATE, asked_by_spark, asked_here, tables_here
from pipeline.quality.rows_sql import in_duckdb
from pipeline.quality.suites import LAYERS, Check, expectation_suite, tables_of
from pipeline.streaming.storage.lake import (
    Lake,
    create_tables,
    demand_readable_by_all,
    frames_kept_from,
    frames_kept_from_here,
    read_table,
    struct_type,
)
from pipeline.streaming.storage.sinks import append
from pipeline.streaming.storage.written_here import append_here
from pipeline.tables import QUALITY_RESULTS, UNLIKE, Table

MOST_ROWS = 500_000
"""Of each table that this process takes: of its columns but texts of JSON and bytes a few hundred MB."""


Beside = Mapping[str, pa.Table]
NOTHING: Beside = {}


class Engine(Protocol):
    """Reads tables of a lake, and keeps what came of checking them.

    Attributes:
        lake: which one.
        counts: Great Expectations' data source for what is compared, a few rows in pandas.
        zone: reads landing zones.
    """

    lake: Lake
    counts: Any
    zone: Zone

    def has(self, table: Table) -> bool:
        """Whether a table is there."""

    def columns_of(self, table: Table) -> Collection[str]:
        """The columns that it has."""

    def drifted(self, table: Table) -> dict[str, str]:
        """Properties of a table that another program has changed, each with the value that it had."""

    def validated(self, table: Table, checks: Sequence[Check]) -> tuple[Any, int]:
        """What Great Expectations reports of the checks of a table that has all columns, and how many rows it has.

        Raises:
            duckdb.Error: a file is damaged.
        """

    def asked(self, tables: Sequence[Table], beside: Beside = NOTHING) -> AbstractContextManager[Ask]:
        """Answers queries over tables; ``beside``: rows of some that are in no lake, by their full name."""

    def kept_from(self) -> date | None:
        """The UTC day from which on all frames are kept; None: they always were."""

    def record(self, results: Sequence[QualityResult]) -> None:
        """Append results to ``ops.quality_results``."""


def takes_in_process(lake: Lake) -> bool:
    """Whether the lake is on this machine, of today's layout, and none of its tables is large."""
    if not lake.is_local or migrations(lake.root) or not LocalTable.is_deltatable(lake.path(QUALITY_RESULTS)):
        return False
    tables = [table for layer in LAYERS for table in tables_of(layer)]
    try:
        return all((count_rows(lake.root, table) or 0) <= MOST_ROWS for table in tables)
    except UserError:  # a damaged file: Spark checks what can be read
        return False


class InProcess:
    """By pandas and DuckDB, without a JVM.

    Args:
        lake: for which :func:`takes_in_process` holds.
        context: of Great Expectations.
    """

    def __init__(self, lake: Lake, context: Any) -> None:
        self.lake = lake
        self.zone: Zone = ZoneHere()
        self.counts = context.data_sources.add_pandas("counts")
        self._source = context.data_sources.add_pandas("lake")

    def has(self, table: Table) -> bool:
        """Whether a table is there."""
        return schema_stated(self.lake.root, table) is not None

    def columns_of(self, table: Table) -> Collection[str]:
        """The columns that it has."""
        schema = schema_stated(self.lake.root, table)
        return () if schema is None else schema.names

    def drifted(self, table: Table) -> dict[str, str]:
        """See Engine."""
        return drifted(LocalTable(self.lake.path(table)).metadata().configuration)

    def validated(self, table: Table, checks: Sequence[Check]) -> tuple[Any, int]:
        """Conditions are columns that DuckDB computes; texts of JSON and bytes, which no suite reads, stay out."""
        tables = Tables({"rows": tables_here(self.lake.root, [table])[table.full_name]})
        try:
            for macro in (*SPARK_NAMES, TO_DATE):
                tables.define(macro)
            rows = tables.table(f"SELECT {', '.join(_columns(table, checks))} FROM rows")  # noqa: S608 - our names
        finally:
            tables.close()
        suite = gx.ExpectationSuite(name=table.full_name, expectations=[_in_pandas(check) for check in checks])
        return _report(self._source, table, rows.to_pandas(), suite), rows.num_rows

    def asked(self, tables: Sequence[Table], beside: Beside = NOTHING) -> AbstractContextManager[Ask]:
        """See Engine."""
        return asked_here({**tables_here(self.lake.root, _in_lake(tables, beside)), **beside})

    def kept_from(self) -> date | None:
        """The UTC day from which on all frames are kept; None: they always were."""
        return frames_kept_from_here(self.lake)

    def record(self, results: Sequence[QualityResult]) -> None:
        """Append results to ``ops.quality_results``."""
        rows = [asdict(result) for result in results]
        columns = {name: [row[name] for row in rows] for name in QUALITY_RESULTS.column_names}
        columns["run_time"] = [int(time.timestamp() * 1_000_000) for time in columns["run_time"]]
        append_here(table_of_columns(columns, QUALITY_RESULTS), self.lake, QUALITY_RESULTS)


class BySpark:
    """By Spark, of a lake anywhere and of any size.

    Args:
        spark: the session.
        lake: which one.
        context: of Great Expectations.
    """

    def __init__(self, spark: SparkSession, lake: Lake, context: Any) -> None:
        self._spark, self.lake = spark, lake
        self.zone: Zone = ZoneBySpark(spark)
        self.counts = context.data_sources.add_pandas("counts")
        self._source = context.data_sources.add_spark("lake", persist=False)

    def has(self, table: Table) -> bool:
        """Whether a table is there."""
        return bool(DeltaTable.isDeltaTable(self._spark, self.lake.path(table)))

    def columns_of(self, table: Table) -> Collection[str]:
        """The columns that it has."""
        if self.lake.is_local:
            schema = schema_stated(self.lake.root, table)
            return () if schema is None else schema.names
        demand_readable_by_all(self._spark, self.lake, table)
        return list(self._rows(table).columns)

    def drifted(self, table: Table) -> dict[str, str]:
        """See Engine."""
        return drifted(DeltaTable.forPath(self._spark, self.lake.path(table)).detail().collect()[0].properties)

    def validated(self, table: Table, checks: Sequence[Check]) -> tuple[Any, int]:
        """Conditions are columns, too: Great Expectations asks for all of them in one Spark job."""
        rows = self._rows(table)
        conditions = {c.condition_column: F.expr(c.condition) for c in checks if c.condition is not None}
        with_conditions = rows.withColumns(conditions) if conditions else rows
        return _report(self._source, table, with_conditions, expectation_suite(table)), rows.count()

    def asked(self, tables: Sequence[Table], beside: Beside = NOTHING) -> AbstractContextManager[Ask]:
        """See Engine: by DuckDB where the tables are on this machine."""
        if self.lake.is_local:
            return asked_here({**tables_here(self.lake.root, _in_lake(tables, beside)), **beside})
        return asked_by_spark(self._spark, self.lake, tables, beside)

    def kept_from(self) -> date | None:
        """The UTC day from which on all frames are kept; None: they always were."""
        return frames_kept_from(self._spark, self.lake)

    def record(self, results: Sequence[QualityResult]) -> None:
        """Append results to ``ops.quality_results``."""
        create_tables(self._spark, self.lake, [QUALITY_RESULTS])
        rows = [asdict(result) for result in results]
        frame = self._spark.createDataFrame(rows, struct_type(QUALITY_RESULTS.columns))
        append(frame.coalesce(1), self.lake, QUALITY_RESULTS, None)

    def _rows(self, table: Table) -> DataFrame:
        return read_table(self._spark, self.lake, table)


def _in_lake(tables: Sequence[Table], beside: Beside) -> list[Table]:
    return [table for table in tables if table.full_name not in beside]


def _report(source: Any, table: Table, rows: Any, suite: gx.ExpectationSuite) -> Any:
    batch = (
        source.add_dataframe_asset(table.full_name)
        .add_batch_definition_whole_dataframe("all")
        .get_batch(batch_parameters={"dataframe": rows})
    )
    return batch.validate(suite, result_format={"result_format": "BASIC", "partial_unexpected_count": 0})


def _columns(table: Table, checks: Sequence[Check]) -> list[str]:
    texts = {one.name for one in table.columns if one.type == "string" and one.name in UNLIKE}
    bulky = texts | {one.name for one in table.columns if one.type == "binary"}
    asked = {one.name for one in table.columns if not one.nullable} | set(table.key)
    found = [f'NULL AS "{name}"' if name in bulky - asked else f'"{name}"' for name in table.column_names]
    found += [f'({in_duckdb(c.condition)}) AS "{c.condition_column}"' for c in checks if c.condition is not None]
    # Of rows with one key the second is marked: as many as there are keys that several rows share.
    key = ", ".join(f'"{column}"' for column in table.key)
    return [*found, f"row_number() OVER (PARTITION BY {key}) <> 2 AS holds_unique_key"]


def _in_pandas(check: Check) -> Any:
    """The expectation for pandas, which runs no SQL."""
    if check.name != "unique_key":
        return check.expectation
    return gxe.ExpectColumnValuesToBeInSet(
        column="holds_unique_key", value_set=[True], severity=check.severity, meta={"key": check.key}
    )
