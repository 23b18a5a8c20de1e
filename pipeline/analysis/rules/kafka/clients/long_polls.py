"""Clients whose request timeout is shorter than the wait of their Fetch: a part of rule ``connection_churn``.

A broker holds a Fetch until there are records, for fetch.max.wait.ms at most. A client whose request.timeout.ms is
shorter closes the connection before that on a partition without news, connects again and asks the same. Evidence: the
last request on connections that the client itself ended, which states its wait; the end of the connection, or the same
request on the next one, before that wait is over, each time after about as long. The broker answers at the end of the
wait, which the client refuses by a reset. A client that stops does so once, and at any moment.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from decoder.fields import natural, parsed
from decoder.kafka.apis import ApiKey
from pipeline.analysis.rules.model import Finding, Sources
from pipeline.analysis.tables import ADDRESS, numbers
from pipeline.humanize import clock, first_of, pluralize, seconds

if TYPE_CHECKING:
    from pipeline.analysis.rules.connection_churn import ConnectionChurn

POLL_ADVICE = (
    "Now: nothing is lost, but each such Fetch is thrown away, and a record that comes meanwhile waits for the next "
    "connection. Fix: fetch.max.wait.ms (librdkafka: fetch.wait.max.ms) shorter than request.timeout.ms (librdkafka: "
    "socket.timeout.ms): the defaults are 500 ms and 30 s."
)

_LEAST_US: Final = 5_000_000
"""A shorter wait is given up by clients that stop."""
_SPREAD: Final = 1.5
"""The longest wait is at most this many times the shortest: a timeout, and the pause before reconnecting."""
_MOST: Final = 10_000
_HELD: Final = numbers(ApiKey.FETCH, ApiKey.SHARE_FETCH)
"""Requests that a broker holds until there is something to answer."""
_ASKED: Final = f"""
    exchange_id, connection_id, request_ts, coalesce(nullif(client_id, ''), '?') AS client, client_ip AS host,
    {ADDRESS["server"]} AS server, coalesce(api_name, 'Fetch') AS api
"""
_POLLS: Final = f"""
    WITH ended AS (
        SELECT connection_id, epoch_us(last_ts) AS ended_us FROM connections
        WHERE 'client' IN (closed_by, reset_by) AND counted_connection_id IS NULL
    ), held AS (
        SELECT {_ASKED} FROM exchanges
        WHERE api_key IN {_HELD} AND (status = 'unanswered' OR latency_us >= {_LEAST_US})
        UNION ALL SELECT {_ASKED} FROM waiting WHERE api_key IN {_HELD}
    ), last AS (
        SELECT * FROM held JOIN ended USING (connection_id) WHERE request_ts IS NOT NULL
        QUALIFY row_number() OVER (PARTITION BY connection_id ORDER BY request_ts DESC, exchange_id) = 1
        ORDER BY request_ts DESC, exchange_id LIMIT {_MOST}
    ), later AS (
        SELECT connection_id FROM exchanges AS x JOIN last AS l USING (connection_id) WHERE x.request_ts > l.request_ts
    )
    SELECT * FROM last ANTI JOIN later USING (connection_id)
"""
"""Of connections that their client ended the last request, if that is one that a broker may hold."""
_GIVEN_UP: Final = f"""
    WITH bodies AS (
        SELECT exchange_id, request_body FROM exchanges SEMI JOIN polls USING (exchange_id)
        UNION ALL SELECT exchange_id, request_body FROM waiting SEMI JOIN polls USING (exchange_id)
    ), again AS (
        SELECT server, client, host, epoch_us(request_ts) AS next_us
        FROM (
            SELECT {_ASKED} FROM exchanges WHERE api_key IN {_HELD}
            UNION ALL SELECT {_ASKED} FROM waiting WHERE api_key IN {_HELD}
        ) SEMI JOIN polls USING (server, client, host)
    )
    SELECT p.server, p.client, p.host, p.api, epoch_us(p.request_ts) AS us, least(p.ended_us, a.next_us) AS closed_us,
        p.exchange_id, b.request_body
    FROM polls AS p JOIN bodies AS b ON b.exchange_id = p.exchange_id ASOF LEFT JOIN again AS a
        ON a.server = p.server AND a.client = p.client AND a.host = p.host
            AND epoch_us(p.request_ts) + {_LEAST_US} <= a.next_us
    ORDER BY us, p.exchange_id
