"""The groups in a rebalance that had not ended when the data did, for :mod:`slow_rebalance`.

What is reported of a rebalance that is over comes from answered joins. While it lasts there are members that
are asked to rejoin (REBALANCE_IN_PROGRESS) and continue with their work, and joins that wait for their answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from decoder.fields import natural, parsed, text
from decoder.kafka.apis import ApiKey, KafkaError
from pipeline.analysis.rules.format import host_of
from pipeline.analysis.rules.kinds import kinds
from pipeline.analysis.rules.model import Sources
from pipeline.analysis.tables import ADDRESS, Row

_BEFORE_US = 600_000_000
"""From so long before the end of what was seen of a cluster heartbeats are looked at."""
_AT_LONGEST = 1.5
"""Of the longest rebalance timeout: a join that waits for longer has lost its connection, unseen."""
_UNKNOWN_LIMIT_US = 300_000_000
"""``max.poll.interval.ms`` by default."""


class Waiting(NamedTuple):
    """A JoinGroup without an answer. Times are µs.

    Attributes:
        member: its id; empty: it is new.
        limit_us: the rebalance timeout that it states.
    """

    member: str
    client_id: str | None
    host: str
    asked_us: int
    exchange_id: str
    limit_us: int = 0


@dataclass(frozen=True, slots=True)
class HeldUp:
    """A group that stands still. Times are µs since the epoch.

    Attributes:
        begun_us: when the rebalance was seen to begin.
        member, client_id, host: whom it waits for.
        is_silent: that one sends nothing; else it sends heartbeats.
        last_seen_us: its last heartbeat or join.
        last_us: when it was seen last that the rebalance continues.
        waiting: members that wait; 0: no other member was captured, and somebody made the group rebalance.
        evidence: exchange ids.
    """

    begun_us: int
    member: str
    client_id: str | None
    host: str
    is_silent: bool
    last_seen_us: int
    last_us: int
    waiting: int
    evidence: tuple[str, ...]


_MEMBERS = f"""
    WITH answered AS (
        SELECT exchange_id, epoch_us(request_ts) AS asked_us FROM exchanges
        WHERE protocol = 'kafka' AND api_key = {int(ApiKey.JOIN_GROUP)}
    ), classic AS (
        SELECT cluster, group_id, kind, member_id, generation, client_id, client, exchange_id, ordinal,
            epoch_us(ts) AS us, coalesce(error_code, 0) AS error_code
        FROM states
        WHERE kind IN ('join', 'heartbeat', 'leave') AND group_protocol = 'classic' AND member_id <> ''
    ), rejoining AS (
        SELECT DISTINCT cluster, group_id FROM (
            SELECT cluster, group_id, arg_max(error_code, us) AS code FROM classic WHERE kind = 'heartbeat'
            GROUP BY cluster, group_id, member_id
        ) WHERE code = {int(KafkaError.REBALANCE_IN_PROGRESS)}
    )
    SELECT classic.*, coalesce(asked_us, us) AS asked_us FROM classic LEFT JOIN answered USING (exchange_id) SEMI JOIN (
        SELECT cluster, group_id FROM rejoining
        UNION ALL SELECT unnest($clusters) AS cluster, unnest($groups) AS group_id
    ) USING (cluster, group_id)
    LEFT JOIN (
        SELECT unnest($ended::VARCHAR[]) AS cluster, unnest($ends_us::BIGINT[]) AS end_us
    ) AS ends ON ends.cluster = classic.cluster
    WHERE kind <> 'heartbeat' OR end_us IS NULL OR us >= end_us - $before_us
    ORDER BY cluster, group_id, us, exchange_id, ordinal
"""
"""What members did of groups in which somebody was asked to rejoin at last, or waits for its answer."""
ASKED_TO_REJOIN = "heartbeat", int(KafkaError.REBALANCE_IN_PROGRESS)
"""Kind and error code of states: heartbeats that asked a member to rejoin."""
_WAITING = f"""
    SELECT {ADDRESS["server"]} AS server, {ADDRESS["client"]} AS client, client_id, exchange_id,
        epoch_us(request_ts) AS us, request_body
    FROM waiting
    WHERE protocol = 'kafka' AND api_key = {int(ApiKey.JOIN_GROUP)} AND request_body IS NOT NULL
    QUALIFY row_number() OVER (
        PARTITION BY flow_id, coalesce(correlation_id::VARCHAR, exchange_id) ORDER BY us, exchange_id
    ) = 1
    ORDER BY us, exchange_id
