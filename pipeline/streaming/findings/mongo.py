"""Rules about MongoDB: slow and failing commands, retries, and cursors that nobody reads or closes.

The first three count symptoms, as :mod:`pipeline.streaming.findings.counted` does; cursors are followed here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the usual name
from pyspark.sql.window import Window

from pipeline.settings import FindingSettings
from pipeline.streaming.findings.model import Finding, clock, seconds
from pipeline.streaming.gold.mongo_minutes import has_failed, namespace

SLOW, FAILED, RETRIES, LEAK = "mongo_slow_command", "mongo_command_failed", "mongo_retry_storm", "mongo_cursor_leak"

_DUPLICATE_KEY, _NAMESPACE_NOT_FOUND, _NAMESPACE_EXISTS = 11000, 26, 48
ORDINARY: Final = (_DUPLICATE_KEY, _NAMESPACE_NOT_FOUND, _NAMESPACE_EXISTS)
"""Errors by which applications learn of the state of their data: whether something is there already."""
RETRIED: Final = (6, 7, 89, 91, 112, 189, 262, 9001, 10107, 11600, 11602, 13435, 13436)
"""Errors after which a driver or its transaction begins again (mongodb/specifications, retryable writes; 112)."""
_UNHEEDED: Final = ("endSessions",)
"""Drivers send it when they close, and do not look at the reply; not every server has it."""
_SERVER_FORGETS_US = 600_000_000
"""A server closes a cursor that was idle for so long (cursorTimeoutMillis)."""
_ADVICE = (
    "Close cursors in the code that opens them (`with collection.find(…) as cursor`, try-with-resources), also where "
    "it stops reading early or fails, or ask for no more than is read (`limit`). Each open cursor holds memory and a "
    "snapshot on the server, until it has been idle for ten minutes (cursorTimeoutMillis)."
)


def symptom_rows(commands: DataFrame, settings: FindingSettings) -> DataFrame:
    """The symptoms of commands, a row each, with the columns of those of Kafka's exchanges.

    Args:
        commands: rows of ``silver.mongo_commands``.
        settings: the latency that is a symptom.
    """
    placed = commands.withColumn("namespace", F.coalesce(namespace(), F.lit("?")))
    slow_us = int(settings.mongo_slow_seconds * 1_000_000)
    code = F.coalesce("error_code", F.lit(0))
    may_be_slow = placed.where(
        (F.col("latency_us") >= slow_us) & ~F.coalesce("is_awaiting", F.lit(False)) & F.col("command").isNotNull()
    )
    slow = may_be_slow.join(_tailed(commands), ["server", "cursor_id"], "left_anti")
    failed = placed.where(has_failed() & ~code.isin(*ORDINARY) & ~F.coalesce("command", F.lit("")).isin(*_UNHEEDED))
    rule = F.when(code.isin(*RETRIED), RETRIES).otherwise(FAILED)
    error = F.coalesce("error_name", F.concat(F.lit("error "), F.col("error_code").cast("string")), F.lit("error"))
    return (
        _symptoms(slow, F.lit(SLOW), F.col("command"), F.col("latency_us"))
        .unionByName(_symptoms(failed, rule, error))
        .unionByName(_symptoms(_repeated(placed), F.lit(RETRIES), F.lit("the same write again")))
    )


def _tailed(commands: DataFrame) -> DataFrame:
    """Cursors that await data: only these give an empty batch and stay open."""
    is_empty = (F.col("command") == "getMore") & (F.col("documents_out") == 0) & (F.col("cursor_left") != 0)
    return commands.where(is_empty).select("server", "cursor_id").distinct()


def _repeated(commands: DataFrame) -> DataFrame:
    """Writes that a driver sent again: the same transaction number in the same session."""
    writes = commands.where(F.col("txn_number").isNotNull() & ~F.coalesce("is_transaction", F.lit(False)))
    one = Window.partitionBy("server", "session_id", "txn_number", "command").orderBy("ts", "exchange_id")
    return writes.withColumn("_n", F.row_number().over(one)).where("_n > 1")


def _symptoms(rows: DataFrame, rule: Column, what: Column, value: Column | None = None) -> DataFrame:
    text, number = F.lit(None).cast("string"), F.lit(None).cast("int")
    return rows.select(
        "server",
        F.coalesce("application", F.lit("an application without name")).alias("client_id"),
        "client_ip",
        "ts",
        "exchange_id",
        rule.alias("rule"),
        F.concat_ws("/", "namespace", F.coalesce("command", F.lit("?"))).alias("subject"),
        what.alias("what"),
        text.alias("topic"),
        number.alias("partition"),
        text.alias("group_id"),
        (F.lit(0) if value is None else value).cast("double").alias("value"),
    )


def ends(commands: DataFrame) -> dict[str, int]:
    """By server the time of the last command, µs since the epoch."""
    rows = commands.groupBy("server").agg(F.max(F.unix_micros("ts")).alias("us")).collect()
    return {row.server: row.us for row in rows}


@dataclass(frozen=True, slots=True)
class LeftOpen:
    """Cursors of one application and host that are open and idle. Times are µs since the epoch.

    Attributes:
        cursors: how many.
        first_us, last_us: when the first and the last of them was last used.
        namespaces: what they read, at most fifty.
        evidence: exchanges that used them last.
        used_us: times of these exchanges.
    """

    server: str
    client_ip: str
    application: str | None
    cursors: int
    first_us: int
    last_us: int
    namespaces: tuple[str, ...]
    evidence: tuple[str, ...]
    used_us: tuple[int, ...]


def left_open(commands: DataFrame, gaps: DataFrame, last: dict[str, int], settings: FindingSettings) -> list[LeftOpen]:
    """The cursors that are open and were not used for ``mongo_cursor_idle_seconds`` at the end of the data.

    Args:
        commands: rows of ``silver.mongo_commands``.
        gaps: rows of ``bronze.gaps``: where frames were lost, a cursor may have been closed unseen.
        last: as :func:`ends` gives it.
        settings: thresholds.
    """
    spark = commands.sparkSession
    idle_us = int(settings.mongo_cursor_idle_seconds * 1_000_000)
    until = spark.createDataFrame(
        [(server, us - idle_us) for server, us in sorted(last.items())], "server string, until_us bigint"
    )
    lossy = (
        commands.join(F.broadcast(gaps.select("connection_id").distinct()), "connection_id", "left_semi")
        .select("server", "client_ip")
        .distinct()
    )
    who = ("server", "client_ip", "application")
    open_ones = (
        _last_uses(commands)
        .where("is_open")
        .join(F.broadcast(until), "server")
        .where("us <= until_us")
        .join(lossy, ["server", "client_ip"], "left_anti")
        .groupBy(*who)
        .agg(
            F.count("*").alias("cursors"),
            F.min("us").alias("first_us"),
            F.max("us").alias("last_us"),
            F.slice(F.sort_array(F.collect_set("namespace")), 1, 50).alias("namespaces"),
            F.slice(F.sort_array(F.collect_list(F.struct("us", "exchange_id"))), 1, settings.max_evidence).alias(
                "uses"
            ),
        )
        .where(F.col("cursors") >= settings.mongo_open_cursors)
        .orderBy(*who)
    )
    return [
        LeftOpen(
            row.server, row.client_ip, row.application, row.cursors, row.first_us, row.last_us, tuple(row.namespaces),
            tuple(use.exchange_id for use in row.uses), tuple(use.us for use in row.uses),
        )
        for row in open_ones.collect()
    ]  # fmt: skip


def _last_uses(commands: DataFrame) -> DataFrame:
    """Of each cursor the last exchange that names it, and whether it was open after that.

    One that a server pushes (exhaust) does not count: its last reply does not name it.
    """
    context = ("server", "client_ip", "application", "exchange_id", F.unix_micros("ts").alias("us"))
    stays = (F.col("cursor_left") != 0) & ~F.coalesce("is_answered_later", F.lit(False))
    used = commands.where((F.col("cursor_id") != 0) & F.col("cursors_killed").isNull()).select(
        *context,
        "cursor_id",
        F.coalesce(namespace(), F.lit("?")).alias("namespace"),
        F.coalesce(stays, F.lit(False)).alias("is_open"),
    )
    killed = commands.where("cursors_killed IS NOT NULL").select(
        *context,
        F.explode("cursors_killed").alias("cursor_id"),
        F.lit("?").alias("namespace"),
        F.lit(False).alias("is_open"),
    )
    latest = Window.partitionBy("server", "cursor_id").orderBy(F.desc("us"), "is_open", "exchange_id")
    return used.unionByName(killed).withColumn("_n", F.row_number().over(latest)).where("_n = 1")


def find(cursors: list[LeftOpen], last: dict[str, int], settings: FindingSettings) -> Iterator[Finding]:
    """The findings about cursors.

    Args:
        cursors: as :func:`left_open` gives it.
        last: as :func:`ends` gives it.
        settings: thresholds.
    """
    for found in cursors:
        name = found.application or "an application without name"
        idle_us = last[found.server] - found.last_us
        what = ", ".join(found.namespaces[:3]) + (" and more" if len(found.namespaces) > 3 else "")
        summary = (
            f"{name} at {found.client_ip} left {found.cursors} cursors open on {found.server}, used last from "
            f"{clock(found.first_us)} to {clock(found.last_us)} UTC: they read {what}, and were neither read to their "
            f"end nor closed for {seconds(idle_us)} and longer."
        )
        enough_us = found.used_us[min(settings.mongo_open_cursors, len(found.used_us)) - 1]
        yield Finding(
            rule=LEAK, severity="warning", subject=f"{found.application or '?'}/{found.client_ip}",
            state="open" if idle_us < _SERVER_FORGETS_US else "closed", cluster=found.server, topic=None,
            partition=None, group_id=None, first_us=found.first_us, last_us=found.last_us, summary=summary,
            advice=_ADVICE, evidence=found.evidence,
            details={
                "cursors": found.cursors, "namespaces": list(found.namespaces), "idle_us": idle_us,
                "enough_us": enough_us + int(settings.mongo_cursor_idle_seconds * 1_000_000),
            },
        )  # fmt: skip
