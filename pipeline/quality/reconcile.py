"""Compares what tables state of each other (:mod:`pipeline.quality.relations`); Great Expectations judges it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from datetime import date, datetime, timedelta, timezone
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
from great_expectations import ExpectationSuite
from great_expectations import expectations as gxe
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from pipeline.analysis.tables import SPARK_NAMES, Some, Tables
from pipeline.quality.conformance import VERSION_ADVERTISED, versions
from pipeline.quality.model import COUNTS, NOT_JUDGED, Ask, Expected, Plain, QualityResult, Relation, Report, Rests, Run
from pipeline.quality.rederive import derived_again, sampled_hours
from pipeline.quality.relations import view_of
from pipeline.streaming.operations.maintenance import newest_day
from pipeline.streaming.storage.lake import Lake, read_table
from pipeline.streaming.storage.local_rows import local_rows
from pipeline.tables import TABLES, Table

TO_DATE = (
    "to_date(value) AS CASE WHEN typeof(value) = 'VARCHAR' THEN TRY_CAST(value::VARCHAR AS DATE) "
    "ELSE make_timestamp(epoch_us(TRY_CAST(value AS TIMESTAMP)))::DATE END"
)
"""A function of Spark's that relations use besides SPARK_NAMES, as DuckDB makes it."""
_FIRST_DAY = date(1, 1, 2)
_SHOWN = 3
"""Subjects that a message names."""
WAITS = {
    "landing": "the stream has not noted all of its batches",
    "silver": "the stream has not paired all frames",
    "gold": "the stream has not derived gold of all that is in silver",
    "manifests": "no manifests of its landing zone are within reach",
}
"""Why a check is not judged."""


@contextmanager
def asked_here(tables: Mapping[str, Some]) -> Iterator[Ask]:
    """Answers by DuckDB, in this process.

    Args:
        tables: rows by the full name of their table.
    """
    opened = Tables({name.replace(".", "_"): rows for name, rows in tables.items()})
    try:
        for macro in (*SPARK_NAMES, TO_DATE):
            opened.define(macro)
        yield opened.table
    finally:
        opened.close()


@contextmanager
def asked_by_spark(
    spark: SparkSession, lake: Lake, tables: Collection[Table], beside: Mapping[str, pa.Table] | None = None
) -> Iterator[Ask]:
    """The same by Spark, of a lake anywhere; ``beside``: rows that are in no lake, by the full name of their table."""
    for table in tables:
        if beside and table.full_name in beside:
            rows = spark.createDataFrame(beside[table.full_name])
        else:
            rows = read_table(spark, lake, table)
        rows.createOrReplaceTempView(view_of(table))
    try:
        yield lambda sql: spark.sql(sql.replace('"', "`")).toArrow()
    finally:
        for table in tables:
            spark.catalog.dropTempView(view_of(table))


def tables_here(lake: str, tables: Collection[Table]) -> dict[str, Some]:
    """Tables of a lake on this machine, for :func:`asked_here`; those that are missing are empty.

    Raises:
        UserError: one cannot be read.
    """
    return {table.full_name: local_rows(lake, table) for table in tables}


def compared(relation: Relation, ask: Ask, *, since: date | None = None, now: datetime | None = None) -> pa.Table:
    """What a relation expects, and what is there: columns ``subject``, ``expected``, ``found``.

    Args:
        relation: one of RELATIONS.
        ask: answers its query.
        since: the first UTC day whose frames are all kept; None: all are.
        now: the time.
    """
    now = now or datetime.now(timezone.utc)
    first = since or _FIRST_DAY
    days = {
        name: f"DATE '{day.isoformat()}'" for name, day in (("since", first), ("before", first - timedelta(days=1)))
    }
    found = ask(relation.sql.format(**days, now_us=int(now.timestamp() * 1e6)))
    counts = {name: found.column(name).cast(pa.int64()) for name in ("expected", "found")}
    return pa.table({"subject": found.column("subject"), **counts})


