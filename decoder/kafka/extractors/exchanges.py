"""What one exchange states about record batches, topic ids and clusters: pure functions of its bodies."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import NamedTuple

from decoder.fields import Json, as_int64, count, flag, integer, items, natural, text
from decoder.kafka.apis import ApiKey
from decoder.kafka.errors import NO_ERROR
from decoder.kafka.extractors.offsets import At, fetch_responses, offset_span, produce_requests, produce_responses

_OF_TOPICS = frozenset(map(int, (ApiKey.METADATA, ApiKey.CREATE_TOPICS, ApiKey.DESCRIBE_TOPIC_PARTITIONS)))
_OF_CLUSTERS = frozenset(map(int, (ApiKey.METADATA, ApiKey.DESCRIBE_CLUSTER)))

BATCH_APIS = tuple(map(int, (ApiKey.PRODUCE, ApiKey.FETCH)))
FACT_APIS = tuple(sorted(_OF_TOPICS | _OF_CLUSTERS))

FACT_FIELDS = {
    "clusterId": "JSON", "brokers": "JSON", "topics": [{"errorCode": "JSON", "name": "JSON", "topicId": "JSON"}],
}  # fmt: skip
"""What :func:`topic_ids`, :func:`cluster_id` and :func:`cluster_addresses` read of a response.
Of topics it is nothing deeper, so that the partitions of a large Metadata response need not be parsed."""

ZERO_UUID = "AAAAAAAAAAAAAAAAAAAAAA"
"""A topic without an id."""


class BatchRow(NamedTuple):
    """A record batch (a row of ``silver.record_batches`` without the exchange's columns).

    Attributes:
        source: ``produce`` or ``fetch``; offsets of ``produce`` are those that the response gives, else None.
        ordinal: position in the records field of its partition.
        timestamps: ms since the epoch.
    """

    topic: str | None
    topic_id: str | None
    partition: int
    source: str
    ordinal: int
    base_offset: int | None
    last_offset: int | None
    records: int | None
    size: int | None
    magic: int | None
    compression: str | None
    timestamp_type: str | None
    base_timestamp: int | None
    max_timestamp: int | None
    producer_id: int | None
    producer_epoch: int | None
    base_sequence: int | None
    is_transactional: bool | None
    is_control: bool | None
    control_type: str | None
    crc_valid: bool | None


class TopicFact(NamedTuple):
    """A topic id and the name that it stands for (KIP-516)."""

    topic_id: str
    topic: str


def record_batch_rows(api_key: int, request: Json | None, response: Json | None) -> list[BatchRow]:
    """The record batches of a Produce request (with real offsets, if the response gives them) or a Fetch response."""
    if api_key == ApiKey.PRODUCE:
        bases = {at: natural(p, "baseOffset") for at, p in produce_responses(response or {})}
        return [
            row
            for at, part in produce_requests(request or {})
            for row in _batch_rows(at, "produce", part, bases.get(at))
        ]
    if api_key == ApiKey.FETCH:
        return [row for at, part in fetch_responses(response or {}) for row in _batch_rows(at, "fetch", part, None)]
    return []


def topic_ids(api_key: int, response: Json | None) -> list[TopicFact]:
    """Topic ids with their names, as Metadata (v10+), CreateTopics (v7+) and DescribeTopicPartitions answer them."""
    if api_key not in _OF_TOPICS:
        return []
    topics = items(response, "topics")
    named = ((text(t, "topicId"), text(t, "name")) for t in topics if integer(t, "errorCode") == NO_ERROR)
    return [TopicFact(topic_id, name) for topic_id, name in named if name and topic_id and topic_id != ZERO_UUID]


def cluster_id(api_key: int, response: Json | None) -> str | None:
    """The cluster's id, as Metadata (v2+) and DescribeCluster answer it."""
    if api_key not in _OF_CLUSTERS or not response:
        return None
    return text(response, "clusterId") or None


def cluster_addresses(api_key: int, response: Json | None) -> list[tuple[str, int]]:
    """Addresses and ports of the cluster's brokers in the same answers; host names are left out."""
    if cluster_id(api_key, response) is None:
        return []
    brokers = ((text(b, "host"), natural(b, "port")) for b in items(response, "brokers"))
    return [(host, port) for host, port in brokers if host and port and _is_address(host)]


def _is_address(host: str) -> bool:
    try:
        return not ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False


def _batch_rows(at: At, source: str, part: Json, base: int | None) -> Iterator[BatchRow]:
    shift = base
    for ordinal, batch in enumerate(items(part, "recordBatches")):
        if batch.get("status") == "removed":  # stands for any number of batches
            continue
        first, last = integer(batch, "baseOffset"), integer(batch, "lastOffset")
        if source == "produce":  # the broker numbers the records of one request in a row
            span = offset_span(batch)
            end = None if shift is None or span is None else as_int64(shift + span)
            first, last, shift = shift, None if end is None else end - 1, end
        yield BatchRow(
            *at, source, ordinal, first, last,
            count(batch, "recordsCount"), count(batch, "sizeInBytes"), integer(batch, "magic"),
            text(batch, "compressionType"), text(batch, "timestampType"), integer(batch, "baseTimestamp"),
            integer(batch, "maxTimestamp"), integer(batch, "producerId"), integer(batch, "producerEpoch"),
            integer(batch, "baseSequence"), flag(batch, "isTransactional"), flag(batch, "isControlBatch"),
            text(batch, "controlType"), flag(batch, "crcValid"),
        )  # fmt: skip
