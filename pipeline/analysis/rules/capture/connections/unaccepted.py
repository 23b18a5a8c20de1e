"""Connections that the server's host accepts and its process does not: a limit is reached, or nothing accepts them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from decoder.kafka.apis import ApiKey
from pipeline.analysis.connection_ends import Life
from pipeline.analysis.rules.capture.connections.shapes import MOST_SHOWN, Seen, Trouble, number_of
from pipeline.analysis.rules.capture.connections.thresholds import ConnectionThresholds
from pipeline.analysis.rules.model import Sources
from pipeline.analysis.tables import ADDRESS, Row, numbers
from pipeline.humanize import clock, pluralize, seconds, some

ADVICE: Final = (
    "Now: look at `ss -ltn` on the server's host: where Recv-Q of the listener is near its Send-Q, connections wait "
    "for the process. Compare its open connections with its limits (Kafka: max.connections of the broker and the "
    "listener, max.connection.creation.rate: new ones wait; ulimit -n), and take a thread dump where it answers "
    "no one. Fix: raise the limit or find who holds so many connections, restart a process that hangs; where no "
    "connection waits, look for a firewall whose table of connections is full (`nf_conntrack: table full` in dmesg)."
)
_WAITED_US: Final = 3_000_000
"""A client that gets no first answer for so long (µs) waits for one: ApiVersions and hello take milliseconds."""
_LEAST_US: Final = 5_000_000
"""So long (µs) connections are not taken up at least: less is a pause."""
_BEGIN: Final = numbers(ApiKey.API_VERSIONS, ApiKey.METADATA, ApiKey.SASL_HANDSHAKE)
_HELLO: Final = "('hello', 'ismaster', 'isMaster')"
_WAITING: Final = f"""
    WITH newest AS (SELECT greatest(
        (SELECT max(epoch_us(coalesce(response_ts, request_ts))) FROM exchanges),
        (SELECT max(epoch_us(last_ts)) FROM connections)
    ) AS us), lone AS (
        SELECT connection_id, epoch_us(first_ts) AS began_us, reset_by, responses,
            CASE WHEN closed_by IS NULL AND reset_by IS NULL THEN newest.us ELSE epoch_us(last_ts) END AS ended_us
        FROM (
            SELECT *, lead(first_ts) OVER (PARTITION BY server_ip, server_port, client_ip ORDER BY first_ts) AS next_ts
            FROM connections WHERE counted_connection_id IS NULL
        ), newest
        WHERE how IN ('spoke', 'served') AND (next_ts IS NULL OR closed_by IS NOT NULL OR reset_by IS NOT NULL)
            AND syns >= 1 AND server_packets >= 1 AND requests >= 1
            AND coalesce(client_unacknowledged, 0) = 0 AND coalesce(closed_by, 'client') = 'client'
            AND (coalesce(responses, 0) = 0 OR (reset_by = 'client' AND responses = 1))
    ), asked AS (
        SELECT connection_id, exchange_id, server_ip, server_port, client_ip, client_id, protocol, api_key, api_name,
            request_ts, response_ts, false AS is_waiting
        FROM exchanges WHERE connection_id IN (SELECT connection_id FROM lone) AND request_ts IS NOT NULL
        UNION ALL
        SELECT connection_id, exchange_id, server_ip, server_port, client_ip, client_id, protocol, api_key, api_name,
            request_ts, NULL, true
        FROM waiting WHERE connection_id IN (SELECT connection_id FROM lone) AND request_ts IS NOT NULL
    ), first AS (
        SELECT connection_id, {ADDRESS["server"]} AS server, client_ip AS host,
            coalesce(max(nullif(client_id, '')), '') AS client, min(epoch_us(request_ts)) AS us,
            min(epoch_us(response_ts)) AS answered_us,
            bool_and(api_key IN {_BEGIN} OR coalesce(api_name IN {_HELLO}, false)) AS is_begin,
            any_value(coalesce(api_name, 'a request')) AS api,
            arg_min(exchange_id, (request_ts, exchange_id)) AS evidence,
            arg_min(is_waiting, (request_ts, exchange_id)) AS is_waiting
        FROM asked GROUP BY connection_id, server, client_ip
    )
    SELECT first.*, began_us, ended_us, least(ended_us, coalesce(answered_us, ended_us)) - us AS waited_us
    FROM first JOIN lone USING (connection_id)
    WHERE is_begin AND least(ended_us, coalesce(answered_us, ended_us)) - us >= {_WAITED_US}
    ORDER BY began_us, connection_id
"""
"""Connections whose client had nothing but its first request, which was acknowledged: it waited, and closed or waits.

