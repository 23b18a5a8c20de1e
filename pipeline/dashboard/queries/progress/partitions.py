"""Where groups and partitions are, and who committed what: ``gold.offset_timeline`` and the views on it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import duckdb
import pyarrow as pa

from pipeline.dashboard.queries.scope import Scope, as_of, ask, ask_rows, rows_if_there

MOST_ROWS = 500
MOST_PLACES = 10_000
"""Partitions and groups to choose from."""


@dataclass(frozen=True, slots=True)
class Place:
    """A partition, and the group that reads it; an empty group stands for the partition alone."""

    cluster: str
    topic: str
    partition: int
    group_id: str

    def parameters(self) -> dict[str, Any]:
        """Values of ``$cluster``, ``$topic``, ``$partition`` and ``$group_id``."""
        return {
            "cluster": self.cluster, "topic": self.topic, "partition": self.partition, "group_id": self.group_id,
        }  # fmt: skip


_LAG = f"""
WITH lag_now AS ({as_of("consumer_lag")}),
stuck AS (SELECT DISTINCT cluster, topic, partition, group_id FROM ({as_of("stuck_partitions")})),
-- Not what the lag knows of both offsets: one of them may have been stated later than the other.
held AS (SELECT cluster, topic, partition FROM ({as_of("open_transactions")}))
SELECT l.*, s.group_id IS NOT NULL AS is_stuck, h.topic IS NOT NULL AS is_held
FROM lag_now AS l
LEFT JOIN stuck AS s
  ON s.cluster = l.cluster AND s.topic = l.topic AND s.partition = l.partition AND s.group_id = l.group_id
LEFT JOIN held AS h ON h.cluster = l.cluster AND h.topic = l.topic AND h.partition = l.partition
ORDER BY is_stuck DESC, l.lag DESC NULLS LAST, l.group_id, l.topic, l.partition
LIMIT $most
"""  # noqa: S608 - our own views

_STANDS = f"""
SELECT * FROM ({as_of("consumer_lag")})
WHERE cluster = $cluster AND group_id = $group_id
  AND ($topic IS NULL OR topic = $topic AND partition = $partition)
"""  # noqa: S608 - our own views

_PLACES = """
SELECT cluster, topic, partition, group_id, count(*) AS events
FROM gold.offset_timeline
WHERE date BETWEEN $first_day AND $last_day AND ts BETWEEN $start AND $end
GROUP BY ALL
ORDER BY events DESC, cluster, topic, partition, group_id
LIMIT $most
"""

_LINE_NAMES = ("log_start_offset", "last_stable_offset", "high_watermark", "committed_offset")
_ENDS = ", ".join(
    f"{{'line': '{name}', 'us': max(us) FILTER ({name} IS NOT NULL), 'value': arg_max({name}, place)}}"
    for name in _LINE_NAMES
)
ROWS = """(
  SELECT * FROM gold.offset_timeline
  WHERE date BETWEEN $first_day AND $last_day AND cluster = $cluster AND topic = $topic AND partition = $partition
)"""
"""The rows of one partition, of all groups, on the days of the span."""
HERE = "ts BETWEEN $start AND $end"
"""Which of them are of the span."""
IS_STABLE_STATED = "last_stable_ts = ts"
"""Which of them state a last stable offset themselves: the others carry it on from before."""

_SPAN = f"SELECT min(ts) AS first_ts, max(ts) AS last_ts FROM {ROWS} WHERE {HERE}"  # noqa: S608 - our own text

# One pass: a row for each bucket with the last of each line, of which rows are made then.
_LINES = f"""
WITH known AS (
  SELECT time_bucket($bucket, ts, $start) AS bucket, coalesce(incarnation, 0) AS incarnation, epoch_us(ts) AS us,
         epoch_us(ts)::HUGEINT * 2147483648 + ordinal AS place, log_start_offset, high_watermark,
         -- Only where it was stated: carried on, it would look as if a transaction held it.
         CASE WHEN {IS_STABLE_STATED} THEN last_stable_offset END AS last_stable_offset,
         CASE WHEN group_id = $group_id AND group_id <> '' THEN committed_offset END AS committed_offset
  FROM {ROWS} WHERE {HERE}
),
last AS (
  SELECT bucket, incarnation, [{_ENDS}] AS ends FROM known GROUP BY bucket, incarnation
)
SELECT e.line, incarnation, make_timestamptz(e.us) AS ts, e.value
FROM (SELECT incarnation, unnest(ends) AS e FROM last)
WHERE e.value IS NOT NULL
ORDER BY e.line, ts
"""  # noqa: S608 - our own text

OUTCOMES = """
  CASE kind WHEN 'committed' THEN 'accepted' WHEN 'txn_applied' THEN 'accepted' WHEN 'txn_committed' THEN 'pending'
    WHEN 'txn_discarded' THEN 'aborted' ELSE 'rejected' END
"""
COMMIT_KINDS = (
    "('committed', 'commit_rejected', 'txn_committed', 'txn_commit_rejected', 'txn_applied', 'txn_discarded')"
)

_OWNERS = """
SELECT coalesce(client_id, '') AS client_id, member_id, generation, group_protocol,
       greatest(owned_from, $start) AS owned_from, least(coalesce(owned_until, $end), $end) AS owned_until,
       owned_until IS NULL AS is_owned_still
FROM partition_owners
WHERE cluster = $cluster AND topic = $topic AND partition = $partition AND group_id = $group_id
  AND owned_from <= $end AND (owned_until IS NULL OR owned_until >= $start)
