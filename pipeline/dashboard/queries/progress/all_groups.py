"""Lists all groups and topics as they were at the end of a span, by the functions that ``wirelake top`` has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

import duckdb

from pipeline.analysis.fit import schema_of
from pipeline.analysis.live_metrics.groups import GroupNow, groups_now
from pipeline.analysis.live_metrics.window import Window
from pipeline.dashboard.queries.scope import NotThereYetError, Scope, as_of, ask, ask_rows, rows_if_there
from pipeline.tables import STATE_EVENTS

WINDOW = timedelta(minutes=15)
"""Over which members, rates and trends are taken, up to the last word of each cluster."""
MOST = 1000
"""Groups and topics that are listed."""
_TAKEN = """
cluster, topic, partition, group_id, incarnation, kind, ts, exchange_id, ordinal, committed_offset, lag, lag_seconds,
high_watermark
"""
_NAMES = [name.strip() for name in _TAKEN.split(",")]
_STRUCT = "{" + ", ".join(f"'{name}': {name}" for name in _NAMES) + "}"
_SPAN = "date BETWEEN $since_day AND $last_day AND ts BETWEEN $since AND $end"
_CLUSTERS = f"""
SELECT cluster, min(ts) AS first_ts, max(ts) AS last_ts FROM gold.offset_timeline WHERE {_SPAN}
GROUP BY cluster ORDER BY cluster
"""  # noqa: S608 - our own text
# All of the window; of what was before it how each group and log stood last.
_TIMELINE = f"""
SELECT {_TAKEN} FROM gold.offset_timeline WHERE {_SPAN} AND cluster = $cluster AND ts > $from AND ts <= $until
UNION ALL
SELECT unnest(arg_max({_STRUCT}, (ts, exchange_id, ordinal))) FROM gold.offset_timeline
WHERE {_SPAN} AND cluster = $cluster AND ts <= $from AND (lag IS NOT NULL OR group_id = '')
GROUP BY topic, partition, group_id, coalesce(incarnation, 0)
"""  # noqa: S608 - our own text
_STATES = f"""
SELECT cluster, group_id, member_id, kind, error_code, ts, exchange_id, ordinal FROM silver.state_events
WHERE {_SPAN} AND cluster = $cluster AND ts > $from AND ts <= $until
"""  # noqa: S608 - our own text
_STUCK = f"SELECT DISTINCT cluster, group_id FROM ({as_of('stuck_partitions')})"  # noqa: S608 - our own views
_TOPICS = f"""
WITH logs AS (
  SELECT cluster, topic, partition, max(high_watermark) AS high, min(high_watermark) AS low, max(ts) AS last_ts
  FROM gold.offset_timeline WHERE {_SPAN} GROUP BY ALL
), behind AS ({as_of("consumer_lag")}),
lags AS (
  SELECT cluster, topic, count(DISTINCT group_id) AS groups, max(lag) AS lag, arg_max(group_id, lag) AS worst
  FROM behind GROUP BY ALL
)
SELECT l.cluster, l.topic, count(*) AS partitions, max(l.last_ts) AS last_ts,
       TRY_CAST(sum(l.high::HUGEINT - l.low) AS BIGINT) AS added,
       any_value(g.groups) AS groups, any_value(g.lag) AS lag, any_value(g.worst) AS worst
FROM logs AS l LEFT JOIN lags AS g ON g.cluster = l.cluster AND g.topic = l.topic
GROUP BY l.cluster, l.topic ORDER BY lag DESC NULLS LAST, l.topic, l.cluster LIMIT $most
"""  # noqa: S608 - our own text
_STEADY = 0.05
"""Records a second; ``top`` calls less than that steady."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A group with its state in words.

    Attributes:
        now: its figures.
        state: in words.
        is_well: whether one need not look at it.
        as_of: the last word of its cluster.
    """

    now: GroupNow
    state: str
    is_well: bool
    as_of: datetime


def all_groups(connection: duckdb.DuckDBPyConnection, scope: Scope) -> list[Listed]:
    """All groups at the end of the span, those in trouble first, then by lag.

    Raises:
        NotThereYetError: there is no timeline.
    """
    stuck = {(row["cluster"], row["group_id"]) for row in rows_if_there(connection, _STUCK, scope)}
    found = []
    for row in ask_rows(connection, _CLUSTERS, scope):
        for now in _of_cluster(connection, scope, row):
            state, is_well = state_of(now, is_stuck=(now.cluster, now.group_id) in stuck)
            found.append(Listed(now, state, is_well, row["last_ts"]))
    return sorted(found, key=lambda one: (one.is_well, -(one.now.lag or 0), one.now.group_id))[:MOST]


def _of_cluster(connection: duckdb.DuckDBPyConnection, scope: Scope, row: Mapping[str, Any]) -> list[GroupNow]:
    first_us, last_us = (round(row[name].timestamp() * 1e6) for name in ("first_ts", "last_ts"))
    window = Window.of(last_us, first_us, round(WINDOW.total_seconds() * 1e6))
    values = {
        "cluster": row["cluster"], "from": datetime.fromtimestamp(window.first_us / 1e6, timezone.utc),
        "until": row["last_ts"],
    }  # fmt: skip
    timeline = ask(connection, _TIMELINE, scope, **values)
    try:
        states = ask(connection, _STATES, scope, **values)
    except NotThereYetError:
        states = schema_of(STATE_EVENTS).empty_table()
    return groups_now(timeline, states, window)


def state_of(now: GroupNow, *, is_stuck: bool) -> tuple[str, bool]:
    """The state of a group, in words, and whether that is well; the worst that holds.

    Args:
        now: its figures.
        is_stuck: whether a client commits one offset of it again and again.
    """
    is_known, trend = now.lag is not None, now.trend or 0.0
    troubles = {
        "stuck commits": is_stuck,
        "commits refused": now.refused > 0,
        "falls behind": now.is_growing,
        "no member seen": bool(now.lag) and not now.members,
    }
    for words, holds in troubles.items():
        if holds:
            return words, False
    if not is_known or not now.lag:
        return ("caught up" if is_known else "lag not known"), True
    return ("catching up" if trend <= -_STEADY else "steady"), True


def all_topics(connection: duckdb.DuckDBPyConnection, scope: Scope) -> list[dict[str, Any]]:
    """All topics at the end of the span: those first whose worst group is furthest behind.

    Each with ``cluster``, ``topic``, ``partitions`` (those that were seen), ``added`` (offsets by which their
    ends grew), ``groups``, ``lag`` and ``worst`` (of the group that is furthest behind on one partition), ``last_ts``.

    Raises:
        NotThereYetError: there is no timeline.
    """
    return ask_rows(connection, _TOPICS, scope, most=MOST)
