"""Which copy of a connection counts, where two agents saw the same one? ``silver.copies`` lists the others.

Silver keeps all that landed; what is derived from silver takes of each hour one copy (:mod:`pipeline.analysis.copies`).
Agents that joined a connection midway do not know its ``flow_id``: their copies cannot be recognised.
"""

from __future__ import annotations

import pyarrow.compute as pc

from pipeline.analysis.copies import copies
from pipeline.analysis.hours import hour_of
from pipeline.streaming.storage.rows import Rows, Wanted, same_rows
from pipeline.tables import COPIES, EXCHANGES

_COLUMNS = ("flow_id", "agent_id", "connection_id", "ts", "status")


def refresh_copies(rows: Rows, since_us: int) -> int | None:
    """Note the copies of the hours from that of ``since_us`` (µs since the epoch) on.

    Returns:
        That hour, from which on everything has to be derived anew, as news may change which copy counts; None if no
        connection was seen by two agents.
    """
    hour = hour_of(since_us)
    exchanges = Wanted.since(EXCHANGES, hour, columns=_COLUMNS)
    agents = rows.read(Wanted.since(EXCHANGES, hour, columns=("agent_id",), distinct=True))
    if len(pc.unique(agents.column("agent_id"))) < 2:
        return None
    made = rows.derive(lambda tables: copies(tables["exchanges"]), {"exchanges": exchanges}, ("flow_id",), COPIES)
    found = rows.as_arrow(made, COPIES.columns)
    held = rows.read(Wanted.since(COPIES, hour, time="hour"))
    if not found.num_rows and not held.num_rows:
        return None
    if not same_rows(found, held, COPIES):
        rows.replace_since(found, COPIES, "hour", hour)
        rows.forget_copies()
    return hour
