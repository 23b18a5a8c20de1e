"""Where does each partition, and each group that reads it, stand over time? ``gold.offset_timeline``.

A refresh recomputes whole hours from the first one that has news; what was known when that hour began lies in
``gold.offsets_before``, so that a refresh costs the same however long the day and the history are. What the rows hold
is :mod:`pipeline.analysis.timeline.rows`' to say.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from decoder.kafka.facts.state import GROUP_KINDS
from pipeline.analysis.facts import Facts
from pipeline.analysis.hours import DAY_US, GROUP_KNOWN_US, LATE_US, first_hour, span_us
from pipeline.analysis.timeline.rows import ENDED, ended, last_known, timeline
from pipeline.streaming.spark.bundles import Derivation
from pipeline.streaming.storage.lake import read_table
from pipeline.streaming.storage.rows import Rows, Wanted
from pipeline.streaming.storage.sinks import fit
from pipeline.tables import (
    DERIVED_DAYS,
    OFFSET_EVENTS,
    OFFSET_TIMELINE,
    OFFSETS_BEFORE,
    RECORD_BATCHES,
    STATE_EVENTS,
)


def refresh_timeline(rows: Rows, facts: Facts, since_us: int, lookback: timedelta) -> None:
    """Recompute the hours that news can change.

    Args:
        rows: of the lake.
        facts: clusters and topic names as known now.
        since_us: time of the first news, µs since the epoch.
        lookback: see StreamSettings.lag_lookback.
    """
    first = first_hour(since_us)
    back = first - span_us(lookback)
    _note_known(rows, first)
    inputs = {
        "events": Wanted.since(OFFSET_EVENTS, back, once=True),
        "batches": Wanted.since(RECORD_BATCHES, back, once=True),
        "states": Wanted.since(STATE_EVENTS, min(back, first - GROUP_KNOWN_US), once=True),
        "known": _of_hour(first),
    }
    here = rows.read_few(inputs)
    whole = partial(_whole, facts=facts, lookback=lookback, since_us=first)
    made = whole(here) if here is not None else _in_groups(rows, whole, facts, first, back)
    rows.replace_since(made, OFFSET_TIMELINE, "ts", first)


def _whole(tables: Mapping[str, pa.Table], *, facts: Facts, lookback: timedelta, since_us: int) -> pa.Table:
    return timeline(
        tables["events"], tables["states"], tables["batches"], facts, lookback,
        since_us=since_us, known=tables["known"], of_transactions=tables.get("ended"),
    )  # fmt: skip


def _in_groups(rows: Rows, whole: Derivation, facts: Facts, first: int, back: int) -> DataFrame:
    """The same by partitions: what ends with a transaction first, by those; who names groups is known to all."""
    commits = rows.frame(Wanted.since(OFFSET_EVENTS, back, once=True, kinds=("txn_committed",)))
    ends = rows.frame(Wanted.since(STATE_EVENTS, back, once=True, kinds=("txn_end", "txn_init")))
    of_transactions = rows.derive_apart(
        lambda tables: ended(tables["events"], tables["states"], facts, first),
        {"events": commits, "states": ends},
        ("cluster", "transactional_id"),
        ENDED,
    )
    naming = rows.frame(Wanted.since(STATE_EVENTS, first - GROUP_KNOWN_US, once=True, kinds=sorted(GROUP_KINDS)))
    five_minutes = F.timestamp_micros(F.unix_micros("ts") - F.pmod(F.unix_micros("ts"), F.lit(LATE_US)))
    names = naming.where("group_id <> ''").select(
        "server", "client", "client_id", "group_id", F.lit(min(GROUP_KINDS)).alias("kind"), five_minutes.alias("ts")
    )
    no_id = F.lit(None).cast("string")
    return rows.derive_apart(
        whole,
        {
            "events": rows.frame(Wanted.since(OFFSET_EVENTS, back, once=True)),
            "batches": rows.frame(Wanted.since(RECORD_BATCHES, back, once=True)),
            "ended": of_transactions.withColumn("topic_id", no_id),
            "known": rows.frame(_of_hour(first)).withColumn("topic_id", no_id),
        },
        ("cluster", "coalesce(topic, topic_id)", "partition"),
        OFFSET_TIMELINE,
        {"states": names.distinct().toArrow()},
    )


def _of_hour(hour_us: int) -> Wanted:
    return Wanted(OFFSETS_BEFORE, since_us=hour_us, before_us=hour_us + 1, time="hour")


def _note_known(rows: Rows, first: int) -> None:
    """Note what was known when the hour ``first`` began in ``gold.offsets_before``, if it is not there.

    What was noted of later hours goes, because news may change it; beside the note of ``first`` stay those of the day
    before it, for news that come late. Noting comes before the timeline is written: cut off in between, it is what the
    timeline of the hours before states all the same.
    """
    hours = _noted_hours(rows)
    if hours and hours[-1] == first:
        return
    earlier = [us for us in hours if us < first]
    last = first if first in hours else max(earlier, default=first - DERIVED_DAYS * DAY_US)
    made = rows.derive(
        lambda tables: last_known(tables["since_last"], tables["noted"], first),
        {"since_last": Wanted.since(OFFSET_TIMELINE, last, before_us=first), "noted": _of_hour(last)},
        ("cluster", "topic", "coalesce(incarnation, 0)", "partition", "group_id", "client_id"),
        OFFSETS_BEFORE,
    )
    if not hours and isinstance(made, pa.Table) and not made.num_rows:
        return
    kept = [us for us in earlier if us >= first - DAY_US] or earlier[-1:]
    if isinstance(made, pa.Table):
        held = rows.read(Wanted(OFFSETS_BEFORE)) if kept else made.slice(0, 0)
        is_kept = pc.is_in(held.column("hour").cast(pa.int64()), pa.array(kept, pa.int64()))
        rows.overwrite(pa.concat_tables([made, held.filter(is_kept)]), OFFSETS_BEFORE)
    else:
        all_notes = fit(read_table(rows.spark, rows.lake, OFFSETS_BEFORE), OFFSETS_BEFORE)
        kept_notes = all_notes.where(F.unix_micros("hour").isin(kept))
        rows.overwrite(fit(made, OFFSETS_BEFORE).unionByName(kept_notes), OFFSETS_BEFORE)


def _noted_hours(rows: Rows) -> list[int]:
    """The hours of which notes are there, ascending, µs since the epoch."""
    columns = rows.read(Wanted(OFFSETS_BEFORE, columns=("hour", "date"), distinct=True))
    if columns.column("hour").null_count:  # earlier versions noted days
        held = read_table(rows.spark, rows.lake, OFFSETS_BEFORE)
        begun = F.coalesce("hour", F.col("date").cast("timestamp"))
        rows.overwrite(held.withColumn("hour", begun), OFFSETS_BEFORE)
        return _noted_hours(rows)
    return sorted(set(columns.column("hour").cast(pa.int64()).to_pylist()))