"""
"""Each once: of a connection that two agents saw, nothing may be whole that would show which copy counts."""


def waiting_joins(sources: Sources) -> dict[tuple[str, str], list[Waiting]]:
    """By cluster and group the joins that had no answer when the data ended."""
    found: dict[tuple[str, str], list[Waiting]] = {}
    for row in sources.tables.rows(_WAITING):
        body = parsed(row.request_body)
        limit_us = (natural(body, "rebalanceTimeoutMs") or 0) * 1000
        one = Waiting(
            text(body, "memberId") or "", row.client_id, host_of(row.client), row.us, row.exchange_id or "", limit_us
        )  # fmt: skip
        found.setdefault((sources.catalog.cluster_at(row.server, row.us), text(body, "groupId") or ""), []).append(one)
    return found


def members_of(sources: Sources, joins: Iterable[tuple[str, str]]) -> dict[tuple[str, str], list[Row]]:
    """By cluster and group what members did lately, in the order of time, of groups that may stand still."""
    places = sorted(joins)
    if not places and ASKED_TO_REJOIN not in kinds(sources).states:
        return {}
    ends = sources.ends
    rows = sources.tables.rows(
        _MEMBERS, clusters=[cluster for cluster, _ in places], groups=[group for _, group in places],
        ended=list(ends), ends_us=list(ends.values()), before_us=_BEFORE_US,
    )  # fmt: skip
    found: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        found.setdefault((row.cluster, row.group_id), []).append(row)
    return found


def held_up(rows: Sequence[Row], joins: Iterable[Waiting], end_us: int) -> HeldUp | None:
    """The rebalance in which a group is; None: there is none, or no known member is waited for.

    Args:
        rows: of members, in the order of time.
        joins: that had no answer.
        end_us: the end of the data.
    """
    over_us = max((row.us for row in rows if _is_in(row)), default=0)
    rejoining: dict[str, list[Row]] = {}
    last: dict[str, Row] = {}
    gone: set[str] = set()
    for row in rows:
        if row.kind == "leave":
            gone.add(row.member_id)
        elif row.error_code in (0, KafkaError.REBALANCE_IN_PROGRESS):
            last[row.member_id] = row
            if row.error_code and row.us > over_us:
                rejoining.setdefault(row.member_id, []).append(row)
    joins = [one for one in joins if one.asked_us >= over_us]
    longest_us = _AT_LONGEST * max((one.limit_us or _UNKNOWN_LIMIT_US for one in joins), default=0)
    waits = {one.member or one.exchange_id: one for one in joins if end_us - one.asked_us <= longest_us}
    signs = [*(some[0].us for some in rejoining.values()), *(one.asked_us for one in waits.values())]
    if not signs:
        return None
    begun_us = min(signs)
    busy = [member for member in rejoining if member not in waits and member not in gone]
    silent = [
        member
        for member in _newest(last, rows)
        if member not in rejoining and member not in waits and member not in gone and last[member].us <= begun_us
    ]
    # Of members that wait the capture may not show the joins: they have fallen silent, as those do that wait.
    culprits = busy or (silent if waits else [])
    others = len(waits) or len([member for member in silent if member not in culprits])
    if not culprits or not (others or last.keys() == set(culprits)):
        return None
    member = max(culprits, key=lambda name: (last[name].us, name))
    row, answers = last[member], rejoining.get(member, [])
    last_us = end_us if waits else answers[-1].us
    if not others and last_us - begun_us < _UNKNOWN_LIMIT_US:
        return None  # whoever else is in the group was not captured; a lone member that works on holds no other up
    evidence = [*(one.exchange_id for one in waits.values()), *(each.exchange_id for each in answers)]
    return HeldUp(
        begun_us, member, row.client_id, host_of(row.client), member not in rejoining, row.us, last_us, others,
        tuple(one for one in evidence if one) or (row.exchange_id,),
    )  # fmt: skip


def _is_in(row: Row) -> bool:
    """Whether the coordinator answered as it does outside of a rebalance."""
    return row.kind in ("join", "heartbeat") and row.error_code == 0


def _newest(last: Mapping[str, Row], rows: Iterable[Row]) -> list[str]:
    """Who is of the newest generation, or was seen since: the coordinator waits for none of those before.

    Args:
        last: what each member did last.
        rows: of members.
    """
    joined_us = max((row.us for row in rows if row.kind == "join" and row.error_code == 0), default=None)
    generation = max(last.values(), key=lambda row: row.us).generation if last else None
    return [
        member
        for member, row in last.items()
        if row.generation == generation or (joined_us is not None and row.us >= joined_us)
    ]
