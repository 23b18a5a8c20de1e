"""What does new silver change in the tables that are derived from it, and from when on? The query for gold.

Each table is brought up to date from the first time, or day, of what it depends on: a refresh gives the same rows
however often it is repeated and wherever the stream was cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from decoder.kafka.facts.exchanges import FACT_APIS
from decoder.kafka.facts.state import GROUP_KINDS, TRANSACTION_KINDS
from decoder.protocols import names_of
from pipeline.analysis.facts import Facts
from pipeline.settings import StreamSettings
from pipeline.streaming.bronze.frames import Counted
from pipeline.streaming.gold.clients import refresh_clients
from pipeline.streaming.gold.findings import refresh_findings
from pipeline.streaming.gold.latency import refresh_latency
from pipeline.streaming.gold.mongo_minutes import refresh_mongo_minutes
from pipeline.streaming.gold.timeline import refresh_timeline
from pipeline.streaming.silver.assignments import NEWS_KINDS, drop_provisional, refresh_assignments
from pipeline.streaming.silver.facts import load_facts
from pipeline.streaming.silver.fetch_sessions import refresh_fetch_sessions
from pipeline.streaming.silver.transactions import refresh_transactions
from pipeline.streaming.spark.side_by_side import side_by_side
from pipeline.streaming.storage.lake import Lake
from pipeline.streaming.storage.seen_once import refresh_copies
from pipeline.streaming.storage.sinks import day_of
from pipeline.tables import EXCHANGES, GAPS, MONGO_COMMANDS, OFFSET_EVENTS, RECORD_BATCHES, STATE_EVENTS, Table

_NEWS_FILES = 100_000
"""Gold reads only the times of what is new: one refresh takes in all of it."""

ABOUTS = (
    "offsets", "fetched", "groups", "assigned", "transactions", "sessions", "names", "exchanged", "commands",
)  # fmt: skip
"""What news can be about."""
OFFSETS, FETCHED, GROUPS, ASSIGNED, TRANSACTIONS, SESSIONS, NAMES, EXCHANGED, COMMANDS = ABOUTS


def gold_news(spark: SparkSession, lake: Lake) -> DataFrame:
    """A stream of ``about`` and ``ts`` of all new rows of silver, and of those that were renamed."""
    kind = F.col("kind")
    state = (
        F.when(kind.isin(*NEWS_KINDS), ASSIGNED)
        .when(kind.isin(*GROUP_KINDS), GROUPS)
        .when(kind.isin(*TRANSACTION_KINDS), TRANSACTIONS)
        .when(kind == "fetch_session", SESSIONS)
        .otherwise(EXCHANGED)
    )
    offset = (
        F.when(F.col("transactional_id").isNotNull(), TRANSACTIONS)
        .when(F.col("session_id").isNotNull(), FETCHED)
        .otherwise(OFFSETS)
    )
    named = F.when(F.col("api_key").isin(*FACT_APIS), NAMES).otherwise(EXCHANGED)
    by_api = names_of(lambda protocol: protocol.has_api_latencies)
    # A row that was renamed or replaced comes again, with all others of its file: just what must be computed anew.
    renamed = {"ignoreChanges": "true"}
    return (
        _news(spark, lake, OFFSET_EVENTS, offset, renamed)
        .unionByName(_news(spark, lake, STATE_EVENTS, state, renamed))
        .unionByName(_news(spark, lake, RECORD_BATCHES, F.lit(TRANSACTIONS), renamed, F.col("is_control")))
        .unionByName(_news(spark, lake, GAPS, F.lit(TRANSACTIONS)))
        .unionByName(_news(spark, lake, EXCHANGES, named, renamed, F.col("protocol").isin(by_api)))
        .unionByName(_news(spark, lake, MONGO_COMMANDS, F.lit(COMMANDS), renamed))
    )


def _news(
    spark: SparkSession,
    lake: Lake,
    table: Table,
    about: Column,
    options: Mapping[str, str] | None = None,
    where: Column | None = None,
) -> DataFrame:
    reader = spark.readStream.format("delta").option("maxFilesPerTrigger", _NEWS_FILES)
    rows = reader.options(**(options or {"skipChangeCommits": "true"})).load(lake.path(table))
    return (rows if where is None else rows.where(where)).select(about.alias("about"), "ts")


@dataclass(frozen=True, slots=True)
class _News:
    """First time of what is new, µs since the epoch, by what it is about."""

    first_us: Mapping[str, int]

    def since(self, abouts: Iterable[str]) -> int | None:
        """The first of several; None if there is nothing new about them."""
        return min((self.first_us[about] for about in abouts if about in self.first_us), default=None)


def write_gold(news: DataFrame, lake: Lake, settings: StreamSettings) -> Counted:
    """Bring all that follows from silver up to date."""
    spark = news.sparkSession
    counted = news.groupBy("about").agg(F.count("*").alias("rows"), F.unix_micros(F.min("ts")).alias("us")).collect()
    if not counted:
        return Counted(0, 0)
    first_us = {row["about"]: row["us"] for row in counted}
    changed = refresh_copies(spark, lake, min(first_us.values()))
    found = _News(first_us if changed is None else dict.fromkeys(ABOUTS, changed))
    facts = load_facts(spark, lake)
    # None of these reads what another writes; findings read all of it.
    side_by_side(
        partial(_refresh_offsets, spark, lake, facts, found, settings),
        partial(_refresh_traffic, spark, lake, facts, found),
        partial(_refresh_holders, spark, lake, facts, found, settings),
    )
    findings = refresh_findings(spark, lake, settings.findings, min(found.first_us.values()))
    return Counted(sum(row["rows"] for row in counted), findings)


def _refresh_traffic(spark: SparkSession, lake: Lake, facts: Facts, found: _News) -> None:
    """Who asked what, and how long it took."""
    if (since := found.since([EXCHANGED, NAMES])) is not None:
        refresh_latency(spark, lake, since)
    if (since := found.since([COMMANDS])) is not None:
        refresh_mongo_minutes(spark, lake, since)
    if (since := found.since([EXCHANGED, NAMES, COMMANDS])) is not None:
        refresh_clients(spark, lake, facts, since)


def _refresh_holders(spark: SparkSession, lake: Lake, facts: Facts, found: _News, settings: StreamSettings) -> None:
    """Who held partitions: members of groups, transactions, fetch sessions."""
    if NAMES in found.first_us:
        drop_provisional(spark, lake, facts)
    if (since := found.since([ASSIGNED])) is not None:
        refresh_assignments(spark, lake, day_of(since))
    if (since := found.since([TRANSACTIONS])) is not None:
        refresh_transactions(spark, lake, since, settings.lag_lookback)
    if (since := found.since([SESSIONS, FETCHED])) is not None:
        refresh_fetch_sessions(spark, lake, day_of(since))


def _refresh_offsets(spark: SparkSession, lake: Lake, facts: Facts, found: _News, settings: StreamSettings) -> None:
    """Where partitions and groups stood."""
    if (since := found.since([OFFSETS, FETCHED, GROUPS, ASSIGNED, TRANSACTIONS, NAMES])) is not None:
        refresh_timeline(spark, lake, facts, since, settings.lag_lookback)
