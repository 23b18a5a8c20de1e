"""Derives past days again: the same functions as the stream, in batch, replacing whole days."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date, timedelta

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from pipeline.analysis.changes import of_all
from pipeline.analysis.fit import fit
from pipeline.config.settings import StreamSettings
from pipeline.streaming.bronze.decode import decode_frames
from pipeline.streaming.operations.requests import RefusedError
from pipeline.streaming.silver.cluster_catalog import load_catalog, rename_earlier, save_catalog
from pipeline.streaming.silver.exchanges import HALF_COLUMNS, complete_of, pair_apart, pair_here, waiting_of
from pipeline.streaming.silver.mongo import named_commands
from pipeline.streaming.silver.stated import Stated, gathered_here, stated_apart, stated_here
from pipeline.streaming.storage.change_log import note_news
from pipeline.streaming.storage.lake import Lake, frames_kept_from, read_table
from pipeline.streaming.storage.lake_io import LakeIO, Made, same_rows
from pipeline.streaming.storage.sinks import delete_rows, replace_dates, us_of
from pipeline.streaming.storage.table_scan import TableScan
from pipeline.tables import (
    CONNECTIONS,
    EXCHANGES,
    FRAMES,
    MONGO_COMMANDS,
    MONGO_HANDSHAKES,
    OFFSET_EVENTS,
    PENDING_EXCHANGES,
    RECORD_BATCHES,
    STATE_EVENTS,
    Table,
)

_DAY = timedelta(days=1)
_EARLIEST = date(1970, 1, 1)
"""No capture holds an earlier time."""


def backfill_days(
    spark: SparkSession,
    lake: Lake,
    first: date,
    last: date,
    *,
    recode: bool,
    settings: StreamSettings,
    progress: Callable[[str], None],
) -> None:
    """Derive silver of the days from ``first`` to ``last`` (inclusive) again from ``bronze.frames``.

    The queries must have caught up with bronze, and must not run meanwhile: they would write the same rows again.
    Gold follows by its own query, which sees the replaced days of silver.

    Args:
        spark: the session.
        lake: where the tables are.
        first, last: days of the frames.
        recode: decode the raw frames again first.
        settings: as for the stream.
        progress: called with a line of text before each step.

    Raises:
        RefusedError: frames of these days have expired; nothing could take the place of what was derived from them.
    """
    first, last = max(first, _EARLIEST), min(last, date.max - _DAY)  # the days around them are looked at, too
    check_frames_are_there(spark, lake, first)
    if recode:
        progress(f"decoding the frames of {first} to {last} again")
        raw = read_table(spark, lake, FRAMES).where(F.col("date").between(F.lit(first), F.lit(last)))
        decoded = decode_frames(raw, kernel_after=settings.kernel_after_frames)
        replace_dates(decoded, lake, FRAMES, first, last)
    rows = LakeIO(spark, lake, settings.local_row_limit)
    note_news(rows, of_all(1, us_of(first)))  # first: gold is rebuilt also if this is cut off
    # What agents stated of these days is taken in again with the news.
    delete_rows(spark, lake, CONNECTIONS, F.col("date").between(F.lit(first), F.lit(last)))
    progress("pairing requests and responses")
    with _exchanges(rows, first, last, settings) as complete:
        progress("deriving offset events")
        # An answer that came after midnight is an event of the next day.
        around = _of_days(complete, first - _DAY, last)
        if isinstance(around, pa.Table):
            _statements(rows, stated_here(gathered_here(around, load_catalog(rows))), first, last, progress)
        else:
            with stated_apart(around) as stated:
                _statements(rows, stated, first, last, progress)


def _statements(rows: LakeIO, stated: Stated, first: date, last: date, progress: Callable[[str], None]) -> None:
    """Write what exchanges state of the days from ``first`` to ``last``."""

    def replace(made: Made | None, table: Table) -> None:
        """Replace these days."""
        some = rows.read(TableScan(table)).slice(0, 0) if made is None else made
        rows.replace_dates(_of_days(some, first, last), table, first, last)

    before = load_catalog(rows)
    catalog = stated.catalog(before)
    events = {table.full_name: made for table, made in stated.events(catalog)}
    for table in (OFFSET_EVENTS, RECORD_BATCHES, STATE_EVENTS):
        replace(events.get(table.full_name), table)
    rename_earlier(rows, catalog, before)
    save_catalog(rows, catalog, before)
    progress("deriving MongoDB commands")
    replace(stated.handshakes, MONGO_HANDSHAKES)
    replace(None if stated.commands is None else named_commands(rows, stated.commands), MONGO_COMMANDS)


def check_frames_are_there(spark: SparkSession, lake: Lake, first: date) -> None:
    """Refuse to derive days again from ``first`` on if maintenance has dropped the frames of some of them.

    Also the first day that has all its frames is refused then: answers to requests of the day before would look like
    orphans.

    Raises:
        RefusedError: names the day to begin with.
    """
    kept_from = frames_kept_from(spark, lake)
    if kept_from is not None and first <= kept_from:
        raise RefusedError(
            f"the frames of {first} have expired, so nothing can be derived from them: begin with {kept_from + _DAY}"
        )


@contextmanager
def _exchanges(rows: LakeIO, first: date, last: date, settings: StreamSettings) -> Iterator[Made]:
    """Pair the frames of these days and write what they are; those of the days around may hold their other halves.

    Gives all completed exchanges with their bodies, also of the day before and the day after.
    """
    since = TableScan(FRAMES, from_day=first - _DAY, columns=HALF_COLUMNS)
    here = rows.collect_if_small({"since": since})
    waiting = rows.read(TableScan(PENDING_EXCHANGES))
    if here is not None:
        frames = here["since"]
        is_near = pc.less_equal(frames.column("date"), pa.scalar(last + _DAY))
        complete, still = pair_here(frames.filter(is_near), settings, frames)
        _replace(rows, complete, still, waiting, first, last)
        yield complete
        return
    frame = rows.frame(since)
    paired = pair_apart(rows, frame.where(F.col("date") <= F.lit(last + _DAY)), frame, settings).persist()
    try:
        _replace(rows, complete_of(paired), waiting_of(paired), waiting, first, last)
        yield complete_of(paired)
    finally:
        paired.unpersist()


def _replace(rows: LakeIO, complete: Made, still: Made, waiting: pa.Table, first: date, last: date) -> None:
    """Write the exchanges of these days, and the halves that wait in place of those that waited."""
    rows.replace_dates(_of_days(complete, first, last), EXCHANGES, first, last)
    ours = rows.as_arrow(_of_days(still, first, last), PENDING_EXCHANGES.columns)
    is_ours = _is_between(waiting, first, last)
    rest = pa.concat_tables([waiting.filter(pc.invert(is_ours)), fit(ours, PENDING_EXCHANGES)])
    if not same_rows(rest, waiting, PENDING_EXCHANGES):
        rows.overwrite(rest, PENDING_EXCHANGES)


def _of_days(made: Made, first: date, last: date) -> Made:
    """The rows of the days from ``first`` to ``last``."""
    if isinstance(made, pa.Table):
        return made.filter(_is_between(made, first, last))
    return made.where(F.col("date").between(F.lit(first), F.lit(last)))


def _is_between(rows: pa.Table, first: date, last: date) -> pa.Array:
    day = rows.column("date")
    return pc.and_(pc.greater_equal(day, pa.scalar(first)), pc.less_equal(day, pa.scalar(last)))