An answer may come when the client is gone, who resets: the process takes the connection up at last. Where neither side
is seen to close, and the host connects again, the end may have been missed.
"""
_ANSWERS: Final = f"""
    SELECT count(*) AS answers, count(*) FILTER (epoch_us(response_ts) <= $half) AS early,
        list(DISTINCT client_ip) AS hosts
    FROM exchanges WHERE {ADDRESS["server"]} = $server AND epoch_us(response_ts) BETWEEN $first AND $last
        AND NOT connection_id IN (SELECT unnest($ids))
"""
_BEGUN: Final = f"""
    SELECT count(*) AS number FROM (
        SELECT connection_id FROM exchanges WHERE {ADDRESS["server"]} = $server GROUP BY connection_id
        HAVING epoch_us(min(request_ts)) BETWEEN $first AND $last AND bool_or(response_ts IS NOT NULL)
            AND NOT connection_id IN (SELECT unnest($ids))
    )
"""
"""Connections that a server took up meanwhile."""


def waiting(sources: Sources) -> list[Row]:
    """Connections on which nothing but the first request was sent, and never answered."""
    return sources.once("connections not taken up", lambda: list(sources.tables.rows(_WAITING)))


def troubles(
    sources: Sources, known: Seen, unanswered: frozenset[str], settings: ConnectionThresholds
) -> Iterator[Trouble]:
    """One for each server.

    Args:
        sources, known, settings: as of other shapes.
        unanswered: servers that answer no SYN, from no client.
    """
    by_server: defaultdict[str, list[Row]] = defaultdict(list)
    for row in waiting(sources):
        by_server[row.server].append(row)
    for server in sorted({*by_server, *known.answered}):
        rows = by_server[server]
        since_us = rows[0].began_us if rows else 0
        shut = [one for one in known.shut_by(server, since_us) if one.client_ip]
        if len(rows) + number_of(shut) < settings.connection_failures:
            continue
        one = _Server(server, rows, shut)
        if one.last_us - one.first_us < _LEAST_US:
            continue
        if server in unanswered:
            if rows:
                yield one.trouble(0, frozenset())
            continue
        span = {
            "server": server,
            "first": one.first_us,
            "last": one.last_us,
            "ids": [row.connection_id for row in rows],
        }
        ((answers,),) = sources.tables.of_each(_ANSWERS, [{**span, "half": (one.first_us + one.last_us) // 2}])
        if not answers.early or answers.early == answers.answers:
            continue  # it answers no one, or answers again
        ((begun,),) = sources.tables.of_each(_BEGUN, [span])
        hosts = frozenset(answers.hosts)
        if begun.number < len(rows) if rows else not begun.number and one.hosts <= hosts:
            yield one.trouble(answers.answers, hosts)


class _Server:
    """What a server does not take up: connections that wait, and SYNs without an answer."""

    def __init__(self, name: str, rows: Sequence[Row], shut: Sequence[Life]) -> None:
        self.name, self.rows, self.shut = name, rows, shut
        self.first_us = min([row.began_us for row in rows] + [one.began_us for one in shut])
        self.last_us = max([row.us + row.waited_us for row in rows] + [one.ended_us for one in shut])
        self.hosts = frozenset({row.host for row in rows} | {one.client_ip for one in shut})

    def trouble(self, answers: int, served: frozenset[str]) -> Trouble:
        """It, while so much is answered to these hosts."""
        rows, shut = self.rows, self.shut
        what = []
        if rows:
            asked = some(row.api for row in rows)
            longest_us = max(row.waited_us for row in rows)
            what.append(
                f"its host acknowledges {pluralize(len(rows), 'connection')} and {asked} on them, which nothing "
                f"answers for up to {seconds(longest_us)}"
            )
        if shut:
            further = "further connection" if rows else "connection"
            what.append(f"{pluralize(number_of(shut), further)} got no SYN-ACK")
        why = (
            f", while it answers {pluralize(answers, 'request')} on older connections: its limit of connections is "
            "reached, or what accepts them hangs."
            if rows and answers
            else f", while it answers {pluralize(answers, 'request')} on older connections of the same hosts: its "
            "queue of new connections, or the connection table of a firewall, is full."
            if answers
            else ": its process accepts nothing, and the queue of new connections is full."
        )
        summary = (
            f"{self.name} takes up no connection of {some(self.hosts)} from {clock(self.first_us)} to "
            f"{clock(self.last_us)} UTC ({', '.join(what)}){why}"
        )
        callers = sorted({(row.client, row.host) for row in rows if row.client})
        return Trouble(
            "unaccepted", self.name, "", sorted([row.us for row in rows] + [one.began_us for one in shut]),
            len(rows) + number_of(shut), not self.hosts & served, summary, ADVICE,
            [row.evidence for row in rows if not row.is_waiting],
            details={
                "hosts": sorted(self.hosts), "callers": callers[:MOST_SHOWN],
                "connections": ([row.connection_id for row in rows] + [one.connection_id for one in shut])[:MOST_SHOWN],
                "others_answered": answers,
            },
            ids=frozenset(row.connection_id for row in rows),
        )  # fmt: skip
