"""What the picture of a partition's offsets shows: the log, each member's commits, owners, transactions, losses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa

from pipeline.analysis.tables import IS_LOSS
from pipeline.dashboard.queries.progress import partitions
from pipeline.dashboard.queries.progress.held import Hold, Stated, holds
from pipeline.dashboard.queries.progress.members import (
    MEMBERS,
    OTHERS,
    Member,
    label_of,
    label_of_client,
    members,
    restarted_clients,
)
from pipeline.dashboard.queries.progress.partitions import COMMIT_KINDS, HERE, IS_STABLE_STATED, OUTCOMES, ROWS, Place
from pipeline.dashboard.queries.scope import BUCKETS, NotThereYetError, Scope, ask, ask_rows, rows_if_there

POINTS = 1500
"""Commits in one plot."""
CLIENTS = 8
"""Clients whose fetches one plot shows; those that fetch most."""
MOST_MEMBERS = 200
"""Members whose commits are looked at."""
MOST = 300
"""Losses, rebalances, and transactions whose producer is looked for."""

# Of whole days, not of the span: who looks closer finds the same colours.
_COMMITTING = f"""
SELECT coalesce(client_id, '') AS client_id, coalesce(member_id, '') AS member_id,
       count(DISTINCT {OUTCOMES}) AS outcomes
FROM {ROWS}
WHERE date BETWEEN $first_day AND $last_day AND group_id = $group_id AND kind IN {COMMIT_KINDS}
  AND event_offset IS NOT NULL
GROUP BY ALL
ORDER BY count(*) DESC, client_id, member_id
LIMIT $most
"""  # noqa: S608 - our own text

_MOST_US = 2**53
"""More than any time in µs."""
_SHOWN = """
  CASE WHEN list_contains($shown, [client_id, member_id]) THEN [client_id, member_id] END AS member
"""
_COMMITS = f"""
WITH commits AS NOT MATERIALIZED (
  SELECT ts, ordinal, generation, event_offset, error_name, exchange_id, {OUTCOMES} AS outcome,
    coalesce(client_id, '') AS client_id, coalesce(member_id, '') AS member_id,
    -- Least is the first of the least offsets, greatest the last of the greatest: a number is faster than a pair.
    event_offset::HUGEINT * {_MOST_US} + epoch_us(ts) AS place
  FROM {ROWS}
  WHERE {HERE} AND group_id = $group_id AND kind IN {COMMIT_KINDS} AND event_offset IS NOT NULL
),
-- Of each moment, member and outcome the least and the greatest offset: what falls back is seen at any width.
ends_of_each AS (
  SELECT client_id, member_id, outcome, time_bucket($bucket, ts, $start) AS bucket, count(*) AS n,
         min(place) AS least, max(place) AS greatest
  FROM commits GROUP BY ALL
),
ends AS (
  SELECT {_SHOWN}, outcome, bucket, sum(n)::BIGINT AS n, min(least) AS least, max(greatest) AS greatest
  FROM ends_of_each GROUP BY ALL
),
kept AS MATERIALIZED (
  SELECT member, outcome, n, least AS place FROM ends
  UNION
  SELECT member, outcome, n, greatest FROM ends
),
found AS (
  SELECT c.* EXCLUDE (client_id, member_id), k.n, k.member AS wanted, {_SHOWN}
  FROM commits AS c JOIN kept AS k
    ON k.place = c.place AND k.outcome = c.outcome
    -- So that of other rows the time alone is read. An offset may be -1.
    AND c.ts = make_timestamptz(((k.place % {_MOST_US} + {_MOST_US}) % {_MOST_US})::BIGINT)
)
SELECT ts, member[1] AS client_id, member[2] AS member_id, outcome, event_offset AS value,
       max(n) AS n, min(ordinal) AS ordinal, arg_min(generation, ordinal) AS generation,
       arg_min(error_name, ordinal) AS error_name, arg_min(exchange_id, ordinal) AS exchange_id
