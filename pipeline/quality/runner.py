"""Does the lake hold what it must? Runs the suites on Spark and records the outcome in ``ops.quality_results``."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import great_expectations as gx
from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name everybody uses
from rich.table import Table as Grid
from rich.text import Text

from pipeline.errors import no_lake
from pipeline.quality.suites import LAYERS, Check, checks_of, expectation_suite, tables_of
from pipeline.streaming.storage.lake import Lake, create_tables, read_table, struct_type
from pipeline.streaming.storage.sinks import append
from pipeline.tables import QUALITY_RESULTS, Table
from pipeline.terminal import Console


@dataclass(frozen=True, slots=True)
class QualityResult:
    """A row of ``ops.quality_results``: the outcome of one check; never holds a value of the data.

    Attributes:
        rows_failed: rows (for ``unique_key``: keys) that violate it; None if it is not about rows.
    """

    run_id: str
    run_time: datetime
    table_name: str
    name: str
    column_name: str | None
    severity: str
    success: bool
    rows_checked: int | None
    rows_failed: int | None
    message: str


def run_checks(spark: SparkSession, lake: Lake | Path | str) -> list[QualityResult]:
    """Check every table of bronze, silver and gold, and append the results to ``ops.quality_results``.

    Args:
        spark: a session with Delta Lake.
        lake: its root.

    Returns:
        One result a check, in the order of the registry.

    Raises:
        UserError: there is no lake.
    """
    lake = lake if isinstance(lake, Lake) else Lake.at(lake)
    tables = [table for layer in LAYERS for table in tables_of(layer)]
    present = {table.full_name for table in tables if DeltaTable.isDeltaTable(spark, lake.path(table))}
    if not present:
        raise no_lake(lake.root)
    now = datetime.now(timezone.utc)
    run = (now.strftime("%Y%m%dT%H%M%S.%fZ"), now)
    source = _gx_source()
    results: list[QualityResult] = []
    for table in tables:
        if table.full_name in present:
            results += _check_table(source, read_table(spark, lake, table), table, run)
        else:
            results.append(_missing_table(table, run))
    _record(spark, lake, results)
    return results


def critical_failures(results: Sequence[QualityResult]) -> list[QualityResult]:
    """Those that make ``wirelake check`` end with exit code 1."""
    return [result for result in results if not result.success and result.severity == "critical"]


def show_results(results: Sequence[QualityResult], console: Console) -> None:
    """Print one line a table, and one a failed check."""
    grid = Grid("table", "rows", "checks", "failed", "", title="Data quality", title_justify="left")
    for column in (1, 2, 3):
        grid.columns[column].justify = "right"
    for name in dict.fromkeys(result.table_name for result in results):
        mine = [result for result in results if result.table_name == name]
        failed = [result for result in mine if not result.success]
        rows = next((str(result.rows_checked) for result in mine if result.rows_checked is not None), "-")
        grid.add_row(name, rows, str(len(mine)), str(len(failed) or ""), _verdict(failed))
    console.print(grid)
    for result in results:
        if not result.success:
            style = "bold red" if result.severity == "critical" else "yellow"
            console.print(Text(f"{result.severity}: {result.table_name}: {result.message}", style))
    bad = len(critical_failures(results))
    console.print(f"{len(results)} checks, {sum(not r.success for r in results)} failed, {bad} of them critical")


def _verdict(failed: Sequence[QualityResult]) -> Text:
    if critical_failures(failed):
        return Text("failed", "bold red")
    return Text("warning", "yellow") if failed else Text("ok", "green")


def _gx_source() -> Any:
    """Great Expectations without files, cache, progress bars or reports to its maker."""
    logging.getLogger("great_expectations").setLevel(logging.ERROR)
    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = {"globally": False}
    return context.data_sources.add_spark("lake", persist=False)


def _check_table(source: Any, rows: DataFrame, table: Table, run: tuple[str, datetime]) -> list[QualityResult]:
    checks = checks_of(table)
    missing = sorted(set(table.column_names) - set(rows.columns))
    if missing:  # everything else would fail for this reason only
        return [_result(checks[0], run, success=False, seen=f"missing: {', '.join(missing)}")]
    conditions = {c.condition_column: F.expr(c.condition) for c in checks if c.condition is not None}
    batch = (
        source.add_dataframe_asset(table.full_name)
        .add_batch_definition_whole_dataframe("all")
        .get_batch(batch_parameters={"dataframe": rows.withColumns(conditions) if conditions else rows})
    )
    report = batch.validate(
        expectation_suite(table), result_format={"result_format": "BASIC", "partial_unexpected_count": 0}
    )
    outcomes = {outcome.expectation_config.meta["key"]: outcome for outcome in report.results}
    row_count = rows.count()
    return [_from_gx(check, outcomes[check.key], row_count, run) for check in checks]


def _from_gx(check: Check, outcome: Any, row_count: int, run: tuple[str, datetime]) -> QualityResult:
    if outcome.exception_info and "exception_message" not in outcome.exception_info:
        reason = "; ".join(sorted({str(info["exception_message"]) for info in outcome.exception_info.values()}))
        return _result(check, run, success=False, seen=f"could not be checked: {reason}")
    if check.name == "has_columns":
        return _result(check, run, success=bool(outcome.success))
    counted = outcome.result.get("unexpected_count", outcome.result.get("observed_value"))
    failed = int(counted or 0)  # Great Expectations counts an empty table as None
    seen = f"{failed} of {row_count} rows violate it" if failed else None
    return _result(check, run, success=bool(outcome.success), seen=seen, rows=(row_count, failed))


def _result(
    check: Check,
    run: tuple[str, datetime],
    *,
    success: bool,
    seen: str | None = None,
    rows: tuple[int, int] | None = None,
) -> QualityResult:
    return QualityResult(
        *run,
        check.table.full_name,
        check.name,
        check.column,
        check.severity,
        success,
        rows[0] if rows else None,
        rows[1] if rows else None,
        check.text if seen is None else f"{check.text}; {seen}",
    )


def _missing_table(table: Table, run: tuple[str, datetime]) -> QualityResult:
    text = "the table exists; it is missing, `wirelake stream` creates it"
    return QualityResult(*run, table.full_name, "exists", None, "critical", False, None, None, text)


def _record(spark: SparkSession, lake: Lake, results: Sequence[QualityResult]) -> None:
    create_tables(spark, lake, [QUALITY_RESULTS])
    frame = spark.createDataFrame([asdict(result) for result in results], struct_type(QUALITY_RESULTS.columns))
    append(frame.coalesce(1), lake, QUALITY_RESULTS, None)
