"""Connections that something between has forgotten: after a pause nothing answers any more, or a reset does."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from pipeline.analysis.connection_ends import Life
from pipeline.analysis.rules.capture.connections.shapes import MOST_SHOWN, Seen, Trouble, also_reported
from pipeline.analysis.rules.capture.connections.thresholds import ConnectionThresholds
from pipeline.analysis.rules.format import who
from pipeline.analysis.rules.model import Sources
from pipeline.analysis.tables import ADDRESS, Row
from pipeline.humanize import clock, pluralize, seconds

ADVICE: Final = (
    "Now: find out what is between (a load balancer, NAT gateway or firewall) and its idle limit: it forgets a "
    "connection that is silent for longer, and neither side learns of it. Fix: let the client close or use it before "
    "that: connections.max.idle.ms of a Kafka client below the limit (MongoDB: maxIdleTimeMS), or TCP keepalives that "
    "are sent more often; or raise the limit."
)
_OF_KAFKA: Final = "connections.max.idle.ms of the client (unless set 9 min in Java, no limit in librdkafka)"
_OF_MONGODB: Final = "maxIdleTimeMS of the client (unless set no limit)"
_TRIED: Final = 2
_SPREAD: Final = 2.0
"""The longest pause is at most this many times the shortest: it is one limit that they meet."""


def troubles(sources: Sources, known: Seen, settings: ConnectionThresholds) -> Iterator[Trouble]:
    """One for each client and server."""
    lost = {one.connection_id: one for one in known.lives if _is_lost(one)}
    if not lost:
        return
    least_us = int(settings.connection_pause_seconds * 1_000_000)
    by_client: defaultdict[tuple[str, str, str], list[Row]] = defaultdict(list)
    for row in _pauses(sources, sorted(lost)):
        if row.pause_us is not None and row.pause_us >= least_us:
            by_client[row.server, row.client, row.host].append(row)
    for (server, client, host), rows in sorted(by_client.items()):
        some = _apart(sorted(rows, key=lambda row: (row.us, row.exchange_id)))
        pauses = [row.pause_us for row in some]
        if len(some) >= _TRIED and max(pauses) <= _SPREAD * min(pauses):
            yield _trouble(server, client, host, some, lost)


def _is_lost(one: Life) -> bool:
    """Whether the client asked and got nothing, not even an acknowledgement, or a reset in the server's name."""
    if one.how != "spoke" or not one.unanswered or (one.closed_by == "server" and one.reset_by != "server"):
        return False
    return (one.sent_again[0] >= _TRIED and one.waiting[0] > 0) or one.reset_by == "server"


def _apart(rows: Sequence[Row]) -> list[Row]:
    """Those that were not lost together: what ends several at once is a server that went away."""
    kept: list[Row] = []
    for row in rows:
        if not kept or row.us - kept[-1].us >= row.pause_us // 2:
            kept.append(row)
    return kept


def _pauses(sources: Sources, ids: Sequence[str]) -> list[Row]:
    """Of each connection the first request without a response, and how long it was silent before."""
    return sources.tables.rows(
        f"""
        WITH named AS (
            SELECT connection_id, coalesce(max(application), max(driver)) AS name FROM commands GROUP BY connection_id
        ), asked AS (
            SELECT connection_id, {ADDRESS["server"]} AS server, client_id, client_ip, exchange_id, request_ts,
                response_ts, false AS is_waiting
            FROM exchanges WHERE connection_id IN (SELECT unnest($ids)) AND request_ts IS NOT NULL
            UNION ALL
            SELECT connection_id, {ADDRESS["server"]}, client_id, client_ip, exchange_id, request_ts, NULL, true
            FROM waiting WHERE connection_id IN (SELECT unnest($ids)) AND request_ts IS NOT NULL
        ), lost AS (
            SELECT connection_id, server, client_ip AS host, min(epoch_us(request_ts)) AS us,
                coalesce(max(nullif(client_id, '')), '') AS client,
                arg_min(exchange_id, (request_ts, exchange_id)) AS exchange_id,
                arg_min(is_waiting, (request_ts, exchange_id)) AS is_waiting
            FROM asked WHERE response_ts IS NULL GROUP BY ALL
        )
        SELECT lost.* REPLACE (coalesce(nullif(client, ''), name, '') AS client), name IS NOT NULL AS is_mongodb,
            lost.us - (
            SELECT max(epoch_us(coalesce(response_ts, request_ts))) FROM asked
            WHERE asked.connection_id = lost.connection_id AND response_ts IS NOT NULL
        ) AS pause_us
        FROM lost LEFT JOIN named USING (connection_id) ORDER BY us, exchange_id
        """,
        ids=list(ids),
    )


def _trouble(server: str, client: str, host: str, rows: Sequence[Row], lost: dict[str, Life]) -> Trouble:
    least, most = min(row.pause_us for row in rows), max(row.pause_us for row in rows)
    pause = seconds(least) if seconds(least) == seconds(most) else f"{seconds(least)} to {seconds(most)}"
    again = sum(lost[row.connection_id].sent_again[0] for row in rows)
    resets = sum(lost[row.connection_id].reset_by == "server" for row in rows)
    shown = (
        f"sent again {pluralize(again, 'time')}, never acknowledged"
        if again
        else f"answered by {pluralize(resets, 'reset')}"
    )
    reports = also_reported(lost[row.connection_id] for row in rows)
    times = [row.us for row in rows]
    setting = _OF_MONGODB if all(row.is_mongodb for row in rows) else _OF_KAFKA
    summary = (
        f"{who(client or None, host)} gets no answer from {server} after each pause of {pause} "
        f"({pluralize(len(rows), 'connection')} from {clock(times[0])} to {clock(times[-1])} UTC; the request was "
        f"{shown}"
        f"{reports}): something between drops connections that are idle for so long. "
        f"{setting} must stay below that limit."
    )
    return Trouble(
        "idle", server, f"{client}/{host}", times, len(rows), False, summary, ADVICE,
        [row.exchange_id for row in rows if not row.is_waiting],
        details={
            "client": client, "host": host, "pause_us": least,
            "connections": [row.connection_id for row in rows][:MOST_SHOWN],
        },
        ids=frozenset(row.connection_id for row in rows),
    )  # fmt: skip
