"""``ops.change_log``: what changes silver states what is new in it, and the query for gold reads that alone.

Written after the rows that it speaks of, in the same batch: whoever reads it finds them.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

from pyspark.sql import functions as F  # noqa: N812 - the usual name

from pipeline.analysis.changes import News, of_all, together
from pipeline.analysis.fit import table_of
from pipeline.streaming.storage.lake_io import LakeIO
from pipeline.streaming.storage.sinks import Batch
from pipeline.streaming.storage.table_scan import TableScan
from pipeline.tables import CHANGE_LOG, EXCHANGES, GAPS, OFFSET_EVENTS, RECORD_BATCHES, STATE_EVENTS, Table


def note_news(rows: LakeIO, news: News, batch: Batch | None = None) -> None:
    """Note what is new; without any there is no commit."""
    if news:
        now = time.time_ns() // 1000
        noted = (
            {"about": about, "rows": count, "first_ts": us, "noted_at": now} for about, (count, us) in news.items()
        )
        rows.append(table_of(noted, CHANGE_LOG), CHANGE_LOG, batch)


def read_news(noted: Iterable[tuple[str, int, int]]) -> News:
    """Rows of ``ops.change_log`` (what about, rows, µs since the epoch) together."""
    return together(*({about: (count, us)} for about, count, us in noted))


def note_all(rows: LakeIO) -> None:
    """Note all that silver holds as new: a query for gold that starts over derives all of it."""
    first = [us for table in (EXCHANGES, GAPS) if (us := first_us(rows, table)) is not None]
    if first:
        note_news(rows, of_all(1, min(first)))


def renamed_since(rows: LakeIO, servers: Sequence[str], topic_ids: Sequence[str]) -> int | None:
    """Time of the first statement by one of these servers or of one of these topics, µs since the epoch."""
    tables = (OFFSET_EVENTS, RECORD_BATCHES, STATE_EVENTS)
    found = (first_us(rows, table, servers, topic_ids) for table in tables)
    return min((us for us in found if us is not None), default=None)


def first_us(
    rows: LakeIO, table: Table, servers: Sequence[str] | None = None, topic_ids: Sequence[str] = ()
) -> int | None:
    """Time of the first row of a table, or of those that name one of these; µs since the epoch, None without any."""
    if rows.is_empty(table):
        return None
    if not rows.lake.is_local:
        found = rows.frame(TableScan(table))
        if servers is not None:
            found = found.where(F.col("server").isin(list(servers)) | F.col("topic_id").isin(list(topic_ids)))
        least: int | None = found.agg(F.unix_micros(F.min("ts"))).collect()[0][0]
        return least
    condition = (
        "true" if servers is None else "server IN (SELECT unnest($servers)) OR topic_id IN (SELECT unnest($ids))"
    )
    given = {} if servers is None else {"servers": list(servers), "ids": list(topic_ids)}
    (row,) = rows.ask(TableScan(table), f"SELECT min(epoch_us(ts)) AS us FROM rows WHERE {condition}", **given)
    return None if row.us is None else int(row.us)
