"""Which part of the lake proves a finding or an incident? A partition or group over time, losses, or a connection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import duckdb

from pipeline.dashboard.queries.overview.losses import Losses, losses
from pipeline.dashboard.queries.progress.groups import Group, GroupSeen, group_seen
from pipeline.dashboard.queries.progress.offsets import Offsets, offsets
from pipeline.dashboard.queries.progress.partitions import Place
from pipeline.dashboard.queries.scope import Scope, widened
from pipeline.dashboard.queries.traffic.exchanges import one
from pipeline.dashboard.queries.traffic.sequence import Around, around
from pipeline.dashboard.queries.traffic.steps import Connection, sequence

_CAPTURE_LOSS = "capture_loss"
"""The one rule that is about the capture, not about what went over the wire."""
_AROUND = 1.5
"""What is shown is so many times as long as what it proves, so that what was before it is seen."""
_EXCHANGES = 12
"""Of a connection."""


@dataclass(frozen=True, slots=True)
class ConnectionSeen:
    """What was exchanged on a connection.

    Attributes:
        part: its exchanges and losses around the one that shows it.
        steps: the same in order of time.
        exchange_id: the one that shows it.
    """

    part: Around
    steps: Connection
    exchange_id: str


def proof(
    connection: duckdb.DuckDBPyConnection, row: dict[str, Any], evidence: Sequence[str]
) -> Offsets | GroupSeen | Losses | ConnectionSeen | None:
    """What to look at, the clearest that the lake has; None if it has nothing.

    Args:
        connection: to the lake.
        row: of ``gold.findings`` or ``gold.incidents``.
        evidence: ids of exchanges that show it.

    Raises:
        NotThereYetError: a table is missing.
    """
    scope = widened(Scope(row["first_ts"], row["last_ts"], "kafka"), _AROUND)
    found: Offsets | GroupSeen | Losses | ConnectionSeen | None = None
    if row["rule"] == _CAPTURE_LOSS:
        return losses(connection, scope, row["subject"])
    if row["topic"] is not None and row["partition"] is not None:
        found = offsets(connection, scope, Place(row["cluster"], row["topic"], row["partition"], row["group_id"] or ""))
    if found is None and row["group_id"]:
        found = group_seen(connection, scope, Group(row["cluster"], row["group_id"]))
        if found is not None and not found.seen_members:
            found = None
    return found or _connection_seen(connection, row, evidence)


def _connection_seen(
    connection: duckdb.DuckDBPyConnection, row: dict[str, Any], evidence: Sequence[str]
) -> ConnectionSeen | None:
    exchange = one(connection, evidence[0], row["first_ts"]) if evidence else None
    if exchange is None:
        return None
    part = around(connection, exchange["connection_id"], exchange["ts"], _EXCHANGES)
    steps = sequence(part.exchanges, part.losses)
    return ConnectionSeen(part, steps, evidence[0]) if steps.steps else None
