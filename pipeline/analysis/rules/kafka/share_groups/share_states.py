"""What members of share groups get and what they state of it (KIP-932), from ShareFetch and ShareAcknowledge.

A broker hands out ranges of offsets to any member, locked for a while, with a count of deliveries; members accept,
release or reject them, by ShareAcknowledge or with their next ShareFetch. What is released, or whose lock runs out, is
handed out again, until the broker gives it up (``group.share.delivery.count.limit``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from decoder.fields import Json, integer, integers, items, natural, parsed, text
from decoder.kafka.apis import ApiKey
from decoder.kafka.errors import NO_ERROR
from pipeline.analysis.rules.model import Sources
from pipeline.analysis.tables import ADDRESS

ACCEPT, RELEASE, REJECT = 1, 2, 3
_LEFT = -1


class SharePlace(NamedTuple):
    """A partition as a share group reads it."""

    cluster: str
    group: str
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.group}/{self.topic}-{self.partition}"


class Delivery(NamedTuple):
    """Offsets from ``first`` to ``last`` (inclusive), and what became of them.

    Attributes:
        what: an acknowledge type, or None: they were acquired.
        deliveries: of an acquisition, how often they have been delivered with it.
        lock_us: of an acquisition, for how long they are locked, µs.
        us: µs since the epoch: of the answer.
    """

    place: SharePlace
    us: int
    first: int
    last: int
    what: int | None
    deliveries: int
    lock_us: int
    member: str
    client: str
    exchange_id: str


class Beat(NamedTuple):
    """A heartbeat of a member; the last one says that it leaves."""

    cluster: str
    group: str
    member: str
    client: str
    us: int
    is_leaving: bool


def deliveries(sources: Sources) -> list[Delivery]:
    """All of them in order of time; of one answer acknowledgements come before what is newly acquired."""
    rows = sources.tables.rows(f"""
        SELECT {ADDRESS["server"]} AS server, client_id, client_ip, exchange_id, request_body, response_body,
            epoch_us(coalesce(response_ts, ts)) AS us
        FROM exchanges
        WHERE protocol = 'kafka' AND api_key IN ({ApiKey.SHARE_FETCH}, {ApiKey.SHARE_ACKNOWLEDGE})
            AND response_body IS NOT NULL
            AND (contains(response_body, '"acquiredRecords":[{{') OR contains(request_body, '"firstOffset"'))
        ORDER BY us, exchange_id
    """)
    names, clusters = sources.catalog.names, sources.catalog.clusters_at((row.server, row.us) for row in rows)
    return [one for cluster, row in zip(clusters, rows, strict=True) for one in _of_exchange(row, cluster, names)]


def _of_exchange(row: Any, cluster: str, names: Mapping[str, str]) -> Iterator[Delivery]:
    request, answer = parsed(row.request_body), parsed(row.response_body)
    group, member = text(request, "groupId"), text(request, "memberId") or ""
    if not group:
        return
    client = f"{row.client_id or '?'} at {row.client_ip}"
    lock_us = (natural(answer, "acquisitionLockTimeoutMs") or 0) * 1000
    refused = {  # or unknown
        at
        for at, part in _parts(answer, "responses", "partitionIndex")
        if {integer(part, "acknowledgeErrorCode"), integer(part, "errorCode")} - {None} != {NO_ERROR}
    }
    for at, part in _parts(request, "topics", "partitionIndex"):
        place = SharePlace(cluster, group, names.get(at[0], at[0]), at[1])
        for batch in items(part, "acknowledgementBatches") if at not in refused else ():
            for first, last, what in _acknowledged(batch):
                yield Delivery(place, row.us, first, last, what, 0, 0, member, client, row.exchange_id)
    for at, part in _parts(answer, "responses", "partitionIndex"):
        place = SharePlace(cluster, group, names.get(at[0], at[0]), at[1])
        for batch in items(part, "acquiredRecords"):
            span, times = _span(batch), natural(batch, "deliveryCount")
            if span is not None and times is not None:
                yield Delivery(place, row.us, *span, None, times, lock_us, member, client, row.exchange_id)


def _parts(body: Json, topics: str, index: str) -> Iterator[tuple[tuple[str, int], Json]]:
    """Topic id and index of each partition, with what is stated of it; one that is not named is left out."""
    for topic in items(body, topics):
        topic_id = text(topic, "topicId")
        for part in items(topic, "partitions") if topic_id is not None else ():
            number = natural(part, index)
            if topic_id is not None and number is not None:
                yield (topic_id, number), part


def _span(batch: Json) -> tuple[int, int] | None:
    """The first offset and the last one; None unless both are there."""
    first, last = natural(batch, "firstOffset"), natural(batch, "lastOffset")
    return None if first is None or last is None or last < first else (first, last)


def _acknowledged(batch: Json) -> Iterator[tuple[int, int, int]]:
    """One type stands for the whole batch; else there is one for each offset: equal neighbours are put together."""
    span, types = _span(batch), integers(batch, "acknowledgeTypes")
    if span is None:
        return
    first, last = span
    if len(types) == 1:
        yield first, last, types[0]
        return
    begin = 0
    for at in range(1, min(len(types), last - first + 1) + 1):
        if at == len(types) or first + at > last or types[at] != types[begin]:
            yield first + begin, first + at - 1, types[begin]
            begin = at


def beats(sources: Sources) -> list[Beat]:
    """Accepted heartbeats of members of share groups, in order of time."""
    rows = sources.tables.rows(f"""
        SELECT {ADDRESS["server"]} AS server, client_id, client_ip, request_body, epoch_us(ts) AS us
        FROM exchanges
        WHERE protocol = 'kafka' AND api_key = {ApiKey.SHARE_GROUP_HEARTBEAT} AND coalesce(len(error_codes), 0) = 0
            AND request_body IS NOT NULL
        ORDER BY us, exchange_id
    """)
    found = []
    clusters = sources.catalog.clusters_at((row.server, row.us) for row in rows)
    for cluster, row in zip(clusters, rows, strict=True):
        body = parsed(row.request_body)
        group, member, epoch = text(body, "groupId"), text(body, "memberId"), integer(body, "memberEpoch")
        if group and member and epoch is not None:
            found.append(
                Beat(cluster, group, member, f"{row.client_id or '?'} at {row.client_ip}", row.us, epoch == _LEFT)
            )
    return found


class StartMoved(NamedTuple):
    """The start offset of a share-partition, as a broker reported it to the share coordinator; µs since the epoch."""

    place: SharePlace
    us: int
    offset: int


def starts_moved(sources: Sources) -> list[StartMoved]:
    """Start offsets of share-partitions in order of time, where brokers speak of them on the wire."""
    rows = sources.tables.rows(f"""
        SELECT {ADDRESS["server"]} AS server, request_body, epoch_us(ts) AS us FROM exchanges
        WHERE protocol = 'kafka' AND api_key = {ApiKey.WRITE_SHARE_GROUP_STATE} AND request_body IS NOT NULL
        ORDER BY us, exchange_id
    """)
    names = sources.catalog.names
    clusters = sources.catalog.clusters_at((row.server, row.us) for row in rows)
    found = []
    for cluster, row in zip(clusters, rows, strict=True):
        body = parsed(row.request_body)
        group = text(body, "groupId")
        for (topic_id, partition), part in _parts(body, "topics", "partition") if group else ():
            offset = natural(part, "startOffset")
            if group and offset is not None:
                place = SharePlace(cluster, group, names.get(topic_id, topic_id), partition)
                found.append(StartMoved(place, row.us, offset))
    return found


def start_offsets(sources: Sources) -> dict[SharePlace, int]:
    """The last start offset of each share-partition."""
    return sources.once(
        "start offsets of share-partitions", lambda: {moved.place: moved.offset for moved in starts_moved(sources)}
    )
