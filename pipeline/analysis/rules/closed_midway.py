"""Clients that close their connection while an answer is coming, and ask again: a part of rule ``connection_churn``.

Evidence: answers that a client ended by FIN or RST (flag CLOSED_BY_CLIENT), each on a connection that began after the
one before was closed. Connections closed together are a client that stops, which is no trouble.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from decoder.kafka.apis import ApiKey
from decoder.model import FrameFlags
from pipeline.analysis.rules.capture.connections.shapes import seen
from pipeline.analysis.rules.model import Finding, Sources
from pipeline.analysis.tables import ADDRESS, Row, Tables
from pipeline.humanize import clock, first_of, pluralize, seconds

if TYPE_CHECKING:
    from pipeline.analysis.rules.connection_churn import ConnectionChurn

_FETCH = (
    "Now: compare the limits of the client with the answer: the largest response that it takes "
    "(receive.message.max.bytes in librdkafka) must be larger than fetch.max.bytes, and its request timeout longer "
    "than the answer "
    "takes. Fix: raise that limit, or lower fetch.max.bytes and max.partition.fetch.bytes. The capture is whole: the "
    "client itself closed each connection."
)
_OTHER = (
    "Now: compare the limits of the client with the answer: the largest response that it takes, and its timeouts "
    "(Kafka: request.timeout.ms, receive.message.max.bytes; MongoDB: socketTimeoutMS, timeoutMS). Fix: raise the "
    "limit, or ask for less at a time. The capture is whole: the client itself closed each connection."
)
CLOSED_ADVICE = (_FETCH, _OTHER)

_CLOSED: Final = int(FrameFlags.TRUNCATED | FrameFlags.CLOSED_BY_CLIENT)
_IS_CLOSED: Final = f"coalesce(response_flags, 0) & {_CLOSED} = {_CLOSED}"
_SOON_US = 1_000_000
_AFTER_US, _SPREAD = 5_000_000, 1.2
"""Who gives up after so many µs at least, and always after about as many (the most is this many times the least), has a
timeout of its own; limits of size show at once."""
_LARGE: Final = 65_536
"""Bytes of an answer: one that is smaller comes at once, and exceeds no limit."""
_QUERY: Final = f"""
    WITH begun AS (
        SELECT connection_id, min(epoch_us(ts)) AS begin_us FROM exchanges
        WHERE connection_id IN (SELECT connection_id FROM exchanges WHERE {_IS_CLOSED}) GROUP BY connection_id
    )
    SELECT {ADDRESS["server"]} AS server, coalesce(nullif(client_id, ''), '?') AS client, client_ip AS host,
        protocol = 'kafka' AS is_kafka, api_key, coalesce(api_name, 'its request') AS api, begin_us,
        epoch_us(response_ts) AS us, epoch_us(request_ts) AS asked_us, response_size AS size, exchange_id, connection_id
    FROM exchanges JOIN begun USING (connection_id)
    WHERE {_IS_CLOSED} AND response_ts IS NOT NULL AND response_size >= {_LARGE}
    ORDER BY us, exchange_id
"""
_WHOLE: Final = f"""
    SELECT count(*) AS whole FROM exchanges
    WHERE client_ip = $host AND coalesce(nullif(client_id, ''), '?') = $client
        AND response_size >= $size AND NOT {_IS_CLOSED} AND epoch_us(ts) BETWEEN $first_us AND $last_us
