"""How well the wire was seen: agents, connections, frames, what was lost, and when the lake was written last."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import duckdb

from pipeline.analysis.tables import IS_LOSS
from pipeline.dashboard.queries.scope import IN_SPAN, Scope, ask_rows
from pipeline.errors import UserError

_SEEN = """
SELECT count(*) AS exchanges, count(DISTINCT connection_id) AS connections,
       list_sort(list(DISTINCT agent_id) FILTER (agent_id IS NOT NULL)) AS agents
FROM silver.exchanges
WHERE date BETWEEN $first_day AND $last_day AND ts BETWEEN $start AND $end
  AND ($protocol IS NULL OR protocol = $protocol)
"""

_FRAMES = """
SELECT count(*) AS frames
FROM bronze.frames
WHERE date BETWEEN $first_day AND $last_day AND ts BETWEEN $start AND $end
  AND ($protocol IS NULL OR protocol = $protocol)
"""

_LOST = f"""
SELECT count(*) AS gaps, coalesce(sum(bytes_lost), 0)::BIGINT AS bytes_lost,
       count(DISTINCT connection_id) AS connections
FROM bronze.gaps
WHERE {IS_LOSS} AND date BETWEEN $first_day AND $last_day AND ts BETWEEN $start AND $end
"""  # noqa: S608 - our own text

# Losses have no server: those of connections that something was read of.
_OF_CONNECTIONS = f"""
  AND connection_id IN (SELECT connection_id FROM silver.exchanges WHERE {IN_SPAN})
"""  # noqa: S608 - our own text

_FILES = "SELECT count(*) AS files FROM ops.landing_files WHERE coalesce(status, 'read') NOT IN ('read', 'erased')"
_WRITTEN = "SELECT max(finished_at) AS written FROM ops.stream_progress"


@dataclass(frozen=True, slots=True)
class Health:
    """What was seen in the span, and how well; None: the lake does not know.

    Attributes:
        agents: names of the capture agents.
        exchanges: rows of ``silver.exchanges``, as the page of exchanges counts them.
        frames: rows of ``bronze.frames``, which are kept for a shorter time.
        gaps, bytes_lost, hurt_connections: what the capture lost, of how many connections.
        unread_files: landing files of any time that were lost, damaged or unreadable.
        written: when the job wrote last, by the wall clock.
    """

    agents: tuple[str, ...] = ()
    connections: int | None = None
    exchanges: int | None = None
    frames: int | None = None
    gaps: int | None = None
    bytes_lost: int = 0
    hurt_connections: int = 0
    unread_files: int = 0
    written: datetime | None = None

    def behind_seconds(self, newest: datetime, now: datetime, live_seconds: float = 600) -> float | None:
        """How far the lake was behind the wire when it was written last; None if it is not being written now.

        Args:
            newest: time of its newest frame.
            now: the wall clock.
            live_seconds: a lake that was written within so long is being written.
        """
        if self.written is None or (now - self.written).total_seconds() > live_seconds:
            return None
        behind = (self.written - newest).total_seconds()
        return behind if 0 <= behind <= live_seconds else None  # else it is an old capture that was read just now


def health(connection: duckdb.DuckDBPyConnection, scope: Scope) -> Health:
    """How well the span was seen, as far as the lake's tables can be read."""
    seen, frames, lost, files, written = (
        _first(connection, sql, scope)
        for sql in (_SEEN, _FRAMES, _LOST + _OF_CONNECTIONS * (scope.cluster is not None), _FILES, _WRITTEN)
    )
    return Health(
        agents=tuple(seen.get("agents") or ()),
        connections=seen.get("connections"),
        exchanges=seen.get("exchanges"),
        frames=frames.get("frames"),
        gaps=lost.get("gaps"),
        bytes_lost=lost.get("bytes_lost") or 0,
        hurt_connections=lost.get("connections") or 0,
        unread_files=files.get("files") or 0,
        written=written.get("written"),
    )


def _first(connection: duckdb.DuckDBPyConnection, sql: str, scope: Scope) -> dict[str, Any]:
    try:
        return ask_rows(connection, sql, scope)[0]
    except UserError:
        return {}
