"""How are past days derived anew? The same functions as the stream, in batch, replacing whole days."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from pipeline.settings import StreamSettings
from pipeline.streaming.bronze.decode import decode_frames
from pipeline.streaming.operations.requests import RefusedError
from pipeline.streaming.silver.exchanges import HALF_COLUMNS, connection_clocks, group_halves, settle
from pipeline.streaming.silver.facts import load_facts, save_facts
from pipeline.streaming.silver.mongo import command_rows, handshake_rows
from pipeline.streaming.silver.offset_events import (
    batch_rows,
    collect_facts,
    event_rows,
    rename_earlier,
    state_rows,
    statement_rows,
)
from pipeline.streaming.storage.lake import Lake, frames_kept_from, read_table
from pipeline.streaming.storage.sinks import overwrite, replace_dates, same_rows
from pipeline.tables import (
    EXCHANGES,
    FRAMES,
    MONGO_COMMANDS,
    MONGO_HANDSHAKES,
    OFFSET_EVENTS,
    OPEN_EXCHANGES,
    RECORD_BATCHES,
    STATE_EVENTS,
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
    """Derive silver of the days from ``first`` to ``last`` (inclusive) anew from ``bronze.frames``.

    The queries must have caught up with bronze, and must not run meanwhile: they would write the same rows again.
    Gold follows by its own query, which sees the replaced days of silver.

    Args:
        spark: the session.
        lake: where the tables are.
        first, last: days of the frames.
        recode: decode the raw frames anew first.
        settings: as for the stream.
        progress: called with a line of text before each step.

    Raises:
        RefusedError: frames of these days have expired; nothing could take the place of what was derived from them.
    """
    first, last = max(first, _EARLIEST), min(last, date.max - _DAY)  # the days around them are looked at, too
    check_frames_are_there(spark, lake, first)
    days = F.col("date").between(F.lit(first), F.lit(last))
    if recode:
        progress(f"decoding the frames of {first} to {last} again")
        raw = read_table(spark, lake, FRAMES).where(days)
        decoded = decode_frames(raw, kernel_after=settings.kernel_after_frames, decode_through=settings.decode_through)
        replace_dates(decoded, lake, FRAMES, first, last)
    progress("pairing requests and responses")
    _exchanges(spark, lake, first, last, settings)
    progress("deriving offset events")
    # An answer that came after midnight is an event of the next day.
    around = read_table(spark, lake, EXCHANGES).where(F.col("date").between(F.lit(first - _DAY), F.lit(last)))
    statements = statement_rows(around).persist()
    before = load_facts(spark, lake)
    facts = before.merged(collect_facts(statements))
    replace_dates(event_rows(statements, facts).where(days), lake, OFFSET_EVENTS, first, last)
    replace_dates(batch_rows(statements, facts).where(days), lake, RECORD_BATCHES, first, last)
    replace_dates(state_rows(statements, facts).where(days), lake, STATE_EVENTS, first, last)
    statements.unpersist()
    rename_earlier(spark, lake, facts, before)
    save_facts(spark, lake, facts, before)
    progress("deriving MongoDB commands")
    replace_dates(handshake_rows(around).where(days), lake, MONGO_HANDSHAKES, first, last)
    commands = command_rows(around, lake, first - _DAY)
    replace_dates(commands.where(days), lake, MONGO_COMMANDS, first, last)


def check_frames_are_there(spark: SparkSession, lake: Lake, first: date) -> None:
    """Refuse to derive days anew from ``first`` on if maintenance has dropped the frames of some of them.

    Also the first day that has all its frames is refused then: answers to requests of the day before would look like
    orphans.

    Raises:
        RefusedError: names the day to begin with.
    """
    kept_from = frames_kept_from(spark, lake)
    if kept_from is not None and first <= kept_from:
        raise RefusedError(
            f"the frames of {first} have expired, but not what was derived from them: begin with {kept_from + _DAY}"
        )


def _exchanges(spark: SparkSession, lake: Lake, first: date, last: date, settings: StreamSettings) -> None:
    days = F.col("date").between(F.lit(first), F.lit(last))
    since = read_table(spark, lake, FRAMES).where(F.col("date") >= F.lit(first - _DAY))
    waiting = read_table(spark, lake, OPEN_EXCHANGES)
    grouped = group_halves(since.where(F.col("date") <= F.lit(last + _DAY)).select(*HALF_COLUMNS), waiting.limit(0))
    paired = settle(grouped, connection_clocks(since), settings.answer_timeout, settings.abandon_timeout)
    replace_dates(paired.complete.where(days), lake, EXCHANGES, first, last)
    rest = waiting.where(~days).unionByName(paired.waiting.where(days)).persist()
    if not same_rows(rest, waiting):
        overwrite(rest, lake, OPEN_EXCHANGES)
    rest.unpersist()