def newest_frame(ask: Ask) -> date | None:
    """UTC day of the newest frame, as maintenance counts."""
    days = ask('SELECT DISTINCT "date" AS day FROM bronze_frames').column("day").to_pylist()
    return newest_day((str(day), 0) for day in days)


def reconcile(
    source: Any,
    ask: Ask,
    run: Run,
    relation: Relation,
    *,
    waits: Collection[Rests] = (),
    since: date | None = None,
) -> QualityResult:
    """Judge a relation.

    Args:
        source: Great Expectations' data source for pandas frames.
        ask: answers its query.
        run: of all checks.
        relation: one of RELATIONS.
        waits: what the stream has not read yet; what rests on it is not judged.
        since: as of :func:`compared`.
    """
    for rest in relation.rests_on:
        if rest in waits:
            return run.result(relation, success=True, seen=f"{NOT_JUDGED}: {WAITS[rest]}")
    return _counted(source, run, relation, lambda: compared(relation, ask, since=since, now=run.run_time))


def reconcile_versions(source: Any, ask: Ask, run: Run, since: date | None = None) -> QualityResult:
    """Judge the versions of requests; ``ask`` knows the tables of conformance.VERSION_READS."""
    return _counted(source, run, VERSION_ADVERTISED, lambda: versions(ask, since or _FIRST_DAY))


def reconcile_again(source: Any, ask: Ask, run: Run, since: date | None = None) -> list[QualityResult]:
    """Judge whether sampled hours, derived again, equal the lake's; ``ask`` knows the tables of rederive.READS."""
    found: dict[str, list[dict[str, Any]]] = {}
    for hour in sampled_hours(ask, run.run_id, since):
        for one in derived_again(ask, hour):
            begin = datetime.fromtimestamp(one.hour_us / 1e6, timezone.utc)
            subject = f"the hour from {begin:%Y-%m-%d %H:%M} UTC"
            found.setdefault(one.table.full_name, []).append(
                {"subject": subject, "expected": one.expected, "found": one.found}
            )
    text = "the rows of sampled hours are those that follow from their exchanges"
    return [
        _judged(source, run, Plain(TABLES[name], "derived_again", "critical", text), pa.Table.from_pylist(rows, COUNTS))
        for name, rows in found.items()
    ]


def _counted(source: Any, run: Run, about: Expected, count: Callable[[], pa.Table]) -> QualityResult:
    """Count, and judge that; a damaged file costs this check alone."""
    try:
        counts = count()
    except (duckdb.Error, PySparkException, pa.ArrowException) as error:
        return run.result(about, success=False, seen=f"could not be checked: {type(error).__name__}")
    return _judged(source, run, about, counts)


def _judged(source: Any, run: Run, about: Expected, counts: pa.Table) -> QualityResult:
    """The verdict on counts that must be equal: columns COUNTS.

    They are few, a row for a day: Great Expectations looks at them as a pandas frame.
    """
    rows = pd.DataFrame(counts.to_pydict())
    if not len(rows):
        return run.result(about, success=True, rows=(0, 0))
    name = f"{about.table.full_name}/{about.name}"
    batch = source.add_dataframe_asset(name).add_batch_definition_whole_dataframe("all")
    equal = gxe.ExpectColumnPairValuesToBeEqual(column_A="expected", column_B="found", severity=about.severity)
    report = batch.get_batch(batch_parameters={"dataframe": rows}).validate(
        ExpectationSuite(name=name, expectations=[equal]), result_format="BASIC"
    )
    differ = rows[rows["expected"] != rows["found"]]
    shown = [f"{row.subject}: {row.found:,} of {row.expected:,}" for row in differ.head(_SHOWN).itertuples()]
    more = [f"{len(differ) - _SHOWN} more"] if len(differ) > _SHOWN else []
    failed = int((differ["expected"] - differ["found"]).abs().sum())
    result = run.result(
        about,
        success=bool(report.success),
        seen=f"found {', '.join([*shown, *more])}" if shown else None,
        rows=(int(rows["expected"].sum()), failed),
    )
    run.reports.append(Report(about.table.full_name, report, (result,)))
    return result
