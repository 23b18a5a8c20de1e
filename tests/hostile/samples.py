"""Which valid frames do the hostile tests start from? Made ones of every api, and recorded ones."""

from __future__ import annotations

import base64
import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from decoder.kafka.schema.table import FieldLayout, StructLayout, api_versions
from decoder.model import Direction, FrameFlags, PayloadPolicy
from pipeline.capture.runs.one_capture import frames_of
from tests.decoder.kafka.batches import TRANSACTIONAL, batch, message, record, wrapper
from tests.decoder.kafka.encode import find_layout, frame
from tests.paths import CAPTURES

RECORDS = [
    batch([record(b"key", b"value")], base_offset=7, producer=(4711, 3, 0), attributes=TRANSACTIONAL),
    message(b"key", b"value", offset=3) + wrapper([message(None, b"v")]),
]


@dataclass(frozen=True, slots=True)
class Sample:
    """A frame that decodes, and what its reader needs to know."""

    data: bytes
    direction: Direction
    api_key: int
    api_version: int

    def __str__(self) -> str:
        return f"{self.direction} {self.api_key} v{self.api_version}"


@lru_cache(maxsize=1)
def made() -> tuple[Sample, ...]:
    """Of each api and kind the oldest and the newest version, every field filled, always the same."""
    return tuple(
        _made(kind, key, version)
        for key, versions in api_versions().items()
        for version in sorted(set(versions))
        for kind in ("request", "response")
    )


@lru_cache(maxsize=1)
def made_of_every_version() -> tuple[Sample, ...]:
    """Of each api and kind every version."""
    return tuple(
        _made(kind, key, version)
        for key, (oldest, newest) in api_versions().items()
        for version in range(oldest, newest + 1)
        for kind in ("request", "response")
    )


def _made(kind: Direction, key: int, version: int) -> Sample:
    source = random.Random(f"{kind} {key} {version}")
    body = _struct(find_layout(kind, key, version)[0], source)
    return Sample(frame(kind, key, version, body), kind, key, version)


@lru_cache(maxsize=1)
def recorded() -> tuple[Sample, ...]:
    """Of each direction, api and version in the sample captures the smallest frame."""
    smallest: dict[tuple[str, int, int], Sample] = {}
    for sample in _captured("lengths"):
        sort = (sample.direction, sample.api_key, sample.api_version)
        if sort not in smallest or len(sample.data) < len(smallest[sort].data):
            smallest[sort] = sample
    return tuple(smallest[sort] for sort in sorted(smallest))


@lru_cache(maxsize=1)
def all_recorded() -> tuple[Sample, ...]:
    """Every frame in the sample captures with its records as they were on the wire, equal ones once."""
    return tuple(dict.fromkeys(_captured("full")))


def _captured(policy: PayloadPolicy) -> Iterator[Sample]:
    for path in sorted(CAPTURES.glob("*.pcap")):
        for item in frames_of(str(path), payload_policy=policy):
            key, version = getattr(item, "api_key", None), getattr(item, "api_version", None)
            if key is None or version is None or item.flags & FrameFlags.TRUNCATED:
                continue
            if version <= api_versions().get(key, (0, -1))[1]:
                yield Sample(item.frame, item.direction, key, version)


def _struct(layout: StructLayout, source: random.Random, depth: int = 0) -> dict[str, Any]:
    return {item.name: _value(item, source, depth) for item in layout.fields}


def _value(item: FieldLayout, source: random.Random, depth: int) -> Any:
    if not item.array:
        return _element(item, source, depth)
    count = source.choice([1, 2]) if depth == 0 else 1  # deep messages would grow without showing more
    return [_element(item, source, depth) for _ in range(count)]


def _element(item: FieldLayout, source: random.Random, depth: int) -> Any:
    if item.struct is not None:
        return _struct(item.struct, source, depth + 1)
    values: dict[str, Any] = {
        "bool": source.random() < 0.5,
        "string": source.choice(["a", "topic-é", "consumer-group"]),
        "bytes": source.randbytes(source.randrange(12)),
        "records": source.choice(RECORDS),
        "uuid": base64.urlsafe_b64encode(source.randbytes(16)).decode()[:22],
        "float64": source.random(),
    }
    return values.get(item.type, source.choice([1, 7, 100]))
