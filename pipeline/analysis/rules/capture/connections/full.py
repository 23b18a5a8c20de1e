"""A side that does not read: its receive window is closed, and the other side may send nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from pipeline.analysis.connection_ends import Life
from pipeline.analysis.rules.capture.connections.shapes import MOST_SHOWN, Seen, Trouble
from pipeline.analysis.rules.capture.connections.thresholds import ConnectionThresholds
from pipeline.analysis.rules.format import who
from pipeline.analysis.rules.model import Sources
from pipeline.analysis.tables import ADDRESS, Row
from pipeline.humanize import clock, pluralize, seconds

CLIENT: Final = (
    "Now: look at what the client does meanwhile (a thread dump): it asked for these answers and does not read them, "
    "for it processes, is paused by garbage collection or its host, or waits for something else. Fix: process faster "
    "or in threads of its own, ask for less at a time (fetch.max.bytes, max.partition.fetch.bytes, max.poll.records; "
    "MongoDB: batchSize), and close cursors and consumers that are not read."
)
SERVER: Final = (
    "Now: look at the server's load: its network and request threads, request.queue and disk (Kafka: "
    "RequestQueueSize, NetworkProcessorAvgIdlePercent, queued.max.requests, queued.max.request.bytes), pauses of "
    "garbage collection, a host that is frozen. Fix: more of what is short, or clients that send less (quotas)."
)
ADVICE: Final = (CLIENT, SERVER)
_ENDS: Final = ("client", "server")
_LONG: Final = 3
"""Times the setting from which on it is no pause that one side may make."""
_DONE: Final = frozenset({"idle", "", "unknown"})


def troubles(sources: Sources, known: Seen, settings: ConnectionThresholds) -> Iterator[Trouble]:
    """One for each client, server and side."""
    least_us = int(settings.connection_stall_seconds * 1_000_000)
    for side in (0, 1):
        full = [one for one in known.lives if one.how in ("spoke", "served") and one.stalled_us[side] >= least_us]
        if not full:
            continue
        rows = {row.connection_id: row for row in _asked(sources, [one.connection_id for one in full])}
        by_client: defaultdict[tuple[str, str, str], list[Life]] = defaultdict(list)
        for one in full:
            row = rows.get(one.connection_id)
            if row is not None:
                by_client[row.server, row.client, row.host].append(one)
        for whose, some in sorted(by_client.items()):
            yield _trouble(side, whose, some, rows, least_us)


def _asked(sources: Sources, ids: Sequence[str]) -> list[Row]:
    return sources.tables.rows(
        f"""
        SELECT connection_id, {ADDRESS["server"]} AS server, client_ip AS host,
            coalesce(max(nullif(client_id, '')), '') AS client, max(request_size) AS request,
            max(response_size) AS response,
            arg_max(exchange_id, (coalesce(response_size, 0), exchange_id)) AS evidence,
            arg_max(coalesce(api_name, 'a request'), (coalesce(response_size, 0), exchange_id)) AS answered,
            arg_max(coalesce(api_name, 'a request'), (coalesce(request_size, 0), exchange_id)) AS asked
        FROM exchanges WHERE connection_id IN (SELECT unnest($ids)) AND request_ts IS NOT NULL GROUP BY ALL
        """,
        ids=sorted(ids),
    )


def _trouble(
    side: int, whose: tuple[str, str, str], some: Sequence[Life], rows: dict[str, Row], least_us: int
) -> Trouble:
    server, client, host = whose
    ends = who(client or None, host), server
    longest = max(some, key=lambda one: (one.stalled_us[side], one.connection_id))
    largest = [rows[one.connection_id].request if side else rows[one.connection_id].response for one in some]
    api = rows[longest.connection_id].asked if side else rows[longest.connection_id].answered
    kind = "requests" if side else "responses"
    first_us, last_us = min(one.began_us for one in some), max(one.ended_us for one in some)
    is_cut = any(one.state not in _DONE and one.closed_by is not None for one in some)
    size = f" of up to {max(filter(None, largest), default=0):,} bytes" if any(largest) else ""
    span = f"{pluralize(len(some), 'connection')} from {clock(first_us)} to {clock(last_us)} UTC"
    summary = (
        f"{ends[side]} does not read what {ends[1 - side]} sends: its receive window was closed for "
        f"{seconds(longest.stalled_us[side])} of {seconds(longest.ended_us - longest.began_us)} "
        f"({span}), so {api} {kind}{size} wait for it"
        f"{' and the connection ended before they arrived' if is_cut else ''}."
    )
    is_long = longest.stalled_us[side] >= _LONG * least_us
    return Trouble(
        f"{_ENDS[side]}-full", server, f"{client}/{host}", sorted({first_us, last_us}), len(some), False, summary,
        SERVER if side else CLIENT, [rows[one.connection_id].evidence for one in some],
        details={
            "client": client, "host": host, "stalled_us": longest.stalled_us[side], "reader": _ENDS[side],
            "connections": [one.connection_id for one in some][:MOST_SHOWN],
        },
        ids=frozenset(one.connection_id for one in some), is_info=not (is_cut or is_long),
    )  # fmt: skip
