"""What became of each transaction: statements of silver → ``silver.transactions``.

A refresh follows every producer again from the time of the first news or, where a transaction was under way then, from
its beginning (:mod:`pipeline.analysis.ownership.transactions`). So the result does not depend on how the stream was
cut.
"""

from __future__ import annotations

from datetime import timedelta

from pipeline.analysis.hours import span_us
from pipeline.analysis.ownership.transactions import begun, transactions
from pipeline.streaming.storage.lake_io import LakeIO
from pipeline.streaming.storage.sinks import day_of
from pipeline.streaming.storage.table_scan import TableScan
from pipeline.tables import GAPS, OFFSET_EVENTS, RECORD_BATCHES, STATE_EVENTS, TRANSACTIONS, Column

_PRODUCER = ("cluster", "producer_id")
"""Stands for the transactional id, which markers do not name: a producer id belongs to one as long as it lives."""


def refresh_transactions(rows: LakeIO, since_us: int, patience: timedelta) -> None:
    """Take in what was stated from ``since_us`` on.

    Args:
        rows: of the lake.
        since_us: time of the first news, µs since the epoch.
        patience: see StreamSettings.lag_lookback; if nothing is seen of a transaction for so long, it stays as it is.
    """
    starts = rows.derive(
        lambda tables: begun(tables["held"], since_us, patience),
        {"held": TableScan(TRANSACTIONS, since_us=since_us - span_us(patience), time="last_ts")},
        _PRODUCER,
        (Column("us", "bigint", ""),),
    )
    known = rows.as_arrow(starts, (Column("us", "bigint", ""),)).column("us").to_pylist()
    first = day_of(min([since_us, *known]))
    gaps = rows.read(TableScan(GAPS, from_day=first, columns=("connection_id", "ts", "direction", "seq", "method")))
    made = rows.derive(
        lambda tables: transactions(**tables, patience=patience, since_us=since_us),
        {
            "events": TableScan(OFFSET_EVENTS, from_day=first, present=("transactional_id", "producer_id"), once=True),
            "states": TableScan(STATE_EVENTS, from_day=first, present=("producer_id",), once=True),
            "batches": TableScan(RECORD_BATCHES, from_day=first, present=("control_type", "producer_id"), once=True),
            "held": TableScan(TRANSACTIONS, from_day=first),
        },
        _PRODUCER,
        TRANSACTIONS,
        {"gaps": gaps},
    )
    rows.replace_dates(made, TRANSACTIONS, first)