"""


def closed_midway(sources: Sources, settings: ConnectionChurn.Thresholds, rule: str) -> list[Finding]:
    """Findings about clients that again and again close a connection in the middle of an answer.

    Args:
        sources: ``exchanges``.
        settings: how many are enough.
        rule: the rule's name.
    """
    rows = sources.tables.rows(_QUERY)
    clusters = sources.catalog.clusters_at((row.server, row.us) for row in rows)
    by_client: defaultdict[tuple[str, str, str], list[Row]] = defaultdict(list)
    for cluster, row in zip(clusters, rows, strict=True):
        by_client[cluster, row.client, row.host].append(row)
    chains = [(cluster, _one_after_the_other(some)) for (cluster, _, _), some in sorted(by_client.items())]
    often = [(cluster, again) for cluster, again in chains if len(again) >= settings.churn_closed]
    came_whole = _have_come_whole([again for _, again in often], sources.tables)
    ended = {one.connection_id: one.ended_us for one in seen(sources).lives} if often else {}
    return [
        _finding(rule, cluster, again, ended, sources, settings)
        for (cluster, again), is_whole in zip(often, came_whole, strict=True)
        if not is_whole
    ]


def _one_after_the_other(rows: Iterable[Row]) -> list[Row]:
    """Of some answers in the order of time those on connections that began after the one before was closed."""
    chain: list[Row] = []
    for row in rows:
        if not chain or row.begin_us > chain[-1].us:
            chain.append(row)
    return chain


def _have_come_whole(chains: Iterable[Sequence[Row]], tables: Tables) -> list[bool]:
    """Whether each client took answers as large meanwhile: then it may close when it has had enough."""
    asked = [
        {
            "host": some[0].host, "client": some[0].client, "size": min(row.size for row in some),
            "first_us": some[0].us, "last_us": some[-1].us,
        }
        for some in chains
    ]  # fmt: skip
    return [bool(row.whole) for (row,) in tables.of_each(_WHOLE, asked)]


def _finding(
    rule: str,
    cluster: str,
    some: Sequence[Row],
    ended: Mapping[str, int],
    sources: Sources,
    settings: ConnectionChurn.Thresholds,
) -> Finding:
    first, last = some[0], some[-1]
    apis = sorted({row.api for row in some})
    sizes = [row.size or 0 for row in some]
    waited = [ended[row.connection_id] - row.asked_us for row in some if row.connection_id in ended and row.asked_us]
    name = "A client without a name" if first.client == "?" else first.client
    summary = (
        f"{name} at {first.host} closed {pluralize(len(some), 'connection')} to "
        f"{first_of(sorted({row.server for row in some}))} "
        f"while the answer to {first_of(apis)} was coming ({_size(sizes)}{_after(waited)}), and asked again each time, "
        f"from {clock(first.us)} to {clock(last.us)} UTC: {_why(waited)}."
    )
    more = {"after_us": [min(waited), max(waited)]} if waited else {}
    is_fetch = all(row.is_kafka and row.api_key == ApiKey.FETCH for row in some)
    return Finding(
        rule=rule, severity="warning", subject=f"{first.client}/{first.host}",
        state=sources.state(cluster, first.us, last.us, len(some)), cluster=cluster, topic=None, partition=None,
        group_id=None, first_us=first.us, last_us=last.us, summary=summary, advice=CLOSED_ADVICE[not is_fetch],
        evidence=[row.exchange_id for row in some][: settings.max_evidence],
        details={
            "connections": len(some), "apis": apis, "largest_answer": max(sizes),
            "servers": sorted({row.server for row in some}), "client": first.client, "host": first.host,
            "enough_us": some[settings.churn_closed - 1].us, **more,
        },
    )  # fmt: skip


def _after(waited: Sequence[int]) -> str:
    """After how long the client gave up, where that is known."""
    if not waited:
        return ""
    if max(waited) < _SOON_US:
        return ", at once"
    least, most = seconds(min(waited)), seconds(max(waited))
    return f", after {least}" if least == most else f", after {least} to {most}"


def _why(waited: Sequence[int]) -> str:
    if waited and min(waited) >= _AFTER_US and max(waited) <= _SPREAD * min(waited):
        return (
            "a timeout of the client (request.timeout.ms, socket.timeout.ms; MongoDB: socketTimeoutMS) of about "
            f"{seconds(min(waited))} is shorter than the answer takes"
        )
    size = "the limit of the client (receive.message.max.bytes or the like) is smaller than what it asks for"
    return size if waited and max(waited) < _AFTER_US else f"{size}, or its timeout shorter than the answer takes"


def _size(sizes: Sequence[int]) -> str:
    least, most = _short(min(sizes)), _short(max(sizes))
    return f"{most} each" if least == most else f"{least} to {most}"


def _short(size: int) -> str:
    for unit, factor in (("MB", 1_000_000), ("KB", 1_000)):
        if size >= factor:
            return f"{size / factor:.1f} {unit}"
    return f"{size} B"
