"""Connections that were answered, of hosts that others do not answer, or on their ports: asked once for all servers."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Final

import pyarrow as pa

from decoder.kafka.apis import ApiKey
from pipeline.analysis.rules.capture.connections.fallback import Connected
from pipeline.analysis.rules.capture.connections.shapes import Seen
from pipeline.analysis.rules.model import Sources
from pipeline.analysis.tables import ADDRESS, numbers

_MOST: Final = 50_000
"""Connections that are looked at, those that began first."""
_BEGINNINGS: Final = numbers(ApiKey.METADATA, ApiKey.SASL_HANDSHAKE, ApiKey.API_VERSIONS, ApiKey.SASL_AUTHENTICATE)
_QUERY: Final = f"""
    SELECT {ADDRESS["server"]} AS server, server_port AS port, contains(server_ip, ':') AS is_ipv6, client_ip AS host,
        min(epoch_us(request_ts)) AS us,
        count(*) FILTER (response_ts IS NOT NULL AND NOT (protocol = 'kafka' AND api_key IN {_BEGINNINGS})) > 0 AS works
    FROM exchanges
    WHERE request_ts IS NOT NULL AND (client_ip IN (SELECT host FROM tried) OR server_port IN (SELECT port FROM tried))
    GROUP BY server, port, is_ipv6, host, connection_id HAVING count(response_ts) > 0
    ORDER BY us, server, host LIMIT {_MOST}
"""
_TIME: Final = attrgetter("us")


@dataclass(frozen=True, slots=True)
class Answered:
    """Connections in order of time.

    Attributes:
        by_port: by port and whether they are of IPv6.
        by_host: by client host those on which more was answered than versions, metadata and a login.
    """

    by_port: Mapping[tuple[int, bool], Sequence[Connected]]
    by_host: Mapping[str, Sequence[Connected]]

    def at_port(self, port: int, *, is_ipv6: bool, since_us: int, until_us: int) -> Sequence[Connected]:
        """Those to a port by one address family, within a time."""
        return _within(self.by_port.get((port, is_ipv6), ()), since_us, until_us)

    def of_host(self, host: str, since_us: int, until_us: int) -> Sequence[Connected]:
        """Those of a host that work, within a time."""
        return _within(self.by_host.get(host, ()), since_us, until_us)


def answered(sources: Sources, known: Seen) -> Answered:
    """All of them, asked once."""
    return sources.once("answered connections", lambda: _answered(sources, known))


def _answered(sources: Sources, known: Seen) -> Answered:
    failed = {(one.client_ip, one.server_port) for one in known.lives if one.how in ("refused", "unanswered")}
    hosts, ports = [host for host, _ in failed], [port for _, port in failed]
    sources.tables.add("tried", pa.table({"host": pa.array(hosts, pa.string()), "port": pa.array(ports, pa.int32())}))
    by_port: defaultdict[tuple[int, bool], list[Connected]] = defaultdict(list)
    by_host: defaultdict[str, list[Connected]] = defaultdict(list)
    for row in sources.tables.rows(_QUERY):
        one = Connected(row.us, row.host, row.server)
        by_port[row.port, row.is_ipv6].append(one)
        if row.works:
            by_host[row.host].append(one)
    for life in known.lives:
        if life.opened == "yes" and life.how == "other":
            one = Connected(life.began_us, life.client_ip, life.server)
            by_port[life.server_port, ":" in life.server_ip].append(one)
    return Answered({key: sorted(some) for key, some in by_port.items()}, by_host)


def _within(some: Sequence[Connected], since_us: int, until_us: int) -> Sequence[Connected]:
    return some[bisect_left(some, since_us, key=_TIME) : bisect_right(some, until_us, key=_TIME)]