FROM found WHERE member IS NOT DISTINCT FROM wanted
GROUP BY ts, member, outcome, event_offset
ORDER BY ts, min(ordinal)
"""  # noqa: S608 - our own text

_POSITIONS = f"""
WITH fetched AS (
  SELECT coalesce(client_id, '') AS client_id, max(ts) AS ts, arg_max(fetch_position, (ts, ordinal)) AS value,
         count(*) AS n
  FROM {ROWS}
  WHERE {HERE} AND group_id = $group_id AND kind IN ('fetched', 'fetch_rejected') AND fetch_position IS NOT NULL
  GROUP BY coalesce(client_id, ''), time_bucket($bucket, ts, $start)
)
SELECT client_id, ts, value FROM fetched
WHERE client_id IN (SELECT client_id FROM fetched GROUP BY client_id ORDER BY sum(n) DESC, client_id LIMIT $clients)
ORDER BY client_id, ts
"""  # noqa: S608 - our own text

_STATED = f"""
WITH stated AS (
  SELECT ts, ordinal, last_stable_offset, last_stable_high_watermark AS high_watermark,
         time_bucket($bucket, ts, $start) AS bucket
  FROM {ROWS}
  -- Both from one response: what is known from elsewhere of the end of the log says nothing of open transactions.
  WHERE {HERE} AND {IS_STABLE_STATED} AND last_stable_high_watermark IS NOT NULL AND last_stable_offset IS NOT NULL
),
-- A bucket that has several is shown open if one of them is: a transaction that lasts a moment is seen at any width.
last AS (
  SELECT arg_max({{'ts': ts, 'low': last_stable_offset, 'high': high_watermark}},
                 (last_stable_offset < high_watermark, ts, ordinal)) AS s
  FROM stated GROUP BY bucket
)
SELECT s.ts AS ts, s.low AS last_stable_offset, s.high AS high_watermark FROM last ORDER BY ts
"""  # noqa: S608 - our own text

_PRODUCERS = """
WITH opened AS (
  SELECT base_offset, min(producer_id) AS producer_id
  FROM silver.record_batches
  WHERE date BETWEEN $since_day AND $last_day AND cluster = $cluster AND (topic = $topic OR topic_id = $topic)
    AND partition = $partition AND is_transactional AND NOT coalesce(is_control, false)
    AND base_offset IN (SELECT unnest($offsets))
  GROUP BY base_offset
),
producers AS (
  SELECT producer_id, arg_max(transactional_id, last_ts) AS transactional_id, arg_max(client_id, last_ts) AS client_id
  FROM silver.transactions WHERE cluster = $cluster AND first_ts <= $end GROUP BY producer_id
)
SELECT o.base_offset, o.producer_id, p.transactional_id, p.client_id
FROM opened AS o LEFT JOIN producers AS p ON p.producer_id = o.producer_id
"""

# A member of generation 3 is notified of the rebalance that makes generation 4.
_REBALANCES = """
WITH stated AS (
  SELECT CASE WHEN kind = 'heartbeat' THEN generation + 1 ELSE generation END AS generation, member_id, kind,
         min(ts) AS ts
  FROM silver.state_events
  WHERE date BETWEEN $first_day AND $last_day AND ts BETWEEN $start AND $end AND cluster = $cluster
    AND group_id = $group_id AND group_protocol = 'classic'
    AND (kind IN ('join', 'assignment') AND error_code = 0
         OR kind = 'heartbeat' AND error_name = 'REBALANCE_IN_PROGRESS')
  GROUP BY ALL
)
SELECT generation, min(ts) AS began, max(ts) FILTER (kind = 'assignment') AS ended,
       count(DISTINCT member_id) FILTER (kind = 'join') AS members
