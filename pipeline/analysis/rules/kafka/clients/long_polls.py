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
from itertools import zip_longest
from typing import Final, NamedTuple

from decoder.fields import natural, parsed
from decoder.kafka.apis import ApiKey
from pipeline.analysis.rules.connection_churn import POLL_ADVICE, ConnectionChurn
from pipeline.analysis.rules.model import Finding, Sources
from pipeline.analysis.rules.rule import finds
from pipeline.analysis.tables import ADDRESS, Row, numbers
from pipeline.humanize import clock, first_of, pluralize, seconds

_LEAST_US: Final = 5_000_000
"""A shorter wait is given up by clients that stop."""
_SPREAD: Final = 1.5
"""The longest wait is at most so many times the shortest: a timeout, and the pause before the client connects again."""
_MOST: Final = 10_000
_POLLS: Final = numbers(ApiKey.FETCH, ApiKey.SHARE_FETCH)
_ASKED: Final = (
    "exchange_id, connection_id, request_ts, client_id, client_ip, server_ip, server_port, api_name, request_body"
)
_QUERY: Final = f"""
    WITH ended AS (
        SELECT connection_id, epoch_us(last_ts) AS ended_us FROM connections
        WHERE 'client' IN (closed_by, reset_by) AND counted_connection_id IS NULL
    ), asked AS (
        SELECT {_ASKED} FROM exchanges
        WHERE api_key IN {_POLLS} AND (status = 'unanswered' OR latency_us >= {_LEAST_US})
        UNION ALL SELECT {_ASKED} FROM waiting WHERE api_key IN {_POLLS}
    ), polls AS (
        SELECT * FROM asked JOIN ended USING (connection_id) WHERE request_ts IS NOT NULL
        QUALIFY row_number() OVER (PARTITION BY connection_id ORDER BY request_ts DESC, exchange_id) = 1
        ORDER BY request_ts DESC, exchange_id LIMIT {_MOST}
    ), later AS (
        SELECT connection_id FROM exchanges AS x JOIN polls AS p USING (connection_id) WHERE x.request_ts > p.request_ts
    )
    SELECT {ADDRESS["server"]} AS server, coalesce(nullif(client_id, ''), '?') AS client, client_ip AS host,
        coalesce(api_name, 'Fetch') AS api, epoch_us(request_ts) AS us, ended_us, exchange_id, request_body
    FROM polls ANTI JOIN later USING (connection_id) ORDER BY us, exchange_id
"""
"""Of connections that their client ended the last request, if that is one that a broker may hold."""


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


@finds(ConnectionChurn)
def find(sources: Sources, settings: ConnectionChurn.Thresholds) -> Iterator[Finding]:
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
    """By cluster, client and host. Who asks the same on another connection has given up by then."""
    by_client: defaultdict[tuple[str, str, str], list[Row]] = defaultdict(list)
    for row in sources.tables.rows(_QUERY):
        by_client[row.server, row.client, row.host].append(row)
    for (server, client, host), rows in by_client.items():
        for row, after in zip_longest(rows, rows[1:]):
            closed_us = min(row.ended_us, row.ended_us if after is None else after.us)
            wait_us = (natural(parsed(row.request_body), "maxWaitMs") or 0) * 1000
            one = GivenUp(row.us, closed_us, wait_us, server, row.api, row.exchange_id)
            if _LEAST_US <= one.waited_us < wait_us:
                yield sources.facts.cluster_at(server, row.us), client, host, one


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
        rule=ConnectionChurn.name, severity="warning", subject=f"{client}/{host}/{first.api}",
        state=sources.state(cluster, first.us, last.closed_us, len(some)), cluster=cluster, topic=None, partition=None,
        group_id=None, first_us=first.us, last_us=last.closed_us, summary=summary, advice=POLL_ADVICE,
        evidence=[one.exchange_id for one in some][: settings.max_evidence],
        details={
            "connections": len(some), "apis": [first.api], "servers": servers, "client": client, "host": host,
            "waited_us": waited_us, "wait_us": wait_us, "enough_us": some[settings.churn_closed - 1].closed_us,
        },
    )  # fmt: skip
