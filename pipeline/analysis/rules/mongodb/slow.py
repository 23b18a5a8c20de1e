"""What to do about slow commands of MongoDB: the query where documents are searched, else the server."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

SEARCHING: Final = frozenset(
    {"find", "aggregate", "count", "distinct", "getMore", "update", "delete", "findAndModify", "findandmodify",
     "mapReduce", "mapreduce"}
)  # fmt: skip
"""Commands that search documents, so that an index can make them fast."""

QUERY_ADVICE: Final = (
    "Now: see what runs with `db.currentOp({secs_running: {$gte: 1}})` and end what should not run with "
    "`db.killOp(id)`; `explain()` the command: COLLSCAN is a missing index. Fix: where `explain()` shows COLLSCAN, "
    "create the index; where it does not, see what held the server up at that time (disk, CPU, memory, locks); let "
    "clients give up in time (maxTimeMS, timeoutMS), and bound what a query reads (limit)."
)
SERVER_ADVICE: Final = (
    "Now: look at the server at that time, for a command that searches nothing was slow, too: `db.currentOp()` shows "
    "what runs and what waits for a lock, `db.serverStatus()` the queue (globalLock) and the cache (wiredTiger.cache); "
    "look at its disk and CPU, too. Fix: end or move what keeps the server busy (long operations, queries without an "
    "index, index builds, backups); for a write that waits for lagging members set wtimeout in its writeConcern."
)


def advice_on(commands: Iterable[str]) -> str:
    """What to do about slow commands of these names: about the query only where all of them search documents."""
    return QUERY_ADVICE if SEARCHING.issuperset(commands) else SERVER_ADVICE
