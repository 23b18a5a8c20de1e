"""Cursors of MongoDB that are asked for at another server than the one that opened them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from pipeline.analysis.rules.episodes import Episode
from pipeline.analysis.tables import Tables

CURSOR_NOT_FOUND: Final = "CursorNotFound"
ELSEWHERE_ADVICE: Final = (
    "Now: send all commands of a cursor to the server that opened it: something between the application and the "
    "servers ({servers}) spreads its connections; pin it to one of them. Fix: list all mongos in the connection "
    "string instead of the address of a balancer, or use a balancer that keeps a client on one mongos."
)
_ELSEWHERE: Final = """
    SELECT lost.number, list(DISTINCT other.server ORDER BY other.server) AS servers
    FROM lost JOIN commands AS asked USING (exchange_id)
    JOIN commands AS other ON other.cursor_id = asked.cursor_id AND other.server <> asked.server
        AND other.ok AND other.error_code IS NULL AND other.command <> 'killCursors'
    GROUP BY lost.number
"""
"""Of cursors that a server does not have: which others have used them with success."""
_BESIDE: Final = """
    SELECT lost.number, count(DISTINCT asked.cursor_id) AS cursors
    FROM lost JOIN commands AS asked USING (exchange_id)
    JOIN commands AS opened ON opened.cursor_left = asked.cursor_id AND opened.server = asked.server
        AND opened.connection_id <> asked.connection_id AND opened.ok
        AND epoch_us(asked.ts) - epoch_us(opened.ts) BETWEEN 0 AND $kept
    WHERE asked.cursor_id <> 0
        AND EXISTS (
            FROM commands AS later
            WHERE later.connection_id = opened.connection_id AND later.ok AND later.ts > asked.ts
        )
        AND NOT EXISTS (
            FROM commands AS other
            WHERE other.ts <= asked.ts AND (
                list_contains(other.cursors_killed, asked.cursor_id)
                OR other.command = 'endSessions' AND other.ts >= opened.ts
                OR other.ok AND other.connection_id = asked.connection_id
                    AND asked.cursor_id IN (other.cursor_id, other.cursor_left)
            )
        )
    GROUP BY lost.number HAVING count(DISTINCT asked.cursor_id) > 1
"""
"""The same where all servers have one address: connections that have opened such cursors so shortly before, and that
are served on. Whoever closed them, or used them by both connections, had one server."""
_KEPT_US: Final = 600_000_000
"""How long a server keeps a cursor that is not used (cursorTimeoutMillis), µs."""


def opened_elsewhere(tables: Tables, failed: Sequence[Episode]) -> dict[Episode, tuple[str, ...]]:
    """By episode the servers that have the cursors that were not found: its own where all have one address."""
    lost = sorted(
        {(n, one.exchange_id) for n, e in enumerate(failed) for one in e.each if one.what == CURSOR_NOT_FOUND}
    )
    if not lost:
        return {}
    tables.add("lost", pa.table({"number": [n for n, _ in lost], "exchange_id": [text for _, text in lost]}))
    beside = {failed[row.number] for row in tables.rows(_BESIDE, kept=_KEPT_US)}
    found = {episode: tuple(episode.servers) for episode in beside}
    return found | {failed[row.number]: tuple(row.servers) for row in tables.rows(_ELSEWHERE)}
