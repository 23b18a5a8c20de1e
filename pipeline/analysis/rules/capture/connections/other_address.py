"""A server that nobody reaches, while each client that tries it works with another one right afterwards.

bootstrap.servers, or a name with several addresses, lists a server that is gone, or a broker of the cluster is down:
clients go on to the next address. Evidence: nearly each attempt of a host has a connection of the same host to another
server behind it, on which more is answered than versions, metadata and a login, sooner than chance would have it: other
clients of the host connect, too. A broker that Metadata names by that address is left out: clients need it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from decoder.kafka.apis import ApiKey
from pipeline.analysis.lives import Life
from pipeline.analysis.rules.capture.connections.instead import LATE_US, Connected, Instead, sooner_than_chance
from pipeline.analysis.rules.capture.connections.other_family import answers_not, attempts, details_of
from pipeline.analysis.rules.capture.connections.shapes import Trouble, number_of, times_of
from pipeline.analysis.rules.model import Sources
from pipeline.analysis.tables import ADDRESS, numbers
from pipeline.humanize import brief, some

SHAPE: Final = "other-address"
ADVICE: Final = (
    "Now: nothing is cut off: the clients go on to another address. See whether this server is a broker that is down, "
    "or one that is gone. Fix: start the broker, or take the address out of bootstrap.servers and of the name that "
    "clients use (DNS, /etc/hosts): each start waits for it first."
)
_SEVERAL: Final = 3
"""Attempts that show it: of fewer any other start may follow by chance."""
_CONNECTED: Final = f"""
    WITH of_hosts AS (
        SELECT {ADDRESS["server"]} AS server, client_ip, connection_id, min(epoch_us(request_ts)) AS us,
            count(*) FILTER (response_ts IS NOT NULL AND NOT (protocol = 'kafka' AND api_key IN {
    numbers(ApiKey.METADATA, ApiKey.SASL_HANDSHAKE, ApiKey.API_VERSIONS, ApiKey.SASL_AUTHENTICATE)
})) AS work
        FROM exchanges WHERE client_ip IN (SELECT unnest($hosts)) AND request_ts IS NOT NULL
        GROUP BY server, client_ip, connection_id
    )
    SELECT server, client_ip, us FROM of_hosts
    WHERE server <> $server AND work > 0 AND us BETWEEN $since AND $until ORDER BY us, server
"""


def at_other_address(server: str, failed: Sequence[Life], sources: Sources) -> Trouble | None:
    """That clients go on to another address at once; None: they do not, or it is not sure."""
    begun = sorted(one.began_us for one in failed if one.connections == 1)
    if len(begun) < max(len(failed), _SEVERAL) or _is_broker(server, sources):
        return None
    hosts = sorted({one.client_ip for one in failed})
    rows = sources.tables.rows(_CONNECTED, hosts=hosts, server=server, since=begun[0], until=begun[-1] + LATE_US)
    other = sooner_than_chance(begun, [Connected(row.us, row.client_ip, row.server) for row in rows])
    return None if other is None else _trouble(server, failed, hosts, other)


def _is_broker(server: str, sources: Sources) -> bool:
    """Whether Metadata names it."""
    return any(one == server for one, _ in sources.facts.brokers)


def _trouble(server: str, failed: Sequence[Life], hosts: Sequence[str], other: Instead) -> Trouble:
    summary = (
        f"{server} {answers_not(failed)} {some(list(hosts))} ({attempts(failed)}), and each time the client works with "
        f"{other.server} instead, mostly within {brief(other.wait_us)}: it knows several addresses, one of which is a "
        "server that is down or gone."
    )
    return Trouble(
        SHAPE, server, "", times_of(failed), number_of(failed), False, summary, ADVICE,
        details=details_of(failed, other),
    )  # fmt: skip
