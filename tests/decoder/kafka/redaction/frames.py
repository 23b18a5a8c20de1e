"""Frames with a text in them that must not land, in credentials as in records."""

from __future__ import annotations

from decoder import Frame
from decoder.field_hash import FieldHash
from tests.decoder.kafka import batches
from tests.decoder.kafka.batches import batch, message, record, wrapper
from tests.decoder.kafka.credentials import credentials
from tests.decoder.kafka.encode import frame, request, response
from tests.decoder.kafka.landed import landed

CANARY = b"tweety-0123456789abcdef"
FIELD_HASH = FieldHash(b"the key of this deployment")
PRODUCE, FETCH, METADATA, SASL, SHARE_FETCH, FETCH_SNAPSHOT = 0, 1, 3, 36, 78, 59

CREDENTIALS = credentials(CANARY)


def credential(name: str, **options) -> Frame:
    kind, key, version, body = CREDENTIALS[name]
    return landed(frame(kind, key, version, body), kind, key, version, **options)


def is_clean(cleaned: Frame) -> bool:
    """Not even a part of the canary is left, as it is or reversed by a lucky offset."""
    return not any(CANARY[i : i + 4] in cleaned.frame for i in range(len(CANARY) - 3))


def with_records(records: bytes, kind: str = "request", **options) -> Frame:
    if kind == "request":
        body = {"topicData": [{"name": "orders", "partitionData": [{"index": 3, "records": records}]}]}
        return landed(request(PRODUCE, 9, body), **options)
    body = {"responses": [{"topic": "orders", "partitions": [{"partitionIndex": 3, "records": records}]}]}
    return landed(response(FETCH, 12, body), "response", FETCH, 12, **options)


V2 = batch([record(CANARY, CANARY, 0, [(CANARY, CANARY)])] * 2, base_offset=5, producer=(4711, 3, 17))
V2_NAMED = batch([record(CANARY, CANARY, 0, [(b"trace", CANARY)])] * 2, base_offset=5)
"""The names of record headers are stored under the policy ``hash``."""
V2_GZIP = batch([record(CANARY, CANARY)] * 9, attributes=batches.GZIP)
V1 = message(CANARY, CANARY, offset=8)
V0 = message(CANARY, CANARY, magic=0, offset=9)
NULLS = message(None, CANARY)
WRAPPER = wrapper([V1, V1], offset=11)
