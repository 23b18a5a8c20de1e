"""What a group did: who owned which partition when, how far it was behind, how regularly its members committed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import duckdb
import pyarrow as pa

from decoder.kafka.apis import ApiKey
from pipeline.analysis.live_metrics.lag import LAG_SECONDS_SQL, LAG_SQL
from pipeline.analysis.rules.kafka.groups.coming_and_going import HEARTBEATS
from pipeline.analysis.tables import numbers
from pipeline.dashboard.queries.progress.members import (
    OTHERS,
    Key,
    Member,
    label_of,
    members,
    one_of_many,
    restarted_clients,
)
from pipeline.dashboard.queries.progress.rebalances import Rebalance, rebalances
from pipeline.dashboard.queries.scope import IN_SPAN, NotThereYetError, Scope, ask, ask_rows, rows_if_there

MOST_GROUPS = 2000
MOST_OWNED = 5000
MOST_PARTITIONS = 40
"""Partitions that one picture shows: those with most lag."""
LAG_BUCKETS = 120
"""Cells of a partition in the picture of lag."""

_HERE = f"{IN_SPAN} AND cluster = $cluster AND group_id = $group_id"

_OF_TIMELINE = f"""
  SELECT cluster, group_id, count(*) AS events FROM gold.offset_timeline
  WHERE {IN_SPAN} AND group_id <> '' GROUP BY ALL
"""  # noqa: S608 - our own text
_OF_STATES = f"""
  SELECT cluster, group_id, count(*) AS events FROM silver.state_events
  WHERE {IN_SPAN} AND group_id <> '' GROUP BY ALL
"""  # noqa: S608 - our own text
_GROUPS = """
SELECT cluster, group_id, sum(events)::BIGINT AS events FROM ({parts})
GROUP BY ALL ORDER BY events DESC, cluster, group_id LIMIT $most
"""

_SPAN = """
SELECT min(first_ts) AS first_ts, max(last_ts) AS last_ts FROM ({parts})
"""
_SPANS = (
    f"SELECT min(ts) AS first_ts, max(ts) AS last_ts FROM gold.offset_timeline WHERE {_HERE}",  # noqa: S608
    f"SELECT min(ts) AS first_ts, max(ts) AS last_ts FROM silver.state_events WHERE {_HERE}",  # noqa: S608
)

_OWNED = """
SELECT topic, partition, coalesce(client_id, '') AS client_id, member_id, generation, group_protocol,
       greatest(owned_from, $start) AS owned_from, least(coalesce(owned_until, $end), $end) AS owned_until,
       owned_until IS NULL OR owned_until > $end AS is_owned_still
FROM partition_owners
WHERE cluster = $cluster AND group_id = $group_id AND owned_from <= $end
  AND (owned_until IS NULL OR owned_until >= $start)
ORDER BY owned_from, topic, partition, generation
LIMIT $most
"""

_MEMBERS = f"""
WITH statements AS (
  SELECT member_id, client_id, client, ts, kind, generation, group_protocol FROM silver.state_events
  WHERE {_HERE} AND coalesce(member_id, '') <> ''
)
SELECT member_id,
       coalesce(min(client_id) FILTER (kind <> 'assignment' OR group_protocol <> 'classic'), '') AS client_id,
       arg_max(client, ts) FILTER (kind <> 'assignment') AS client, min(ts) AS first_ts, max(ts) AS last_ts,
       max(ts) FILTER (kind = 'leave') AS left_ts, max(generation) AS generation,
       list_sort(list_distinct(list(group_protocol) FILTER (group_protocol IS NOT NULL))) AS protocols