ORDER BY owned_from, generation
LIMIT $most
"""

_COMMITTERS = f"""
WITH commits AS (
  SELECT coalesce(client_id, '') AS client_id, coalesce(member_id, '') AS member_id, generation, ts, ordinal,
         event_offset, error_name, {OUTCOMES} AS outcome
  FROM {ROWS}
  WHERE {HERE} AND group_id = $group_id AND kind IN {COMMIT_KINDS}
)
SELECT client_id, member_id, max(generation) AS generation,
  count(*) FILTER (outcome = 'accepted') AS accepted, count(*) FILTER (outcome = 'rejected') AS rejected,
  count(*) FILTER (outcome = 'pending') AS pending, arg_min(event_offset, (ts, ordinal)) AS first_offset,
  arg_max(event_offset, (ts, ordinal)) AS last_offset, max(ts) AS last_ts,
  list_sort(list_distinct(list(error_name) FILTER (error_name <> 'NONE'))) AS errors
FROM commits
GROUP BY client_id, member_id
ORDER BY accepted + rejected + pending DESC, client_id
LIMIT $most
"""  # noqa: S608 - our own text


def lag(connection: duckdb.DuckDBPyConnection, scope: Scope) -> list[dict[str, Any]]:
    """Where each group was at the end of the span: the rows of ``consumer_lag``, stuck ones first, then by lag.

    Beside its columns: ``is_stuck`` (``stuck_partitions`` has it) and ``is_held`` (``open_transactions``).

    Raises:
        NotThereYetError: there is no timeline.
    """
    return ask_rows(connection, _LAG, scope, most=MOST_ROWS)


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """How far a group is behind, on one partition or on all of them together.

    Attributes:
        partitions: that it committed.
        lag: records that it has not committed; None: not known of any of them.
        others: offsets between what it committed and the ends that hold no record.
        lag_seconds: age of the oldest record that waits; None: not known.
        as_of: last word of the cluster, up to which ages are counted; None: it committed nothing.
    """

    partitions: int
    lag: int | None
    others: int
    lag_seconds: float | None
    as_of: datetime | None


def standing(
    connection: duckdb.DuckDBPyConnection, scope: Scope, cluster: str, group_id: str, place: Place | None = None
) -> PartitionLag:
    """How far a group is behind at the end of the span, as ``consumer_lag`` has it: the sum of its partitions.

    Args:
        connection: to the lake.
        scope: the span.
        cluster, group_id: which group.
        place: the only partition that matters; None: all.
    """
    rows = rows_if_there(
        connection, _STANDS, scope, cluster=cluster, group_id=group_id, topic=place.topic if place else None,
        partition=place.partition if place else None,
    )  # fmt: skip
    lags = [row["lag"] for row in rows if row["lag"] is not None]
    return PartitionLag(
        len(rows),
        sum(lags) if lags else None,
        sum(row["offsets_without_records"] or 0 for row in rows if row["lag"]),
        max((row["lag_seconds"] for row in rows if row["lag_seconds"] is not None), default=None),
        max((row["as_of"] for row in rows), default=None),
    )


def trouble(row: dict[str, Any]) -> str:
    """What is wrong with a row of :func:`lag`, in words; empty: nothing."""
    troubles = ("stuck commits", row["is_stuck"]), ("open transaction", row["is_held"])
    return ", ".join(text for text, holds in troubles if holds)


def places(connection: duckdb.DuckDBPyConnection, scope: Scope) -> list[Place]:
    """Partitions and groups seen in the span; of very many those seen most."""
    return [
        Place(row["cluster"], row["topic"], row["partition"], row["group_id"])
        for row in ask_rows(connection, _PLACES, scope, most=MOST_PLACES)
    ]


def is_there(connection: duckdb.DuckDBPyConnection, scope: Scope, place: Place) -> bool:
    """Whether something was seen in the span of this partition in the name of this group."""
    sql = f"SELECT 1 FROM {ROWS} WHERE {HERE} AND group_id = $group_id LIMIT 1"  # noqa: S608 - our own text
    return bool(ask_rows(connection, sql, scope, **place.parameters()))


def span(connection: duckdb.DuckDBPyConnection, scope: Scope, place: Place) -> Scope | None:
    """The part of the span in which something was seen of the partition, so that a plot is not mostly empty."""
    bounds = ask_rows(connection, _SPAN, scope, **place.parameters())[0]
    return None if bounds["first_ts"] is None else Scope(bounds["first_ts"], bounds["last_ts"], "kafka")


def lines(connection: duckdb.DuckDBPyConnection, scope: Scope, place: Place) -> pa.Table:
    """Offsets of the log and the group over time: ``line``, ``incarnation``, ``ts``, ``value``; the last of a bucket.

    ``line`` is log_start_offset, last_stable_offset (where it was stated), high_watermark or committed_offset.
    """
    return ask(connection, _LINES, scope, **place.parameters())


def owners(connection: duckdb.DuckDBPyConnection, scope: Scope, place: Place) -> list[dict[str, Any]]:
    """Which member owned the partition from when until when, cut to the span; see the view ``partition_owners``."""
    return ask_rows(connection, _OWNERS, scope, most=MOST_ROWS, **place.parameters())


def committers(connection: duckdb.DuckDBPyConnection, scope: Scope, place: Place) -> list[dict[str, Any]]:
    """Who committed how often, with which outcome: a row for each client and member."""
    return ask_rows(connection, _COMMITTERS, scope, **place.parameters(), most=MOST_ROWS)
