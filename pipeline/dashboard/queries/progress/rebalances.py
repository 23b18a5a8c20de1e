"""How a group came to each generation: who asked when, how long each waited, and who was waited for.

Of the classic protocol from JoinGroup: the coordinator answers no one before all members that it knows have asked, or
their time is up. In the consumer protocol (KIP-848) no member waits for others; there a generation is an epoch that
members reach one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from types import SimpleNamespace
from typing import Any

import duckdb

from decoder.kafka.apis import ApiKey
from pipeline.analysis.rules.kafka.rebalances.slow_rebalance import Late, Round, rounds, waited_for
from pipeline.dashboard.queries.scope import NotThereYetError, Scope, ask_rows

MOST = 300
"""Rebalances that are shown: the last ones."""
_EPOCH = datetime.fromtimestamp(0, timezone.utc)
_LATE_SHARE = 0.5
"""Whoever asks in the first half of the wait is not the one that is waited for."""
_IN_SPAN = """
  date BETWEEN $first_day AND $last_day AND ts BETWEEN $start AND $end AND cluster = $cluster AND group_id = $group_id
"""

# Of very many heartbeats those that announce a rebalance, and of each member the last of a bucket.
_ROWS = f"""
WITH statements AS (
  SELECT kind, member_id, generation, client_id, client, exchange_id, ordinal, ts, coalesce(error_code, 0) AS error_code
  FROM silver.state_events
  WHERE {_IN_SPAN} AND kind IN ('join', 'heartbeat', 'leave') AND group_protocol = 'classic' AND member_id <> ''
),
kept AS (
  SELECT * FROM statements WHERE kind <> 'heartbeat' OR error_code <> 0
  UNION
  SELECT unnest(arg_max(statements, ts)) FROM statements WHERE kind = 'heartbeat'
  GROUP BY member_id, time_bucket($bucket, ts, $start)
),
asked AS (
  SELECT exchange_id, epoch_us(request_ts) AS asked_us FROM silver.exchanges
  WHERE date BETWEEN $first_day - INTERVAL 1 DAY AND $last_day AND protocol = 'kafka'
    AND api_key = {ApiKey.JOIN_GROUP}
    AND exchange_id IN (SELECT exchange_id FROM kept WHERE kind = 'join')
)
SELECT k.*, epoch_us(k.ts) AS us, coalesce(a.asked_us, epoch_us(k.ts)) AS asked_us
FROM kept AS k LEFT JOIN asked AS a ON a.exchange_id = k.exchange_id
ORDER BY us, k.exchange_id, k.ordinal
"""  # noqa: S608 - our own text

_SYNCED = f"""
SELECT generation, max(ts) AS ended FROM (
  SELECT generation, member_id, min(ts) AS ts FROM silver.state_events
  WHERE {_IN_SPAN} AND kind = 'assignment' AND group_protocol = 'classic' AND error_code = 0
  GROUP BY generation, member_id
) GROUP BY generation
"""  # noqa: S608 - our own text

_EPOCHS = f"""
SELECT protocol, generation, min(first) AS began, max(first) AS ended, count(*)::INT AS members FROM (
  SELECT group_protocol AS protocol, generation, member_id, min(ts) AS first FROM silver.state_events
  WHERE {_IN_SPAN} AND kind IN ('assignment', 'heartbeat') AND group_protocol <> 'classic' AND error_code = 0
    AND generation > 0
  GROUP BY ALL
)
GROUP BY ALL ORDER BY generation, protocol
"""  # noqa: S608 - our own text


@dataclass(frozen=True, slots=True)
class Wait:
    """A member's JoinGroup, from when it was sent until it was answered."""

    member_id: str
    client_id: str
    asked: datetime
    answered: datetime

    @property
    def seconds(self) -> float:
        """How long it waited."""
        return (self.answered - self.asked).total_seconds()


@dataclass(frozen=True, slots=True)
class Rebalance:
    """How a group came to a generation.

    Attributes:
        protocol: as in ``silver.state_events``: classic, consumer, share or streams.
        generation: of the group, or the epoch of its members.
        began: the first word of it: somebody asked to join, or reached the epoch.
        ended: the last member had its assignment, as far as that was seen.
        waits: of its members, the first to ask first; empty where members join by heartbeats.
        members: that took part.
        culprit: client id and member id of who was waited for; None if it is no member: the coordinator itself waits,
            as for the first members of a group (``group.initial.rebalance.delay.ms``), or no one waited for long.
        why: in words, what the culprit did; empty without one.
    """

    protocol: str
    generation: int
    began: datetime
    ended: datetime
    waits: tuple[Wait, ...]
    members: int
    culprit: tuple[str, str] | None = None
    why: str = ""

    @property
    def seconds(self) -> float:
        """From its begin to its end."""
        return (self.ended - self.began).total_seconds()

    @property
    def waited(self) -> float:
        """Seconds of all members together in which they waited for an answer."""
        return sum(wait.seconds for wait in self.waits)


def rebalances(connection: duckdb.DuckDBPyConnection, scope: Scope, cluster: str, group_id: str) -> list[Rebalance]:
    """The rebalances of a group in the span, the last ``MOST``, in order of time; none of a young lake."""
    who = {"cluster": cluster, "group_id": group_id}
    try:
        rows = [SimpleNamespace(**row) for row in ask_rows(connection, _ROWS, scope, **who)]
        synced = {row["generation"]: row["ended"] for row in ask_rows(connection, _SYNCED, scope, **who)}
        epochs = ask_rows(connection, _EPOCHS, scope, **who)
    except NotThereYetError:
        return []
    found = classic_rebalances(rows, synced)
    found += [
        Rebalance(row["protocol"], row["generation"], row["began"], row["ended"], (), row["members"]) for row in epochs
    ]
    return sorted(found, key=lambda one: (one.began, one.generation))[-MOST:]


def classic_rebalances(rows: Sequence[Any], synced: dict[int, datetime]) -> list[Rebalance]:
    """Rebalances of the classic protocol.

    Args:
        rows: joins, heartbeats and leaves of one group in order of time, with ``kind``, ``member_id``, ``generation``,
            ``client_id``, ``client``, ``exchange_id``, ``error_code``, ``us`` and ``asked_us``.
        synced: by generation, when the last member got its assignment.
    """
    seen = rounds(rows)
    found = []
    for before, one in zip([None, *seen], seen, strict=False):
        waits = tuple(
            Wait(member, one.named[member][0] or "", _time(asked), _time(answered))
            for member, (asked, answered) in sorted(one.joins.items(), key=lambda item: item[1])
        )
        ended = max(_time(one.last_us), synced.get(one.generation, _time(one.last_us)))
        culprit, why = _culprit(one, waited_for(one, before, rows))
        began = _time(one.first_us)
        found.append(Rebalance("classic", one.generation, began, ended, waits, len(waits), culprit, why))
    return found


def _culprit(one: Round, late: Late | None) -> tuple[tuple[str, str] | None, str]:
    if late is not None:
        who = late.client_id or "", late.member
        if late.is_silent:
            return who, "was silent and had not left"
        return who, "continued with its work" + (" and asked late" if late.rejoined_us else " and did not ask")
    member, (asked, _) = max(one.joins.items(), key=lambda item: (item[1][0], item[0]))
    if len(one.joins) > 1 and asked - one.first_us >= _LATE_SHARE * (one.last_us - one.first_us) > 0:
        return (one.named[member][0] or "", member), "asked last"
    return None, ""


def _time(us: int) -> datetime:
    return _EPOCH + timedelta(microseconds=us)
