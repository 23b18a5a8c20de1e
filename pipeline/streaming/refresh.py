"""What new silver changes in the tables derived from it, and from when on: the query for gold.

Each table is brought up to date from the first time, or day, of what it depends on: a refresh gives the same rows
however often it is repeated and wherever the stream was cut.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from pipeline.analysis.changes import (
    ABOUTS,
    ASSIGNED,
    COMMANDS,
    CONNECTED,
    EXCHANGED,
    FETCHED,
    GROUPS,
    NAMES,
    OFFSETS,
    SESSIONS,
    TRANSACTIONS,
    News,
)
from pipeline.analysis.cluster_catalog import ClusterCatalog
from pipeline.analysis.safety.guard import attempt
from pipeline.config.settings import StreamSettings
from pipeline.streaming.bronze.frames import Counted
from pipeline.streaming.gold.clients import refresh_clients
from pipeline.streaming.gold.findings import refresh_findings
from pipeline.streaming.gold.minutes import refresh_latency, refresh_mongo_minutes
from pipeline.streaming.gold.realtime_findings import RealtimeFindings
from pipeline.streaming.gold.timeline import refresh_timeline
from pipeline.streaming.silver.assignments import drop_provisional, refresh_assignments
from pipeline.streaming.silver.cluster_catalog import load_catalog
from pipeline.streaming.silver.connections import refresh_connections
from pipeline.streaming.silver.duplicate_flows import refresh_copies
from pipeline.streaming.silver.fetch_sessions import refresh_fetch_sessions
from pipeline.streaming.silver.transactions import refresh_transactions
from pipeline.streaming.spark.side_by_side import side_by_side
from pipeline.streaming.storage.change_log import read_news
from pipeline.streaming.storage.lake import Lake
from pipeline.streaming.storage.lake_io import LakeIO
from pipeline.streaming.storage.sinks import day_of
from pipeline.tables import (
    API_LATENCY,
    ASSIGNMENTS,
    CHANGE_LOG,
    CLIENTS,
    CONNECTIONS,
    DUPLICATE_FLOWS,
    FETCH_SESSIONS,
    FINDINGS,
    MONGO_MINUTES,
    OFFSET_TIMELINE,
    Table,
)
from pipeline.tables import TRANSACTIONS as TXN_TABLE

_NEWS_FILES = 100_000
"""One refresh takes in all that is new."""


def gold_news(spark: SparkSession, lake: Lake) -> DataFrame:
    """A stream of ``about``, ``rows`` and ``us`` (µs since the epoch) of what is new in silver."""
    reader = spark.readStream.format("delta").option("maxFilesPerTrigger", _NEWS_FILES)
    noted = reader.option("skipChangeCommits", "true").load(lake.path(CHANGE_LOG))
    return noted.select("about", "rows", F.unix_micros("first_ts").alias("us"))


@dataclass(frozen=True, slots=True)
class _News:
    """First time of what is new, µs since the epoch, by what it is about."""

    first_us: Mapping[str, int]

    def since(self, abouts: Iterable[str]) -> int | None:
        """The first of several; None if there is nothing new about them."""
        return min((self.first_us[about] for about in abouts if about in self.first_us), default=None)


def take_news(noted: DataFrame, lake: Lake, settings: StreamSettings, ahead: RealtimeFindings) -> Counted:
    """Bring all that follows from silver up to date with a batch of what :func:`gold_news` gives."""
    ahead.begin_refresh()
    news = read_news((row.about, row.rows, row.us) for row in noted.collect())
    return write_gold(LakeIO(noted.sparkSession, lake, settings.local_row_limit), news, settings, ahead)


def write_gold(rows: LakeIO, news: News, settings: StreamSettings, ahead: RealtimeFindings | None = None) -> Counted:
    """Bring all that follows from silver up to date."""
    if not news:
        return Counted(0, 0)
    first_us = {about: us for about, (_, us) in news.items()}
    changed = attempt(
        f"table {DUPLICATE_FLOWS.full_name}", lambda: refresh_copies(rows, min(first_us.values())), lambda: None
    )
    found = _News(first_us if changed is None else dict.fromkeys(ABOUTS, changed))
    catalog = load_catalog(rows)
    # None of these reads what another writes; findings read all of it.
    side_by_side(
        partial(_refresh_offsets, rows, catalog, found, settings),
        partial(_refresh_traffic, rows, catalog, found),
        partial(_refresh_holders, rows, catalog, found, settings),
    )
    since_us = min(found.first_us.values())
    findings = attempt(
        f"table {FINDINGS.full_name}",
        lambda: refresh_findings(rows, catalog, settings.findings, since_us, ahead or RealtimeFindings(settings)),
        lambda: 0,
    )
    return Counted(sum(count for count, _ in news.values()), findings)


def _refresh_traffic(rows: LakeIO, catalog: ClusterCatalog, found: _News) -> None:
    """Who connected, who asked what, and how long it took."""
    if (since := found.since([CONNECTED])) is not None:
        _refresh(CONNECTIONS, refresh_connections, rows, since)
    if (since := found.since([EXCHANGED, NAMES])) is not None:
        _refresh(API_LATENCY, refresh_latency, rows, since)
    if (since := found.since([COMMANDS])) is not None:
        _refresh(MONGO_MINUTES, refresh_mongo_minutes, rows, since)
    if (since := found.since([EXCHANGED, NAMES, COMMANDS])) is not None:
        _refresh(CLIENTS, refresh_clients, rows, catalog, since)


def _refresh_holders(rows: LakeIO, catalog: ClusterCatalog, found: _News, settings: StreamSettings) -> None:
    """Who held partitions: members of groups, transactions, fetch sessions."""
    if NAMES in found.first_us:
        _refresh(ASSIGNMENTS, drop_provisional, rows, catalog)
    if (since := found.since([ASSIGNED])) is not None:
        _refresh(ASSIGNMENTS, refresh_assignments, rows, day_of(since))
    if (since := found.since([TRANSACTIONS])) is not None:
        _refresh(TXN_TABLE, refresh_transactions, rows, since, settings.lag_lookback)
    if (since := found.since([SESSIONS, FETCHED])) is not None:
        _refresh(FETCH_SESSIONS, refresh_fetch_sessions, rows, day_of(since))


def _refresh_offsets(rows: LakeIO, catalog: ClusterCatalog, found: _News, settings: StreamSettings) -> None:
    """Where partitions and groups were."""
    if (since := found.since([OFFSETS, FETCHED, GROUPS, ASSIGNED, TRANSACTIONS, NAMES])) is not None:
        _refresh(OFFSET_TIMELINE, refresh_timeline, rows, catalog, since, settings.lag_lookback)


def _refresh(table: Table, refresh: Callable[..., object], *arguments: object) -> None:
    """Bring a table up to date; where deriving its rows fails, it stays as it is, and the failure is noted."""
    attempt(f"table {table.full_name}", partial(refresh, *arguments), lambda: None)