FROM statements GROUP BY member_id ORDER BY first_ts, member_id LIMIT $most
"""  # noqa: S608 - our own text

# Static membership (KIP-345): in the body of whoever enters.
_INSTANCES = f"""
WITH entered AS (
  SELECT DISTINCT exchange_id, member_id FROM silver.state_events
  WHERE {_HERE} AND (kind = 'join' OR kind = 'assignment' AND group_protocol <> 'classic') AND member_id <> ''
)
SELECT e.member_id, max(regexp_extract(x.request_body, '"(?:groupInstanceId|instanceId)":"([^"\\\\]+)"', 1)) AS instance
FROM entered AS e JOIN exchanges_with_bodies AS x ON x.exchange_id = e.exchange_id
WHERE x.date BETWEEN $first_day - INTERVAL 1 DAY AND $last_day
  AND x.api_key IN {numbers(ApiKey.JOIN_GROUP, *HEARTBEATS)}
GROUP BY e.member_id
"""  # noqa: S608 - our own text

_OF_ROW = (
    LAG_SQL.replace("l.{", "{")
    .replace("g.{", "{")
    .replace("g.committed", "committed")
    .format(end="high", end_then="high_then", lag="lag_then")
)
# What the group stated last and where the log ends, each carried on: lag grows between two commits as well.
_LAG = f"""
WITH stated AS (
  SELECT topic, partition, coalesce(incarnation, 0) AS incarnation, group_id, ts, exchange_id, ordinal, lag,
         lag_seconds, committed_offset, high_watermark, time_bucket($cell, ts, $start) AS bucket
  FROM gold.offset_timeline
  WHERE {IN_SPAN} AND cluster = $cluster
    AND (topic, partition) IN (SELECT (topic, partition) FROM gold.offset_timeline WHERE {_HERE} AND lag IS NOT NULL)
),
known AS (
  SELECT topic, partition, incarnation, bucket,
         arg_max({{'lag': lag, 'lag_seconds': lag_seconds, 'committed': committed_offset, 'high': high_watermark,
                   'ts': ts}}, (ts, exchange_id, ordinal)) FILTER (group_id = $group_id AND lag IS NOT NULL) AS stood,
         arg_max(high_watermark, (ts, exchange_id, ordinal)) FILTER (high_watermark IS NOT NULL) AS high
  FROM stated GROUP BY ALL
),
carried AS (
  SELECT topic, partition, bucket, last_value(stood IGNORE NULLS) OVER before AS stood,
         last_value(high IGNORE NULLS) OVER before AS high
  FROM known WINDOW before AS (PARTITION BY topic, partition, incarnation ORDER BY bucket)
),
spread AS (
  SELECT topic, partition, bucket, stood.lag AS lag_then, stood.lag_seconds AS lag_seconds, stood.ts AS group_seen,
         stood.committed AS committed_offset, stood.high AS high_then, high, least(bucket + $cell, $end) AS as_of
  FROM carried WHERE stood IS NOT NULL
),
now AS (
  SELECT *, CASE WHEN high IS NULL OR committed_offset IS NULL THEN lag_then ELSE {_OF_ROW} END AS lag FROM spread
)
SELECT s.topic, s.partition, s.bucket AS began, s.lag, {LAG_SECONDS_SQL} AS lag_seconds,
       coalesce(lead(s.bucket) OVER (PARTITION BY s.topic, s.partition ORDER BY s.bucket), $end) AS ended
FROM now AS s WHERE s.lag IS NOT NULL ORDER BY s.topic, s.partition, began
"""  # noqa: S608 - our own text

_COMMITS = """
  SELECT topic, partition, coalesce(client_id, '') AS client_id, coalesce(member_id, '') AS member_id, ts,
         epoch_us(ts) - epoch_us(lag(ts) OVER (
           PARTITION BY topic, partition, coalesce(client_id, ''), coalesce(member_id, '') ORDER BY ts, ordinal
         )) AS gap_us, kind IN ('commit_rejected', 'txn_commit_rejected') AS is_refused
  FROM gold.offset_timeline
  WHERE {here} AND kind IN ('committed', 'commit_rejected', 'txn_committed', 'txn_commit_rejected')
