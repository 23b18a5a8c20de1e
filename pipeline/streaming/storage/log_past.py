"""What of a log's past does lag look up? Records produced and transaction markers, from the lowest commit on.

``lag_lookback`` reaches back for days, but a group that gets on stands near the end of the log: the rest of its past is
left out before anything is sorted.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from pipeline.streaming.storage.hours import first_hour_column

LOG = ("cluster", "topic", "incarnation", "partition")
"""Distinguishes logs."""


def lowest_committed(statements: DataFrame, known: DataFrame, states: DataFrame) -> DataFrame:
    """By log the lowest offset committed by any group that can be named: lag looks for nothing below it.

    Args:
        statements: rows to come, with ``group_id`` (null where others name it) and ``committed_offset``.
        known: rows of ``gold.offsets_before``.
        states: rows of ``silver.state_events`` that name groups.
    """
    groups = statements.select("group_id").union(states.select("group_id")).distinct()
    before = known.join(F.broadcast(groups), ["group_id"], "semi")
    stated, earlier = (part.select(*LOG, "committed_offset") for part in (statements, before))
    return stated.union(earlier).groupBy(*LOG).agg(F.min("committed_offset").alias("lowest"))


def produced_above(lowest: DataFrame, events: DataFrame) -> DataFrame:
    """Records of answered Produce requests: offsets from ``at`` to ``until`` (exclusive)."""
    produced = events.where("kind = 'produced' AND offset IS NOT NULL AND next_offset IS NOT NULL")
    spans = produced.select(*LOG, "ts", "exchange_id", F.expr("offset AS at"), F.expr("next_offset AS until"))
    return spans.join(F.broadcast(lowest), [*LOG]).where("until > lowest").drop("lowest")


def markers_above(lowest: DataFrame, batches: DataFrame) -> DataFrame:
    """Transaction markers as fetches showed them: offsets ``at``; ``seen_hour`` is the first that knows of them."""
    seen = batches.where("is_control AND source = 'fetch' AND base_offset IS NOT NULL")
    markers = seen.withColumns({"at": F.col("base_offset"), "seen_hour": first_hour_column("ts")})
    above = markers.join(F.broadcast(lowest), [*LOG]).where("at >= lowest")
    return above.groupBy(*LOG, "at", "seen_hour").agg(F.min("ts").alias("ts"))
