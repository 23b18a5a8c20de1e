"""Connections that fail, by server and end, in a window."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from pipeline.analysis.live_metrics.window import Window
from pipeline.analysis.tables import ADDRESS, Tables

MOST_ENDS = 100
"""Listed, the most frequent; a screen shows fewer."""

_SIDES = ("client", "server")
_STALLED_US = 5_000_000
"""A side that asks to be sent nothing for so long holds the other one up, µs."""

_UNHEARD_US = 1_000_000
"""Who sends again for so long after the other side's last word gets no acknowledgement, µs."""

_UNMADE = "(alert IS NOT NULL OR how IN ('refused', 'unanswered'))"
_BY_SERVER = "(is_failed AND coalesce(reset_by, closed_by) = 'server')"
_UNHEARD = [
    f"(is_failed AND {side}_sent_again > 1 AND {side}_unacknowledged > 0 "
    f"AND epoch_us({side}_spoke_ts) - epoch_us({other}_spoke_ts) >= {_UNHEARD_US})"
    for side, other in (_SIDES, _SIDES[::-1])
]
_FULL = " OR ".join(f"{side}_stalled_us >= {_STALLED_US}" for side in _SIDES)
_FAILED = f"""
    SELECT coalesce({ADDRESS["server"]}, '') AS server,
        CASE WHEN {_UNHEARD[0]} THEN 'the server acknowledges nothing'
            WHEN {_UNHEARD[1]} THEN 'the client acknowledges nothing'
            WHEN is_failed OR NOT coalesce({_FULL}, false) THEN ended
            WHEN client_stalled_us >= {_STALLED_US} THEN 'the client does not read' ELSE 'the server does not read'
        END AS ended,
        sum(connections)::BIGINT AS connections, count(DISTINCT client_ip) AS hosts, max(epoch_us(last_ts)) AS last_us,
        coalesce(min(client_ip), '') AS host,
        sum(coalesce(client_bytes, 0) + coalesce(server_bytes, 0))::BIGINT AS bytes,
        bool_and({_UNMADE}) AS is_unmade
    FROM connections
    WHERE counted_connection_id IS NULL AND epoch_us(last_ts) > $first AND epoch_us(last_ts) <= $last
        AND ({_UNMADE} OR {_BY_SERVER} OR {_UNHEARD[0]} OR {_UNHEARD[1]} OR {_FULL})
    GROUP BY 1, 2 ORDER BY connections DESC, server, ended LIMIT {MOST_ENDS}
"""
"""A client that closes amid a response has had enough, as consumers that stop do: that is no failure by itself."""


@dataclass(frozen=True, slots=True)
class EndNow:
    """Connections of a server that failed in one way in the window, or are held up.

    Attributes:
        server: address and port; empty: of several, where there were too many.
        ended: how, in a few words.
        connections: how many.
        hosts, host: of how many clients' addresses, and one of them.
        last_us: when the last of them ended, µs since the epoch.
        bytes: payload of both directions.
        is_unmade: whether they did not come about: refused, not answered, ended in a TLS handshake.
    """

    server: str
    ended: str
    connections: int
    hosts: int
    last_us: int
    host: str
    bytes: int
    is_unmade: bool


def ends_now(connections: pa.Table, window: Window) -> list[EndNow]:
    """How connections failed in a window; ``connections``: rows of ``silver.connections``."""
    tables = Tables({"connections": connections})
    try:
        rows = tables.rows(_FAILED, first=window.first_us, last=window.last_us)
    finally:
        tables.close()
    return [EndNow(*row) for row in rows]
