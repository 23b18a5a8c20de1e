"""Accepted InitProducerId requests, looked up by transactional id and by client.

Each lookup takes the logarithm of what there is, since one transactional id can have as many introductions as
transactions.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate

from decoder.fields import natural, parsed, text
from decoder.kafka.apis import ApiKey
from pipeline.analysis.rules.model import Sources
from pipeline.analysis.tables import ADDRESS


@dataclass(frozen=True, slots=True)
class Introduced:
    """An accepted InitProducerId. Times are µs.

    Attributes:
        timeout_us: transaction.timeout.ms that it asks for.
        host: address of the client.
        server: the broker that accepted it, its coordinator.
    """

    us: int
    transactional_id: str
    timeout_us: int
    client_id: str | None
    host: str
    exchange_id: str
    server: str = ""


class _OfId:
    """Introductions of one transactional id, in order of time."""

    def __init__(self, some: list[Introduced]) -> None:
        self.some = some
        self.times = [one.us for one in some]
        self.longest_us = list(accumulate((one.timeout_us for one in some), max))


class _OfClient:
    """Introductions of one client id at one host, in order of the time at which their transactional id was new."""

    def __init__(self, some: Iterable[tuple[int, Introduced]]) -> None:
        ordered = sorted(some, key=lambda each: each[0])
        self.new_us = [new_us for new_us, _ in ordered]
        earliest = accumulate((one for _, one in reversed(ordered)), _earlier)
        self.earliest = list(earliest)[::-1]


def _earlier(one: Introduced, other: Introduced) -> Introduced:
    return min(one, other, key=lambda each: (each.us, each.exchange_id))


class Introductions:
    """Accepted InitProducerId requests of one cluster.

    Args:
        some: in order of time.
    """

    def __init__(self, some: Iterable[Introduced] = ()) -> None:
        by_id: defaultdict[str, list[Introduced]] = defaultdict(list)
        for one in some:
            by_id[one.transactional_id].append(one)
        by_client: defaultdict[tuple[str, str], list[tuple[int, Introduced]]] = defaultdict(list)
        for own in by_id.values():
            for one in own:
                if one.client_id is not None:
                    by_client[one.client_id, one.host].append((own[0].us, one))
        self._by_id = {name: _OfId(own) for name, own in by_id.items()}
        self._by_client = {who: _OfClient(own) for who, own in by_client.items()}

    def timeout_us(self, transactional_id: str, until_us: int) -> int:
        """The longest transaction.timeout.ms asked for up to a time, µs; 0: not known."""
        own = self._by_id.get(transactional_id)
        place = bisect_right(own.times, until_us) if own else 0
        return own.longest_us[place - 1] if own and place else 0

    def is_taken_anew(self, transactional_id: str, after_us: int, until_us: int) -> bool:
        """Whether one came after the first time, up to the second."""
        own = self._by_id.get(transactional_id)
        return own is not None and bisect_right(own.times, after_us) < bisect_right(own.times, until_us)

    def coordinator(self, transactional_id: str, at_us: int) -> str | None:
        """The broker that accepted the last one up to a time, else the last one of all; None: there is none."""
        own = self._by_id.get(transactional_id)
        return own.some[bisect_right(own.times, at_us) - 1].server if own else None

    def heir(self, client_id: str | None, host: str, after_us: int) -> Introduced | None:
        """The first one of a client under a transactional id that no client had up to a time; None: there is none."""
        own = self._by_client.get((client_id, host)) if client_id is not None else None
        place = bisect_right(own.new_us, after_us) if own else 0
        return own.earliest[place] if own and place < len(own.earliest) else None


def introductions(sources: Sources) -> defaultdict[str, Introductions]:
    """Accepted InitProducerId requests by cluster."""
    rows = sources.tables.rows(f"""
        SELECT {ADDRESS["server"]} AS server, client_id, client_ip, epoch_us(ts) AS us, exchange_id, request_body
        FROM exchanges
        WHERE protocol = 'kafka' AND api_key = {ApiKey.INIT_PRODUCER_ID} AND coalesce(len(error_codes), 0) = 0
            AND request_body IS NOT NULL
        ORDER BY us, exchange_id
    """)
    found: defaultdict[str, list[Introduced]] = defaultdict(list)
    clusters = sources.catalog.clusters_at((row.server, row.us) for row in rows)
    for cluster, row in zip(clusters, rows, strict=True):
        body = parsed(row.request_body)
        if name := text(body, "transactionalId"):
            timeout_us = (natural(body, "transactionTimeoutMs") or 0) * 1000
            one = Introduced(row.us, name, timeout_us, row.client_id, row.client_ip, row.exchange_id, row.server)
            found[cluster].append(one)
    return defaultdict(Introductions, {cluster: Introductions(some) for cluster, some in found.items()})
