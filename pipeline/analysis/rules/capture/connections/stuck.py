"""Large messages that never arrive, while small ones do: the path between carries no packets of full size."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from pipeline.analysis.connection_ends import Life
from pipeline.analysis.rules.capture.connections.shapes import MOST_SHOWN, Seen, Trouble
from pipeline.analysis.rules.capture.connections.thresholds import ConnectionThresholds
from pipeline.analysis.rules.format import who
from pipeline.analysis.rules.model import Sources
from pipeline.analysis.tables import ADDRESS, Row, Tables
from pipeline.humanize import clock, pluralize

ADVICE: Final = (
    "Now: find the largest packet that passes, from the sender's host: `ping -M do -s 1472 HOST`, then less. Fix: let "
    "ICMP `fragmentation needed` (IPv6: packet too big) pass the firewalls between, set the MTU of tunnels, VPNs and "
    "container networks to what the path carries, or clamp the MSS there (iptables: TCPMSS --clamp-mss-to-pmtu); "
    "net.ipv4.tcp_mtu_probing=1 on the sender's host helps at once."
)
_AGAIN: Final = 2
_FULL: Final = 1_000
"""Bytes of a segment of full size at least; a message of fewer fits into one that any path carries."""
_WAYS: Final = ("request", "response")


def troubles(sources: Sources, known: Seen, settings: ConnectionThresholds) -> Iterator[Trouble]:
    """One for each client, server and direction."""
    for way in (0, 1):
        stuck = {
            one.connection_id: one
            for one in known.lives
            if one.how == "spoke" and one.sent_again[way] >= _AGAIN and one.waiting[way] >= _FULL
        }
        if len(stuck) < settings.connection_failures:
            continue
        by_client: defaultdict[tuple[str, str, str], list[Row]] = defaultdict(list)
        for row in _last(sources, sorted(stuck), _WAYS[way]):
            if row.pause_us < settings.connection_pause_seconds * 1_000_000:
                by_client[row.server, row.client, row.host].append(row)
        many = {whose: rows for whose, rows in sorted(by_client.items()) if len(rows) >= settings.connection_failures}
        for (whose, rows), passed in zip(many.items(), _largest(sources.tables, many, _WAYS[way]), strict=True):
            if passed and passed < min(row.size for row in rows):
                yield _trouble(way, whose, rows, passed, stuck)


def _last(sources: Sources, ids: Sequence[str], half: str) -> list[Row]:
    """Of each connection its message that was never acknowledged, and for how long it was silent before.

    Of the client's that is the first request without a response, of the server's the last response.
    """
    is_stuck = "response_ts IS NULL" if half == "request" else "response_ts IS NOT NULL"
    which = "arg_min" if half == "request" else "arg_max"
    waiting_size = "request_size" if half == "request" else "NULL"
    return sources.tables.rows(
        f"""
        WITH asked AS (
            SELECT connection_id, {ADDRESS["server"]} AS server, coalesce(client_id, '') AS client_id, client_ip,
                exchange_id, request_ts, response_ts, {half}_size AS size, coalesce(api_name, 'a request') AS api,
                false AS is_waiting
            FROM exchanges WHERE connection_id IN (SELECT unnest($ids)) AND request_ts IS NOT NULL
            UNION ALL
            SELECT connection_id, {ADDRESS["server"]}, coalesce(client_id, ''), client_ip, exchange_id, request_ts,
                NULL, {waiting_size}, coalesce(api_name, 'a request'), true
            FROM waiting WHERE connection_id IN (SELECT unnest($ids)) AND request_ts IS NOT NULL
        ), stuck AS (
            SELECT connection_id, server, client_ip AS host, max(client_id) AS client,
                {which}(exchange_id, ({half}_ts, exchange_id)) AS exchange_id,
                {which}({half}_ts, ({half}_ts, exchange_id)) AS ts, {which}(size, ({half}_ts, exchange_id)) AS size,
                {which}(api, ({half}_ts, exchange_id)) AS api,
                {which}(is_waiting, ({half}_ts, exchange_id)) AS is_waiting
            FROM asked WHERE {is_stuck} GROUP BY ALL
        )
        SELECT stuck.*, epoch_us(ts) AS us, epoch_us(ts) - (
            SELECT max(epoch_us(coalesce(response_ts, request_ts))) FROM asked
            WHERE asked.connection_id = stuck.connection_id AND asked.exchange_id <> stuck.exchange_id
                AND asked.response_ts <= stuck.ts
        ) AS pause_us
        FROM stuck WHERE size >= {_FULL} AND pause_us IS NOT NULL ORDER BY us, exchange_id
        """,
        ids=list(ids),
    )


def _largest(tables: Tables, stuck: Mapping[tuple[str, str, str], Sequence[Row]], half: str) -> list[int]:
    """Of each server, client and host the largest message of that direction that arrived; 0: none did."""
    is_last = (
        "max(response_ts) OVER (PARTITION BY connection_id) = response_ts AND connection_id IN (SELECT unnest($ids))"
    )
    sql = f"""
        SELECT max(size) AS size FROM (
            SELECT {half}_size AS size, {is_last if half == "response" else "false"} AS is_stuck
            FROM exchanges WHERE {ADDRESS["server"]} = $server AND client_ip = $host AND response_ts IS NOT NULL
        ) WHERE NOT is_stuck
    """
    asked = [
        {"server": server, "host": host, "ids": [row.connection_id for row in rows]}
        for (server, _, host), rows in stuck.items()
    ]
    return [int(row.size or 0) for (row,) in tables.of_each(sql, asked)]


def _trouble(
    way: int, whose: tuple[str, str, str], rows: Sequence[Row], passed: int, stuck: dict[str, Life]
) -> Trouble:
    server, client, host = whose
    ends = who(client or None, host), server
    again = sum(stuck[row.connection_id].sent_again[way] for row in rows)
    kinds = sorted({f"{row.api} {_WAYS[way]}" for row in rows})
    least = min(row.size for row in rows)
    times = [row.us for row in rows]
    summary = (
        f"{ends[1 - way]} never receives the {' and '.join(kinds[:2])}s of {ends[way]} of {least:,} bytes or more, up "
        f"to {passed:,} bytes pass ({pluralize(len(rows), 'connection')} from {clock(times[0])} to "
        f"{clock(times[-1])} UTC, "
        f"{pluralize(again, 'segment')} sent again, never acknowledged): "
        f"{_mtu_of([stuck[row.connection_id] for row in rows])}."
    )
    return Trouble(
        "too-large", server, f"{client}/{host}", times, len(rows), True, summary, ADVICE,
        [row.exchange_id for row in rows if not row.is_waiting],
        details={
            "client": client, "host": host, "sender": _ENDS[way], "least_bytes": least, "passed_bytes": passed,
            "connections": [row.connection_id for row in rows][:MOST_SHOWN],
        },
        ids=frozenset(row.connection_id for row in rows),
    )  # fmt: skip


def _mtu_of(some: Sequence[Life]) -> str:
    """What the path carries."""
    mtu, by = min(((one.icmp.mtu, one.icmp.by) for one in some if one.icmp and one.icmp.mtu), default=(0, ""))
    if not mtu:
        return "the path carries no packets of full size (MTU)"
    return f"{by} reports by ICMP that the path carries {mtu:,} bytes a packet (MTU), and the sender does not heed it"


_ENDS: Final = ("client", "server")