"""
"""When the client asked again: on another connection, for that was the last request of this one."""


class GivenUp(NamedTuple):
    """A request whose client closed the connection before the wait that it asked for was over. Times are µs.

    Attributes:
        us, closed_us: when it was sent, and when the client had given it up, since the epoch.
        wait_us: how long the broker may hold it.
    """

    us: int
    closed_us: int
    wait_us: int
    server: str
    api: str
    exchange_id: str

    @property
    def waited_us(self) -> int:
        """For how long the client waited."""
        return self.closed_us - self.us


def given_up_polls(sources: Sources, settings: ConnectionChurn.Thresholds) -> Iterator[Finding]:
    """Apply the rule: one finding for each client and host."""
    by_client: defaultdict[tuple[str, str, str], list[GivenUp]] = defaultdict(list)
    for cluster, client, host, one in _given_up(sources):
        by_client[cluster, client, host].append(one)
    for (cluster, client, host), some in sorted(by_client.items()):
        again = _one_after_the_other(some)
        waits = [one.waited_us for one in again]
        if len(again) >= settings.churn_closed and max(waits) <= _SPREAD * min(waits):
            yield _finding(cluster, client, host, again, sources, settings)


def _given_up(sources: Sources) -> Iterator[tuple[str, str, str, GivenUp]]:
    """With cluster, client and host. Who asks the same on another connection has given up by then."""
    if not sources.tables.keep("polls", _POLLS):
        return
    for row in sources.tables.rows(_GIVEN_UP):
        wait_us = (natural(parsed(row.request_body), "maxWaitMs") or 0) * 1000
        one = GivenUp(row.us, row.closed_us, wait_us, row.server, row.api, row.exchange_id)
        if _LEAST_US <= one.waited_us < wait_us:
            yield sources.catalog.cluster_at(row.server, row.us), row.client, row.host, one


def _one_after_the_other(some: Iterable[GivenUp]) -> list[GivenUp]:
    """Those that were sent after the connection of the one before was given up."""
    chain: list[GivenUp] = []
    for one in sorted(some):
        if not chain or one.us >= chain[-1].closed_us:
            chain.append(one)
    return chain


def _finding(
    cluster: str, client: str, host: str, some: Sequence[GivenUp], sources: Sources,
    settings: ConnectionChurn.Thresholds,
) -> Finding:  # fmt: skip
    first, last = some[0], some[-1]
    name = "A client without a name" if client == "?" else client
    waited_us, wait_us = max(one.waited_us for one in some), max(one.wait_us for one in some)
    servers = sorted({one.server for one in some})
    summary = (
        f"{name} at {host} closed {pluralize(len(some), 'connection')} to {first_of(servers)} within "
        f"{seconds(waited_us)} without an answer to {first.api}, which lets the broker wait {seconds(wait_us)} for "
        f"records, and asked again each time, from {clock(first.us)} to {clock(last.closed_us)} UTC: its request "
        "timeout is shorter than that wait."
    )
    return Finding(
        rule="connection_churn", severity="warning", subject=f"{client}/{host}/{first.api}",
        state=sources.state(cluster, first.us, last.closed_us, len(some)), cluster=cluster, topic=None, partition=None,
        group_id=None, first_us=first.us, last_us=last.closed_us, summary=summary, advice=POLL_ADVICE,
        evidence=[one.exchange_id for one in some][: settings.max_evidence],
        details={
            "connections": len(some), "apis": [first.api], "servers": servers, "client": client, "host": host,
            "waited_us": waited_us, "wait_us": wait_us, "enough_us": some[settings.churn_closed - 1].closed_us,
        },
    )  # fmt: skip
