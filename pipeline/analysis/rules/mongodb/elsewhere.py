"""Cursors of MongoDB that are asked for at another server than the one that opened them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from pipeline.analysis.rules.episode import Episode
from pipeline.analysis.tables import Tables

CURSOR_NOT_FOUND: Final = "CursorNotFound"
ELSEWHERE_ADVICE: Final = (
    "Now: send all commands of a cursor to the server that opened it: something between the application and the "
    "servers ({servers}) spreads its connections; pin it to one of them. Fix: list all mongos in the connection "
    "string instead of the address of a balancer, or use a balancer that keeps a client on one mongos."
)
_MOST_SERVERS: Final = 20
"""Servers that are named, of those that have used a cursor: a cursor id may be one of many servers."""
_ELSEWHERE: Final = f"""
    WITH used AS (
        SELECT DISTINCT cursor_id, server FROM commands
        WHERE ok AND error_code IS NULL AND command <> 'killCursors'
        QUALIFY dense_rank() OVER (PARTITION BY cursor_id ORDER BY server) <= {_MOST_SERVERS}
    ), asked AS (
        SELECT DISTINCT number, cursor_id, server FROM lost JOIN commands USING (exchange_id)
    )
    SELECT asked.number, list(DISTINCT used.server ORDER BY used.server) AS servers
    FROM asked JOIN used ON used.cursor_id = asked.cursor_id AND used.server <> asked.server
    GROUP BY asked.number
"""
"""Of cursors that a server does not have: which others have used them with success."""
_BESIDE: Final = """
    WITH asked AS (
        SELECT number, cursor_id, server, connection_id, ts FROM lost JOIN commands USING (exchange_id)
        WHERE cursor_id <> 0
    ), opened AS (
        SELECT cursor_left, server, connection_id, ts FROM commands WHERE ok AND cursor_left <> 0
    ), served AS (
        SELECT connection_id, max(ts) AS ts FROM commands WHERE ok GROUP BY connection_id
    ), killed AS (
        SELECT cursor_id, min(ts) AS ts FROM (SELECT unnest(cursors_killed) AS cursor_id, ts FROM commands)
        GROUP BY cursor_id
    ), used AS (
        SELECT connection_id, cursor_id, min(ts) AS ts FROM (
            SELECT connection_id, unnest([cursor_id, cursor_left]) AS cursor_id, ts FROM commands WHERE ok
        ) GROUP BY connection_id, cursor_id
    ), beside AS (
        SELECT asked.*, opened.ts AS opened_ts
        FROM asked ASOF JOIN opened ON opened.cursor_left = asked.cursor_id AND opened.server = asked.server
            AND asked.ts >= opened.ts
        JOIN served ON served.connection_id = opened.connection_id AND served.ts > asked.ts
        ANTI JOIN killed ON killed.cursor_id = asked.cursor_id AND killed.ts <= asked.ts
        ANTI JOIN used ON used.connection_id = asked.connection_id AND used.cursor_id = asked.cursor_id
            AND used.ts <= asked.ts
        WHERE epoch_us(asked.ts) - epoch_us(opened.ts) <= $kept
    ), ended AS (
        SELECT true AS one, ts FROM commands WHERE command = 'endSessions'
    )
    SELECT beside.number, count(DISTINCT beside.cursor_id) AS cursors
    FROM (SELECT *, true AS one FROM beside) AS beside
        ASOF LEFT JOIN ended ON beside.one = ended.one AND beside.ts >= ended.ts
    WHERE ended.ts IS NULL OR ended.ts < beside.opened_ts
    GROUP BY beside.number HAVING count(DISTINCT beside.cursor_id) > 1
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
