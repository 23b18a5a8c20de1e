"""The path between a server and some hosts, on which packets get lost while others are served."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from pipeline.analysis.connection_ends import Life
from pipeline.analysis.rules.capture.connections.shapes import MOST_SHOWN, Seen, Trouble
from pipeline.analysis.rules.capture.connections.thresholds import ConnectionThresholds
from pipeline.analysis.rules.model import Sources
from pipeline.analysis.tables import ADDRESS, Row
from pipeline.humanize import clock, pluralize, some

ADVICE: Final = (
    "Now: leave the server alone, it serves others; compare `nc -vz` from these hosts with one that is served, and "
    "capture at both ends. Fix: what these hosts do not share with others: a security group, network policy or "
    "firewall rule, a route, VPN or node of theirs, an address that the server's side blocks."
)
Asked = Mapping[str, Sequence[Row]]
"""By client host its connections with requests that nothing acknowledged (as of ``dropped``)."""


def troubles(
    sources: Sources,
    known: Seen,
    asked: Mapping[str, Asked],
    lost: Mapping[str, Life],
    settings: ConnectionThresholds,
) -> Iterator[Trouble]:
    """One for each server.

    Args:
        sources: the exchanges.
        known: all connections.
        asked: by server, since it answered them last.
        lost: the connections with such requests.
        settings: how many, for how long.

    Where SYNs alone show it, the server must let others in meanwhile: one whose queue is full drops SYNs of anybody.
    """
    shut: defaultdict[tuple[str, str], list[Life]] = defaultdict(list)
    for server in known.answered:
        for life in known.shut_by(server):
            if life.connections == 1 and life.began_us > known.asked.get((server, life.client_ip), 0):
                shut[server, life.client_ip].append(life)
    unheard = {(server, host) for server, by_host in asked.items() for host, rows in by_host.items() if rows}
    restart_us = int(settings.connection_restart_seconds * 1_000_000)
    found: defaultdict[str, list[_Host]] = defaultdict(list)
    for server, host in sorted(unheard.union(shut)):
        one = _Host(host, asked.get(server, {}).get(host, ()), shut.get((server, host), ()), lost)
        if one.number >= settings.connection_failures and one.last_us - one.first_us >= restart_us:
            found[server].append(one)
    for server, hosts in found.items():
        questions = [
            {
                "server": server, "host": one.name, "first": one.first_us, "half": one.first_us + restart_us // 2,
                "last": one.last_us,
            }
            for one in hosts
        ]  # fmt: skip
        answers, opened = (sources.tables.of_each(sql, questions) for sql in (_ANSWERS, _OPENED))
        cut = {
            one: int(row.early + row.late)
            for one, (row,), (others,) in zip(hosts, answers, opened, strict=True)
            if row.early and row.late and (one.rows or others.number)
        }
        if cut:
            yield _trouble(server, list(cut), max(cut.values()))


class _Host:
    """What nothing of a server answers a host."""

    def __init__(self, name: str, rows: Sequence[Row], shut: Sequence[Life], lost: Mapping[str, Life]) -> None:
        self.name, self.rows, self.shut = name, rows, shut
        self.begun = [lost[row.connection_id] for row in rows]
        times = [row.us for row in rows] + [one.began_us for one in shut]
        self.number, self.first_us = len(times), min(times)
        self.last_us = max(one.ended_us for one in (*self.begun, *shut))


_ANSWERS: Final = f"""
    SELECT count(*) FILTER (client_ip <> $host AND epoch_us(response_ts) <= $half) AS early,
        count(*) FILTER (client_ip <> $host AND epoch_us(response_ts) > $half) AS late
    FROM exchanges WHERE {ADDRESS["server"]} = $server AND epoch_us(response_ts) BETWEEN $first AND $last
"""
"""What a server answers others, before and after a time."""
_OPENED: Final = f"""
    SELECT count(*) AS number
    FROM (
        SELECT {ADDRESS["server"]} AS server, client_ip, connection_id, min(epoch_us(ts)) AS us
        FROM exchanges WHERE response_ts IS NOT NULL GROUP BY ALL
    )
    WHERE server = $server AND client_ip <> $host AND us BETWEEN $first AND $last
"""
"""Connections of others on which a server answers for the first time within it."""


def _trouble(server: str, hosts: Sequence[_Host], answers: int) -> Trouble:
    rows = sorted((row for one in hosts for row in one.rows), key=lambda row: (row.us, row.exchange_id))
    shut = [life for one in hosts for life in one.shut]
    times = sorted([row.us for row in rows] + [one.began_us for one in shut])
    last_us = max(one.last_us for one in hosts)
    names = [one.name for one in hosts]
    apis = some(api for row in rows for api in row.apis)
    again = sum(life.sent_again[0] for one in hosts for life in one.begun)
    what = [f"{apis} was sent again {pluralize(again, 'time')} on {pluralize(len(rows), 'connection')}"] if rows else []
    what += [f"{pluralize(len(shut), 'further connection' if rows else 'connection')} got no SYN-ACK"] if shut else []
    summary = (
        f"{server} answers nothing of {some(names)} from {clock(times[0])} to {clock(last_us)} UTC "
        f"({', '.join(what)}), while it answers others ({pluralize(answers, 'request')}): something on the path "
        "between "
        "these hosts and the server drops packets."
    )
    return Trouble(
        "path", server, "", times, len(times), False, summary, ADVICE,
        [row.exchange_id for row in rows if not row.is_waiting],
        details={
            "hosts": names, "callers": sorted({(row.client, row.host) for row in rows if row.client})[:MOST_SHOWN],
            "connections": ([row.connection_id for row in rows] + [one.connection_id for one in shut])[:MOST_SHOWN],
            "others_answered": answers,
        },
        ids=frozenset(row.connection_id for row in rows),
    )  # fmt: skip
