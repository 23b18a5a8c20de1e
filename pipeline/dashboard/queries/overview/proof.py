"""The part of the lake that proves a finding or an incident.

A partition, a share-partition or a group over time, what was lost, or a connection with the exchanges that show it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import duckdb

from pipeline.analysis.rules.kafka.share_groups.share_states import SharePlace
from pipeline.analysis.rules.rule import rule_named
from pipeline.dashboard.queries.overview.losses import Losses, losses
from pipeline.dashboard.queries.progress.groups import Group, GroupSeen, group_seen
from pipeline.dashboard.queries.progress.offsets import Offsets, offsets
from pipeline.dashboard.queries.progress.partitions import Place
from pipeline.dashboard.queries.progress.shares import Shares, SharesSeen, held, shares, shares_seen
from pipeline.dashboard.queries.scope import Scope, widened
from pipeline.dashboard.queries.traffic.exchanges import one
from pipeline.dashboard.queries.traffic.sequence import Around, around
from pipeline.dashboard.queries.traffic.steps import Connection, sequence
from pipeline.errors import UserError

_AROUND = 1.5
"""What is shown is so many times as long as what it proves, so that what was before it is seen."""
_EXCHANGES, _FEW = 12, 6
"""Of a connection, and of each of two."""


@dataclass(frozen=True, slots=True)
class ConnectionSeen:
    """What was exchanged on a connection.

    Attributes:
        part: its exchanges and losses around the one that shows it.
        steps: the same in order of time.
        exchange_id: the one that shows it, the first if several do.
        evidence: ids of all that show it, on this connection or another.
        then: another connection, where it takes two to show it.
    """

    part: Around
    steps: Connection
    exchange_id: str
    evidence: frozenset[str]
    then: ConnectionSeen | None = None

    @property
    def all(self) -> list[ConnectionSeen]:
        """This one, and the other if there is one."""
        return [self, *(self.then.all if self.then else ())]


Proof = Offsets | SharesSeen | GroupSeen | Losses | ConnectionSeen


def proof(connection: duckdb.DuckDBPyConnection, row: dict[str, Any], evidence: Sequence[str]) -> Proof | None:
    """What to look at, the clearest that the lake has; None if it has nothing.

    Args:
        connection: to the lake.
        row: of ``gold.findings`` or ``gold.incidents``.
        evidence: ids of exchanges that show it.

    Raises:
        NotThereYetError: a table is missing.
    """
    scope = widened(Scope(row["first_ts"], row["last_ts"], "kafka"), _AROUND)
    shown_by = rule_named(row["rule"]).shown_by
    if shown_by.what == "losses":
        return losses(connection, scope, row["subject"])
    if shown_by.what == "requests" and (asked := _connection_seen(connection, row, evidence)):
        return asked
    return _over_time(connection, scope, row) or _connection_seen(connection, row, evidence)


def parts_of_group(rule: str) -> tuple[str, ...]:
    """Names of the parts of a group's picture that show what a finding of this rule is about."""
    return ("owners", "waits", *(("lag",) if rule_named(rule).shown_by.is_of_lag else ()))


def _over_time(
    connection: duckdb.DuckDBPyConnection, scope: Scope, row: dict[str, Any]
) -> Offsets | SharesSeen | GroupSeen | None:
    """The share-partition, partition or group that it is about."""
    is_of_records = rule_named(row["rule"]).shown_by.is_of_records
    if is_of_records and row["group_id"] and (shared := _share_seen(connection, scope, row)):
        return shared
    if row["topic"] is not None and row["partition"] is not None:
        place = Place(row["cluster"], row["topic"], row["partition"], row["group_id"] or "")
        if found := offsets(connection, scope, place):
            return found
    group = group_seen(connection, scope, Group(row["cluster"], row["group_id"])) if row["group_id"] else None
    return group if group is not None and group.seen_members else None


def _share_seen(connection: duckdb.DuckDBPyConnection, scope: Scope, row: dict[str, Any]) -> SharesSeen | None:
    """Of a share group's partitions that it is about the one with the most unacknowledged records."""
    try:
        known = shares(connection, scope)
    except UserError:  # exchanges lack, or cannot be read: a group that commits offsets is shown all the same
        return None
    there = [
        place
        for place in sorted(known.delivered)
        if (place.cluster, place.group) == (row["cluster"], row["group_id"])
        and row["topic"] in (None, place.topic)
        and row["partition"] in (None, place.partition)
    ]
    worst = max(there, key=lambda place: _unanswered(known, place, scope), default=None)
    return shares_seen(connection, scope, known, worst, until=row["last_ts"]) if worst else None


def _unanswered(known: Shares, place: SharePlace, scope: Scope) -> int:
    ended = held(known.delivered[place], scope.end)
    return sum(one.last - one.first + 1 for one in ended if one.how in ("held", "lock ran out"))


def _connection_seen(
    connection: duckdb.DuckDBPyConnection, row: dict[str, Any], evidence: Sequence[str]
) -> ConnectionSeen | None:
    if rule_named(row["rule"]).shown_by.is_on_two_connections:
        first, second = (_part_of_connection(connection, row, some, _FEW) for some in (evidence[:2], evidence[1:2]))
        if first and second and first.part.ends != second.part.ends:
            return replace(first, then=second)
    return _part_of_connection(connection, row, evidence, _EXCHANGES)


def _part_of_connection(
    connection: duckdb.DuckDBPyConnection, row: dict[str, Any], evidence: Sequence[str], most: int
) -> ConnectionSeen | None:
    """Around the first of the evidence."""
    exchange = one(connection, evidence[0], row["first_ts"]) if evidence else None
    if exchange is None:
        return None
    part = around(connection, exchange["connection_id"], exchange["ts"], most)
    steps = sequence(part.exchanges, part.losses)
    return ConnectionSeen(part, steps, evidence[0], frozenset(evidence)) if steps.steps else None
