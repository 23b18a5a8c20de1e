"""Brings the findings of :mod:`pipeline.analysis.rules` into ``gold.findings``, and their incidents beside them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.analysis.cluster_catalog import ClusterCatalog
from pipeline.analysis.derive import WAITING_SQL, with_topics
from pipeline.analysis.duplicates.duplicate_flows import counted, counted_sql, waiting_sql
from pipeline.analysis.fit import schema_of
from pipeline.analysis.hours import first_hour, span_us
from pipeline.analysis.rules.kafka.exchange_symptoms import SymptomThresholds
from pipeline.analysis.rules.run import Found, find_all
from pipeline.analysis.tables import InFiles, Tables
from pipeline.streaming.gold.realtime_findings import RealtimeFindings
from pipeline.streaming.gold.rule_exchanges import rule_exchanges
from pipeline.streaming.silver.bodies import together
from pipeline.streaming.spark.side_by_side import side_by_side
from pipeline.streaming.storage.lake_io import LakeIO
from pipeline.streaming.storage.sinks import day_of
from pipeline.streaming.storage.table_scan import TableScan
from pipeline.tables import (
    CONNECTIONS,
    DUPLICATE_FLOWS,
    EXCHANGES,
    EXCHANGES_WITH_BODIES,
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
    rows: LakeIO, catalog: ClusterCatalog, settings: SymptomThresholds, first_us: int, ahead: RealtimeFindings
) -> int:
    """Bring ``gold.findings`` and ``gold.incidents`` up to date; what is the same already is not written.

    Rules look at the hours from ``lookback`` before the first news on, so that a refresh costs the same however long
    the history is. What began before that stays, and is closed if its cluster continues and it is not found again.

    Args:
        rows: of the lake.
        catalog: clusters and topic names as known now.
        settings: thresholds.
        first_us: time of the first news, µs since the epoch.
        ahead: of this refresh, of whose beginning it was notified.

    Returns:
        How many findings there are.
    """
    since_us = first_hour(first_us) - span_us(settings.lookback)
    found = _find_all(rows, catalog, settings, since_us)
    return ahead.finish_refresh(rows, found, since_us)


_ALL = {
    "exchanges": EXCHANGES, "events": OFFSET_EVENTS, "batches": RECORD_BATCHES, "states": STATE_EVENTS,
    "commands": MONGO_COMMANDS, "timeline": OFFSET_TIMELINE, "transactions": TRANSACTIONS, "gaps": GAPS,
    "connections": CONNECTIONS,
}  # fmt: skip
"""By the names that rules know them by (see pipeline.analysis.rules.model.Sources)."""
_STATED = ("events", "batches", "states", "commands")
"""What exchanges state: of a connection that was seen several times, one copy counts."""
_NAMED = ("events", "batches")
_FEW = 1_000_000
"""Rows of all these that are read at once: half a gigabyte, for some fifty queries go over them."""


def _find_all(rows: LakeIO, catalog: ClusterCatalog, settings: SymptomThresholds, since_us: int) -> Found:
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
    with ExitStack() as held:
        if found is not None:
            pieces = _looked_at(rows, lying["exchanges"], copies, settings, found["exchanges"])
            tables = _of_few({**found, "exchanges": together(pieces)}, copies, beside)
        else:
            folder = Path(held.enter_context(tempfile.TemporaryDirectory(prefix="wirelake-")))
            exchanges = _in_file(folder / "exchanges.parquet", _looked_at(rows, lying["exchanges"], copies, settings))
            tables = _of_many(rows, lying, exchanges, copies, beside)
        held.callback(tables.close)
        tables.view("all_waiting", _WAITING)
        tables.view("waiting", waiting_sql("all_waiting", "all_copies"))
        return find_all(tables, catalog, settings)


def _looked_at(
    rows: LakeIO, wanted: TableScan, copies: pa.Table, settings: SymptomThresholds, held: pa.Table | None = None
) -> Iterator[pa.Table]:
    """Exchanges without copies, with the bodies that rules read, some at a time; ``held``: they are in memory."""
    for some in rule_exchanges(rows, wanted, settings, held):
        yield counted(some, copies)


def _in_file(path: Path, pieces: Iterable[pa.Table]) -> InFiles:
    """The same in a file: of a day of traffic they need not fit into memory."""
    with pq.ParquetWriter(path, schema_of(EXCHANGES_WITH_BODIES), compression="zstd") as file:
        for some in pieces:
            file.write_table(some)
    return InFiles([str(path)], "FROM read_parquet($paths)")


def _of_few(found: Mapping[str, pa.Table], copies: pa.Table, beside: Mapping[str, pa.Table]) -> Tables:
    """In memory. Copies are left out at once: each of many queries would do it again."""
    tables = Tables(beside, asked_often=True)
    for name, some in found.items():
        once = counted(some, copies) if name in _STATED else some
        tables.add(name, with_topics(once) if name in _NAMED else once)
    return tables


def _of_many(
    rows: LakeIO, lying: Mapping[str, TableScan], exchanges: InFiles, copies: pa.Table, beside: Mapping[str, pa.Table]
) -> Tables:
    """Where they are."""
    others = {name: one for name, one in lying.items() if name != "exchanges"}
    read = side_by_side(*(partial(rows.scan, one) for one in others.values()))
    tables = Tables(
        {**beside, "exchanges": exchanges, **{f"all_{name}": some for name, some in zip(others, read, strict=True)}},
        asked_often=True,
    )
    for name in others:
        has_copies = copies.num_rows and name in _STATED
        chosen = counted_sql(f"all_{name}", "all_copies") if has_copies else f"SELECT * FROM all_{name}"
        tables.view(name, f"SELECT * REPLACE ({_TOPIC}) FROM ({chosen})" if name in _NAMED else chosen)
    return tables


_TOPIC = "coalesce(topic, topic_id) AS topic"
_WAITING = f"SELECT {WAITING_SQL} FROM halves WHERE direction = 'request'"
"""Requests without an answer yet, named as exchanges name them."""