FROM stated WHERE generation > 0
GROUP BY generation HAVING count(*) FILTER (kind = 'assignment') > 0
ORDER BY began LIMIT $most
"""

_HAS_GAPS = f"""
SELECT count(*) AS n FROM bronze.gaps
WHERE {IS_LOSS} AND date BETWEEN $first_day AND $last_day AND ts BETWEEN $start AND $end
"""  # noqa: S608 - our own text

_LOSSES = f"""
WITH gaps AS (
  SELECT connection_id, direction, ts, bytes_lost FROM bronze.gaps
  WHERE {IS_LOSS} AND date BETWEEN $first_day AND $last_day AND ts BETWEEN $start AND $end
),
concerned AS (
  SELECT connection_id FROM silver.exchanges
  WHERE date BETWEEN $first_day AND $last_day AND connection_id IN (SELECT connection_id FROM gaps)
    AND exchange_id IN (SELECT exchange_id FROM {ROWS} WHERE {HERE})
  UNION
  SELECT connection_id FROM silver.state_events
  WHERE date BETWEEN $first_day AND $last_day AND ts BETWEEN $start AND $end AND cluster = $cluster
    AND group_id = $group_id
)
SELECT min(ts) AS began, max(ts) AS ended, TRY_CAST(sum(bytes_lost) AS BIGINT) AS bytes_lost, count(*) AS losses,
       count(DISTINCT connection_id) AS connections
