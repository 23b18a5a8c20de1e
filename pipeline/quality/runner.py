"""Runs the checks of a lake on Spark, and records the outcome in ``ops.quality_results``."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any

import duckdb
import great_expectations as gx
import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from rich.table import Table as Grid
from rich.text import Text

from pipeline.analysis.fit import schema_of
from pipeline.config.settings import MaintenanceSettings
from pipeline.errors import no_lake
from pipeline.lake.drift import set_back
from pipeline.quality.conformance import VERSION_READS
from pipeline.quality.docs import write_docs
from pipeline.quality.engines import BySpark, Engine, InProcess
from pipeline.quality.landing_files import MANIFESTS, read_manifests
from pipeline.quality.model import NOT_JUDGED, Plain, QualityResult, Report, Run, critical_failures
from pipeline.quality.reconcile import (
    WAITS,
    newest_frame,
    reconcile,
    reconcile_again,
    reconcile_versions,
)
from pipeline.quality.rederive import READS
from pipeline.quality.relations import RELATIONS
from pipeline.quality.rows_sql import command, rows_sql
from pipeline.quality.settled import waits_for, whole_since
from pipeline.quality.suites import LAYERS, Check, checks_of, tables_of
from pipeline.streaming.spark.object_stores import connect
from pipeline.streaming.storage.lake import Lake
from pipeline.tables import DUPLICATE_FLOWS, FRAMES, LANDING_FILES, Table
from pipeline.terminal.console import Console


def run_checks(
    spark: SparkSession | None,
    lake: Lake | Path | str,
    settings: MaintenanceSettings | None = None,
    *,
    since: date | None = None,
    docs: Path | None = None,
) -> list[QualityResult]:
    """Check every table of bronze, silver and gold, and append the results to ``ops.quality_results``.

    Args:
        spark: a session with Delta Lake; None: in this process (:func:`pipeline.quality.engines.takes_in_process`).
        lake: its root.
        settings: how long maintenance keeps rows; None: as by default.
        since: first UTC day whose rows are compared with each other; None: all that are kept.
        docs: folder for Great Expectations' Data Docs of this run; None: without.

    Returns:
        One result a check, in the order of the registry; then those of what tables state of each other.

    Raises:
        UserError: there is no lake, or ``docs`` cannot be written.
    """
    if spark is not None:
        connect(spark, lake.root if isinstance(lake, Lake) else str(lake))
    engine = engine_for(spark, lake if isinstance(lake, Lake) else Lake.at(lake))
    tables = [table for layer in LAYERS for table in tables_of(layer)]
    present = {table.full_name for table in tables if engine.has(table)}
    if not present:
        raise no_lake(engine.lake.root)
    run = Run.at(datetime.now(timezone.utc))
    results: list[QualityResult] = []
    for table in tables:
        if table.full_name not in present:
            results.append(_missing_table(table, run))
            continue
        results += [*check_table(engine, table, run), check_properties(engine, table, run)]
    results += check_relations(engine, run, settings, since=since)
    engine.record(results)
    if docs is not None:
        write_docs(docs, run, results)
    return results


def engine_for(spark: SparkSession | None, lake: Lake) -> Engine:
    """Who reads the tables: Spark, or without a session this process."""
    context = gx_context()
    return InProcess(lake, context) if spark is None else BySpark(spark, lake, context)


def check_relations(
    engine: Engine, run: Run, settings: MaintenanceSettings | None = None, *, since: date | None = None
) -> list[QualityResult]:
    """The outcome of comparing what tables state of each other; what reads a table that is not whole is left out.

    Args:
        engine: reads the tables.
        run: of all checks.
        settings: how long maintenance keeps rows; None: as by default.
        since: first UTC day that is compared; None: all that are kept.
    """
    settings = settings or MaintenanceSettings()
    named = {table.full_name: table for table in (*READS, *(table for one in RELATIONS for table in one.reads))}
    del named[MANIFESTS.full_name]
    whole = {name for name, table in named.items() if _is_whole(engine, table)} | {MANIFESTS.full_name}
    relations = [one for one in RELATIONS if all(table.full_name in whole for table in one.reads)]
    if not relations:
        return []
    tables = [table for name, table in named.items() if name in whole]
    manifests = _manifests(engine, since) if LANDING_FILES.full_name in whole else None
    samples = all(table.full_name in whole for table in (*READS, DUPLICATE_FLOWS))
    waits = waits_for(engine.lake)  # before the tables are opened: what is added meanwhile must not count
    if manifests is None:
        waits.add("manifests")
    opened = engine.asked([*tables, MANIFESTS], {MANIFESTS.full_name: manifests or schema_of(MANIFESTS).empty_table()})
    kept_from = engine.kept_from() if FRAMES.full_name in whole else None
    with opened as ask:
        waits |= waits_for(engine.lake)
        newest = newest_frame(ask) if FRAMES.full_name in whole else None
        found = [
            reconcile(
                engine.counts, ask, run, relation, waits=waits,
                since=_later(since, whole_since(relation, newest, kept_from, settings)),
            )
            for relation in relations
        ]  # fmt: skip
        if all(table.full_name in whole for table in VERSION_READS):
            found.append(reconcile_versions(engine.counts, ask, run, _later(since, kept_from)))
        if not samples or "gold" in waits:
            return found
        # Out of bodies, which frames have.
        return found + reconcile_again(engine.counts, ask, run, _later(since, kept_from))


def _manifests(engine: Engine, since: date | None) -> pa.Table | None:
    """What landing files must hold; read before what the lake has noted of them."""
    try:
        with engine.asked([LANDING_FILES]) as ask:
            return read_manifests(ask, engine.zone, since)
    except (duckdb.Error, PySparkException):  # a damaged file: each relation that reads it says so
        return None


def _later(one: date | None, other: date | None) -> date | None:
    return max(filter(None, (one, other)), default=None)


def _is_whole(engine: Engine, table: Table) -> bool:
    """Whether it is there with all its columns."""
    return engine.has(table) and set(table.column_names) <= set(engine.columns_of(table))


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
            if result.rows_sql is not None:
                console.print(Text(f"  {command(result.rows_sql)}", "dim"), soft_wrap=True)
    bad, failed_ones = len(critical_failures(results)), sum(not result.success for result in results)
    text = f"{len(results)} checks, {failed_ones} failed, {bad} of them critical{_left(results)}"
    console.print(text, soft_wrap=True)


def _left(results: Sequence[QualityResult]) -> str:
    """How many could not be judged, and what to do."""
    left = [result.message for result in results if NOT_JUDGED in result.message]
    out_of_reach = sum(WAITS["manifests"] in message for message in left)
    yet = len(left) - out_of_reach
    text = f"; {yet} could not be judged yet: run `wirelake check` again when the stream rests" if yet else ""
    return text + (f"; {out_of_reach} not judged: {WAITS['manifests']}" if out_of_reach else "")


def _verdict(failed: Sequence[QualityResult]) -> Text:
    if critical_failures(failed):
        return Text("failed", "bold red")
    return Text("warning", "yellow") if failed else Text("ok", "green")


def gx_context() -> Any:
    """Great Expectations without files, cache, progress bars or reports to its maker."""
    logging.getLogger("great_expectations").setLevel(logging.ERROR)
    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = {"globally": False}
    return context


def check_table(engine: Engine, table: Table, run: Run) -> list[QualityResult]:
    """The outcome of each check of one table that is there."""
    checks = checks_of(table)
    missing = sorted(set(table.column_names) - set(engine.columns_of(table)))
    if missing:  # everything else would fail for this reason only
        return [run.result(checks[0], success=False, seen=f"missing: {', '.join(missing)}")]
    try:
        report, row_count = engine.validated(table, checks)
    except duckdb.Error as error:  # a damaged file costs the checks of its table
        seen = f"could not be checked: {type(error).__name__}"
        return [run.result(check, success=False, seen=seen, column=check.column) for check in checks]
    by_key = {check.key: check for check in checks}
    order = [by_key[outcome.expectation_config.meta["key"]] for outcome in report.results]
    judged = [_from_gx(check, outcome, row_count, run) for check, outcome in zip(order, report.results, strict=True)]
    run.reports.append(Report(table.full_name, report, tuple(judged)))
    found = dict(zip((check.key for check in order), judged, strict=True))
    return [found[check.key] for check in checks]


def _from_gx(check: Check, outcome: Any, row_count: int, run: Run) -> QualityResult:
    if outcome.exception_info and "exception_message" not in outcome.exception_info:
        reason = "; ".join(sorted({str(info["exception_message"]) for info in outcome.exception_info.values()}))
        return run.result(check, success=False, seen=f"could not be checked: {reason}", column=check.column)
    if check.name == "has_columns":
        return run.result(check, success=bool(outcome.success), column=check.column)
    counted = outcome.result.get("unexpected_count", outcome.result.get("observed_value"))
    failed = int(counted or 0)  # Great Expectations counts an empty table as None
    seen = f"{failed} of {row_count} rows violate it" if failed else None
    return run.result(
        check, success=bool(outcome.success), seen=seen, column=check.column, rows=(row_count, failed),
        rows_sql=None if outcome.success else rows_sql(check),
    )  # fmt: skip


def check_properties(engine: Engine, table: Table, run: Run) -> QualityResult:
    """Whether the properties that readers rest on are as Wirelake has set them."""
    text = "the table's properties are those that Wirelake sets, by which all readers read the same"
    changed = engine.drifted(table)
    seen = (
        f"another program has changed {', '.join(sorted(changed))}. Set them back by Spark SQL: "
        f"{set_back(engine.lake.path(table), changed)}"
        if changed
        else None
    )
    return run.result(Plain(table, "properties_kept", "warning", text), success=not changed, seen=seen)


def _missing_table(table: Table, run: Run) -> QualityResult:
    about = Plain(table, "exists", "critical", "the table exists")
    return run.result(about, success=False, seen="it is missing, `wirelake stream` creates it")
