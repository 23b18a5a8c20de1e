"""``gold.offset_timeline`` in the job's own process, window by window: shuffling rows costs more than passing them.

Of each window all events are in memory; of what was produced before and after it only what a group may have read.
"""

from __future__ import annotations

from datetime import timedelta
from functools import partial

import pyarrow as pa

from decoder.kafka.extractors.state import GROUP_KINDS
from pipeline.analysis.cluster_catalog import ClusterCatalog
from pipeline.analysis.fit import fit
from pipeline.analysis.hours import GROUP_KNOWN_US, HOUR_US, LATE_US, hour_of, span_us
from pipeline.analysis.tables import Tables
from pipeline.analysis.timeline.rows import ended, timeline
from pipeline.streaming.storage.lake_io import LakeIO
from pipeline.streaming.storage.table_scan import TableScan
from pipeline.tables import OFFSET_EVENTS, OFFSET_SNAPSHOTS, RECORD_BATCHES, STATE_EVENTS

TRANSACTION_ENDS = ("txn_end", "txn_init")
"""States that end a transaction."""
NAMING = tuple(sorted(GROUP_KINDS))
"""States that name a client's group."""
CONTROL = {"is_control": (True, True)}
"""Of record batches only markers count."""

_FOR_EVER = 2**62
_SLOT_US = 10_000_000
"""Windows end where a multiple of ten seconds does."""
_BY_SLOT = "SELECT epoch_us(ts) - epoch_us(ts) % $slot AS slot, count(*) AS events FROM rows GROUP BY ALL ORDER BY ALL"
_OF_PRODUCED = ", ".join(
    f'produced."{name}"'
    for name in ("kind", "ts", "exchange_id", "cluster", "topic", "topic_id", "partition", "offset", "next_offset")
)
"""What the timeline asks of records that were produced before or after its window; the other columns are null."""
_AROUND = f"""
    WITH stood AS (
        SELECT cluster, coalesce(topic, topic_id) AS topic, partition, "offset" AS lowest, "offset" AS highest
        FROM events WHERE kind IN ('committed', 'fetched_commit', 'txn_committed')
        UNION ALL
        SELECT cluster, coalesce(topic, topic_id), partition, NULL, log_start_offset FROM events
        UNION ALL
        SELECT cluster, topic, partition, committed_offset, committed_offset FROM ended
        UNION ALL
        SELECT cluster, topic, partition, committed_offset, greatest(committed_offset, log_start_offset) FROM known
    ), bounds AS (
        SELECT cluster, topic, partition, min(lowest) AS lowest, max(highest)::HUGEINT + 1 AS highest
        FROM stood GROUP BY ALL
    )
    SELECT {_OF_PRODUCED} FROM produced JOIN bounds ON produced.cluster = bounds.cluster
        AND coalesce(produced.topic, produced.topic_id) = bounds.topic AND produced.partition = bounds.partition
    WHERE produced.next_offset > bounds.lowest AND produced."offset" <= bounds.highest
        AND NOT (epoch_us(produced.ts) >= $begin AND epoch_us(produced.ts) < $until)
"""  # noqa: S608 - our names
"""What was produced where any group was in its partition; a marker may be between a committed offset and the next
record."""


def of_hour(hour_us: int) -> TableScan:
    """What was known when an hour began, µs since the epoch."""
    return TableScan(OFFSET_SNAPSHOTS, since_us=hour_us, before_us=hour_us + 1, time="hour")


def events_by_slot(rows: LakeIO, first: int) -> list[tuple[int, int]]:
    """Slots of ten seconds from ``first`` on (both µs since the epoch), and how many events each has."""
    return [
        (row.slot, row.events)
        for row in rows.ask(TableScan.since(OFFSET_EVENTS, first, once=True), _BY_SLOT, slot=_SLOT_US)
    ]


def of_window(rows: LakeIO, catalog: ClusterCatalog, begin: int, end: int | None, lookback: timedelta) -> pa.Table:
    """Rows of the timeline from ``begin`` to ``end`` (µs since the epoch, exclusive; None: open).

    A window may end amid an hour; what an hour knows is looked up until it ends.
    """
    back, until = begin - span_us(lookback), _FOR_EVER if end is None else end
    before = None if end is None else hour_of(end - 1) + HOUR_US + LATE_US
    since = partial(TableScan.since, before_us=before, once=True)
    transactions = rows.look_up(since(OFFSET_EVENTS, back, kinds=("txn_committed",)))
    ends = rows.look_up(since(STATE_EVENTS, back, kinds=TRANSACTION_ENDS))
    of_transactions = ended(transactions, ends, catalog, begin, until)
    events = rows.look_up(TableScan.since(OFFSET_EVENTS, begin, before_us=end, once=True))
    known = rows.read(of_hour(begin))
    tables = Tables(
        {
            "produced": rows.scan(TableScan.since(OFFSET_EVENTS, back, before_us=before, kinds=("produced",))),
            "events": events, "ended": of_transactions, "known": known,
        }
    )  # fmt: skip
    try:
        around = fit(tables.table(_AROUND, begin=begin, until=until), OFFSET_EVENTS)
    finally:
        tables.close()
    return timeline(
        pa.concat_tables([events, rows.counted(around)]),
        rows.look_up(since(STATE_EVENTS, hour_of(begin) - GROUP_KNOWN_US, kinds=NAMING)),
        rows.look_up(since(RECORD_BATCHES, back, between=CONTROL)),
        catalog, lookback, since_us=begin, until_us=until, known=known, of_transactions=of_transactions,
    )  # fmt: skip