FROM gaps WHERE connection_id IN (SELECT connection_id FROM concerned)
GROUP BY time_bucket($bucket, ts, $start)
ORDER BY began LIMIT $most
"""  # noqa: S608 - our own text


@dataclass(frozen=True, slots=True)
class Offsets:
    """All that one picture shows.

    Attributes:
        place: the partition and group.
        scope: the span in which something was seen of the partition.
        members: those who are distinguished, most commits first.
        lines: as :func:`pipeline.dashboard.queries.progress.partitions.lines`.
        positions: how far each client has fetched: ``client_id``, ``ts``, ``value``; the last of a bucket.
        commits: ``ts``, ``client_id``, ``member_id`` (both null: of the others), ``generation``, ``outcome`` (accepted,
            rejected, pending in a transaction, aborted with it), ``value``, ``error_name``, ``exchange_id``, and ``n``,
            how many there are of that member and outcome in the bucket that the point stands for.
        owners: as :func:`pipeline.dashboard.queries.progress.partitions.owners`.
        held: when a transaction held the last stable offset back.
        rebalances: ``generation``, ``began``, ``ended``, ``members``; of the classic protocol, which has such.
        losses: ``began``, ``ended``, ``bytes_lost``, ``losses``, ``connections`` of those that spoke of it.
    """

    place: Place
    scope: Scope
    members: list[Member]
    lines: pa.Table
    positions: pa.Table
    commits: pa.Table
    owners: list[dict[str, Any]]
    held: list[Hold]
    rebalances: list[dict[str, Any]]
    losses: list[dict[str, Any]]

    def label(self, client_id: str | None, member_id: str | None) -> str:
        """What the picture calls a member."""
        return label_of(self.members, client_id, member_id)

    def label_of_client(self, client_id: str) -> str:
        """What it calls whoever fetches under this client id."""
        return label_of_client(self.members, client_id)

    @property
    def labels(self) -> list[str]:
        """The labels that are used, in the order of colours."""
        used = list(dict.fromkeys(member.label for member in self.members))
        shared = {self.label(row["client_id"], row["member_id"]) for row in (*self.commits.to_pylist(), *self.owners)}
        shared |= {self.label_of_client(client) for client in self.positions.column("client_id").to_pylist()}
        return [*used, *([OTHERS] if OTHERS in shared else [])]


def offsets(connection: duckdb.DuckDBPyConnection, scope: Scope, place: Place) -> Offsets | None:
    """What was seen of a partition and a group; None if nothing was.

    Raises:
        NotThereYetError: there is no timeline.
    """
    span = partitions.span(connection, scope, place)
    if span is None:
        return None
    owned = _if_there(connection, span, place) if place.group_id else []
    committing = committing_members(connection, span, place)
    owning = [(row["client_id"], row["member_id"]) for row in owned]
    shown = members([*committing, *owning], restarted=restarted_clients(owned))
    return Offsets(
        place,
        span,
        shown,
        partitions.lines(connection, span, place),
        positions(connection, span, place),
        commits(connection, span, place, shown, series=max(1, sum(list(committing.values())[: MEMBERS + 1]))),
        owned,
        held(connection, span, place),
        rebalances(connection, span, place),
        losses(connection, span, place),
    )


def _if_there(connection: duckdb.DuckDBPyConnection, span: Scope, place: Place) -> list[dict[str, Any]]:
    try:
        return partitions.owners(connection, span, place)
    except NotThereYetError:
        return []


def committing_members(connection: duckdb.DuckDBPyConnection, scope: Scope, place: Place) -> dict[tuple[str, str], int]:
    """Client and member ids of those who committed on the days of the span, most commits first.

    Each with how many outcomes it had. More than are distinguished: members of one client may share a colour.
    """
    found = ask_rows(connection, _COMMITTING, scope, **place.parameters(), most=MOST_MEMBERS)
    return {(row["client_id"], row["member_id"]): row["outcomes"] for row in found}


def commits(
    connection: duckdb.DuckDBPyConnection, scope: Scope, place: Place, shown: list[Member], series: int
) -> pa.Table:
    """Commits as points, see :class:`Offsets`; of many in a bucket the least and greatest offset of a member.

    Args:
        connection: of the lake.
        scope: the span.
        place: the partition and group.
        shown: who is distinguished.
        series: members and outcomes that are drawn; the more, the wider a bucket.
    """
    wider = max(1, -(-2 * BUCKETS * series // POINTS))  # else the picture would have to be cut somewhere
    keys = [[member.client_id, member.member_id] for member in shown] or [["", ""]]
    return ask(connection, _COMMITS, scope, **place.parameters(), shown=keys, bucket=wider * scope.bucket)


def positions(connection: duckdb.DuckDBPyConnection, scope: Scope, place: Place) -> pa.Table:
    """How far each client of the group has fetched: ``client_id``, ``ts``, ``value``; the last of a bucket."""
    return ask(connection, _POSITIONS, scope, **place.parameters(), clients=CLIENTS)


def held(connection: duckdb.DuckDBPyConnection, scope: Scope, place: Place) -> list[Hold]:
    """When a transaction held the last stable offset back, and whose it was; the longest of very many are named."""
    found = holds([Stated(**row) for row in ask_rows(connection, _STATED, scope, **place.parameters())])
    wanted = sorted(found, key=lambda hold: -hold.seconds)[:MOST]
    if not wanted:
        return found
    try:
        rows = ask_rows(
            connection, _PRODUCERS, scope, **place.parameters(), offsets=[hold.last_stable_offset for hold in wanted]
        )
    except NotThereYetError:
        return found
    known = {row.pop("base_offset"): row for row in rows}
    return [
        hold.named(**known[hold.last_stable_offset]) if hold.last_stable_offset in known else hold for hold in found
    ]


def rebalances(connection: duckdb.DuckDBPyConnection, scope: Scope, place: Place) -> list[dict[str, Any]]:
    """Rebalances of the group that were seen: from the first word of it to the last member's assignment."""
    if not place.group_id:
        return []
    return rows_if_there(connection, _REBALANCES, scope, most=MOST, **place.parameters())


def losses(connection: duckdb.DuckDBPyConnection, scope: Scope, place: Place) -> list[dict[str, Any]]:
    """What the capture lost of connections that spoke of the partition, or in the name of its group."""
    try:
        if not ask_rows(connection, _HAS_GAPS, scope)[0]["n"]:
            return []
        return ask_rows(connection, _LOSSES, scope, **place.parameters(), most=MOST)
    except NotThereYetError:
        return []
