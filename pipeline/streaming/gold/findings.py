"""Brings the findings of :mod:`pipeline.analysis.rules` into ``gold.findings``, and their incidents beside them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import pyarrow as pa

from pipeline.analysis.copies.copies import counted, counted_sql, waiting_sql
from pipeline.analysis.derive import WAITING_SQL, with_topics
from pipeline.analysis.facts import Facts
from pipeline.analysis.hours import first_hour, span_us
from pipeline.analysis.rules.run import Found, find_all
from pipeline.analysis.rules.thresholds import RuleThresholds
from pipeline.analysis.tables import Tables
from pipeline.streaming.gold.realtime_findings import RealtimeFindings
from pipeline.streaming.spark.side_by_side import side_by_side
from pipeline.streaming.storage.lake_io import LakeIO
from pipeline.streaming.storage.sinks import day_of
from pipeline.streaming.storage.table_scan import TableScan
from pipeline.tables import (
    CONNECTIONS,
    DUPLICATE_FLOWS,
    EXCHANGES,
    GAPS,
    MONGO_COMMANDS,
    OFFSET_EVENTS,
    OFFSET_TIMELINE,
    PENDING_EXCHANGES,
    RECORD_BATCHES,
    STATE_EVENTS,
    TRANSACTIONS,
)


def refresh_findings(
    rows: LakeIO, facts: Facts, settings: RuleThresholds, first_us: int, ahead: RealtimeFindings
) -> int:
    """Bring ``gold.findings`` and ``gold.incidents`` up to date; what is the same already is not written.

    Rules look at the hours from ``lookback`` before the first news on, so that a refresh costs the same however long
    the history is. What began before that stays, and is closed if its cluster goes on and it is not found again.

    Args:
        rows: of the lake.
        facts: clusters and topic names as known now.
        settings: thresholds.
        first_us: time of the first news, µs since the epoch.
        ahead: of this refresh, of whose beginning it was notified.

    Returns:
        How many findings there are.
    """
    since_us = first_hour(first_us) - span_us(settings.lookback)
    found = _find_all(rows, facts, settings, since_us)
    return ahead.finish_refresh(rows, found, since_us)


_ALL = {
    "exchanges": EXCHANGES, "events": OFFSET_EVENTS, "batches": RECORD_BATCHES, "states": STATE_EVENTS,
    "commands": MONGO_COMMANDS, "timeline": OFFSET_TIMELINE, "transactions": TRANSACTIONS, "gaps": GAPS,
    "connections": CONNECTIONS,
}  # fmt: skip
"""By the names that rules know them by (see pipeline.analysis.rules.model.Sources)."""
_OF_EXCHANGES = ("exchanges", "events", "batches", "states", "commands")
"""Of a connection that was seen several times, one copy counts."""
_NAMED = ("events", "batches")
_FEW = 1_000_000
"""Rows of all these that are read at once: half a gigabyte, for some fifty queries go over them."""


def _find_all(rows: LakeIO, facts: Facts, settings: RuleThresholds, since_us: int) -> Found:
    """Apply every rule to what is in the lake from ``since_us`` (µs since the epoch) on.

    A lake on this machine is read without Spark: at once if that is little, else file by file as rules ask, for a day
    of traffic need not fit into memory.
    """
    wanted = {name: TableScan.since(table, since_us) for name, table in _ALL.items() if "ts" in table.column_names}
    by_day = {name: TableScan(table, from_day=day_of(since_us)) for name, table in _ALL.items()}
    ended = TableScan.since(CONNECTIONS, since_us, time="last_ts")
    lying = {**by_day, **wanted, "connections": ended}
    copies = rows.read(TableScan(DUPLICATE_FLOWS, from_day=day_of(since_us)))
    beside = {"all_copies": copies, "halves": rows.read(TableScan(PENDING_EXCHANGES))}
    found = rows.collect_if_small(lying, _FEW)
    tables = _of_few(found, copies, beside) if found is not None else _of_many(rows, lying, copies, beside)
    try:
        tables.view("all_waiting", _WAITING)
        tables.view("waiting", waiting_sql("all_waiting", "all_copies"))
        return find_all(tables, facts, settings)
    finally:
        tables.close()


def _of_few(found: Mapping[str, pa.Table], copies: pa.Table, beside: Mapping[str, pa.Table]) -> Tables:
    """In memory. Copies are left out at once: each of many queries would do it again."""
    tables = Tables(beside, asked_often=True)
    for name, some in found.items():
        once = counted(some, copies) if name in _OF_EXCHANGES else some
        tables.add(name, with_topics(once) if name in _NAMED else once)
    return tables


def _of_many(rows: LakeIO, lying: Mapping[str, TableScan], copies: pa.Table, beside: Mapping[str, pa.Table]) -> Tables:
    """Where they lie."""
    read = side_by_side(*(partial(rows.scan, one) for one in lying.values()))
    tables = Tables(
        {**beside, **{f"all_{name}": some for name, some in zip(lying, read, strict=True)}}, asked_often=True
    )
    for name in lying:
        has_copies = copies.num_rows and name in _OF_EXCHANGES
        chosen = counted_sql(f"all_{name}", "all_copies") if has_copies else f"SELECT * FROM all_{name}"
        tables.view(name, f"SELECT * REPLACE ({_TOPIC}) FROM ({chosen})" if name in _NAMED else chosen)
    return tables


_TOPIC = "coalesce(topic, topic_id) AS topic"
_WAITING = f"SELECT {WAITING_SQL} FROM halves WHERE direction = 'request'"
"""Requests without an answer yet, named as exchanges name them."""