""".replace("{here}", _HERE)

_GAPS = f"""
SELECT client_id, member_id, arg_max(ts, gap_us) AS ts, max(gap_us) / 1e6 AS gap, arg_max(topic, gap_us) AS topic,
       arg_max(partition, gap_us) AS partition, count(*) AS n
FROM ({_COMMITS}) WHERE gap_us > 0
GROUP BY client_id, member_id, time_bucket($bucket, ts, $start)
ORDER BY ts, client_id, member_id
"""  # noqa: S608 - our own text

_RHYTHM = f"""
SELECT topic, partition, client_id, member_id, count(*) AS commits, count(*) FILTER (is_refused) AS refused,
       quantile_disc(gap_us, 0.5) / 1e6 AS usual, max(gap_us) / 1e6 AS longest, max(ts) AS last_ts,
       (epoch_us($end) - epoch_us(max(ts))) / 1e6 AS silent
FROM ({_COMMITS})
GROUP BY topic, partition, client_id, member_id
ORDER BY longest DESC NULLS LAST, topic, partition, client_id, member_id LIMIT $most
"""  # noqa: S608 - our own text


@dataclass(frozen=True, slots=True)
class Group:
    """A consumer group of a cluster."""

    cluster: str
    group_id: str

    def parameters(self) -> dict[str, Any]:
        """Values of ``$cluster`` and ``$group_id``."""
        return {"cluster": self.cluster, "group_id": self.group_id}


@dataclass(frozen=True, slots=True)
class GroupSeen:
    """What was seen of a group.

    Attributes:
        group: which.
        scope: the span in which something was seen of it.
        members: those who are distinguished, who owned most first.
        owned: ``topic``, ``partition``, ``client_id``, ``member_id``, ``generation``, ``group_protocol``,
            ``owned_from``, ``owned_until``, ``is_owned_still``, cut to the span.
        seen_members: of each member ``client_id``, ``client`` (address), ``first_ts``, ``last_ts``, ``left_ts``
            (null: it was not seen to leave), ``generation``, ``protocols``, ``instance`` (``group.instance.id`` of a
            static member; null: it is none, or its request was not seen).
        rebalances: how it came to its generations.
        lag: cells ``topic``, ``partition``, ``began``, ``ended``, ``lag`` (records), ``lag_seconds``: what was known
            last in a cell holds until the next one; before the first nothing is known.
        gaps: pauses between commits of a member on a partition: ``ts``, ``gap`` (s), the longest of a bucket, with its
            ``topic`` and ``partition``, and ``n``, how many it stands for.
    """

    group: Group
    scope: Scope
    members: list[Member]
    owned: list[dict[str, Any]]
    seen_members: list[dict[str, Any]]
    rebalances: list[Rebalance]
    lag: pa.Table
    gaps: pa.Table

    def label(self, client_id: str | None, member_id: str | None) -> str:
        """What the picture calls a member."""
        return label_of(self.members, client_id, member_id)

    def name(self, client_id: str, member_id: str) -> str:
        """The same, but those who share a colour have names of their own."""
        label = self.label(client_id, member_id)
        return label if label != OTHERS else one_of_many(client_id, member_id)

    @property
    def labels(self) -> list[str]:
        """The labels that are used, in the order of colours."""
        named = list(dict.fromkeys(member.label for member in self.members))
        rows = (*self.owned, *self.seen_members, *self.gaps.to_pylist())
        has_others = any(self.label(row["client_id"], row["member_id"]) == OTHERS for row in rows)
        return [*named, *([OTHERS] if has_others else [])]

    @property
    def partitions(self) -> list[tuple[str, int]]:
        """Topic and partition of all that a picture shows, by name; of very many those with most lag."""
        there = {(row["topic"], row["partition"]) for row in self.owned}
        most: Counter[tuple[str, int]] = Counter(dict.fromkeys(there, 0))
        for row in self.lag.to_pylist():
            place = row["topic"], row["partition"]
            most[place] = max(most[place], row["lag"])
        known = [one for one in most.items() if None not in one[0]]
        return sorted(place for place, _ in sorted(known, key=lambda one: (-one[1], one[0]))[:MOST_PARTITIONS])


def groups(connection: duckdb.DuckDBPyConnection, scope: Scope) -> list[Group]:
    """Groups seen in the span, most first."""
    rows = _ask_parts(connection, _GROUPS, (_OF_TIMELINE, _OF_STATES), scope, most=MOST_GROUPS)
    return [Group(row["cluster"], row["group_id"]) for row in rows]


def _ask_parts(
    connection: duckdb.DuckDBPyConnection, sql: str, parts: tuple[str, ...], scope: Scope, **values: Any
) -> list[dict[str, Any]]:
    """What a query says of all parts together; a young lake may lack the table of one."""
    try:
        return ask_rows(connection, sql.format(parts=" UNION ALL ".join(parts)), scope, **values)
    except NotThereYetError:
        return ask_rows(connection, sql.format(parts=parts[0]), scope, **values)


def group_seen(connection: duckdb.DuckDBPyConnection, scope: Scope, group: Group) -> GroupSeen | None:
    """What was seen of a group; None if nothing was.

    Raises:
        NotThereYetError: there is no timeline.
    """
    bounds = _ask_parts(connection, _SPAN, _SPANS, scope, **group.parameters())[0]
    if bounds["first_ts"] is None:
        return None
    span = Scope(bounds["first_ts"], max(bounds["last_ts"], bounds["first_ts"] + timedelta(seconds=1)), "kafka")
    who = group.parameters()
    owned = rows_if_there(connection, _OWNED, span, **who, most=MOST_OWNED)
    instances = {row["member_id"]: row["instance"] for row in rows_if_there(connection, _INSTANCES, span, **who)}
    seen_members = [
        {**row, "instance": instances.get(row["member_id"]) or None}
        for row in rows_if_there(connection, _MEMBERS, span, **who, most=MOST_OWNED)
    ]
    gaps = ask(connection, _GAPS, span, **who)
    cell = timedelta(microseconds=max(1, -(-int((span.end - span.start) / timedelta(microseconds=1)) // LAG_BUCKETS)))
    return GroupSeen(
        group,
        span,
        members(_by_weight(owned, seen_members, gaps), restarted=restarted_clients(owned)),
        owned,
        seen_members,
        rebalances(connection, span, group.cluster, group.group_id),
        ask(connection, _LAG, span, **who, cell=cell),
        gaps,
    )


def _by_weight(owned: list[dict[str, Any]], seen_members: list[dict[str, Any]], gaps: pa.Table) -> list[Key]:
    """Keys of members: who owned most for longest first, then who committed most, then the others in order of time."""
    weight: Counter[Key] = Counter()
    for row in owned:
        weight[row["client_id"], row["member_id"]] += (row["owned_until"] - row["owned_from"]).total_seconds()
    commits: Counter[Key] = Counter()
    for row in gaps.to_pylist():
        commits[row["client_id"], row["member_id"]] += row["n"]
    first = [key for key, _ in sorted(weight.items(), key=lambda one: (-one[1], one[0]))]
    then = [key for key, _ in sorted(commits.items(), key=lambda one: (-one[1], one[0]))]
    return [*first, *then, *((row["client_id"], row["member_id"]) for row in seen_members)]


def rhythm(connection: duckdb.DuckDBPyConnection, scope: Scope, group: Group, most: int = 500) -> list[dict[str, Any]]:
    """How regularly each member committed each partition; the longest pause first.

    ``usual`` and ``longest`` are seconds between two commits, null where there is one; ``silent`` seconds from the last
    to the end of the span.
    """
    return ask_rows(connection, _RHYTHM, scope, **group.parameters(), most=most)
