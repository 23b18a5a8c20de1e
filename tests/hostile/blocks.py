"""Which mutated frames does the campaign read? Made by the block, since chance is cheaper for many at once.

The same seed and number of a block give the same frames. Small frames are preferred: they show as much as large ones,
and more of them are read in the same time.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from decoder.model import Direction
from tests.decoder.kafka.kernel.asked import Asked
from tests.decoder.mongodb.build import COMPRESSORS, checksummed, compressed
from tests.hostile import planted
from tests.hostile.lengths import COMPACT, INT16, INT32, length_places
from tests.hostile.mongodb import samples as mongodb_samples
from tests.hostile.mutate import FLAGS
from tests.hostile.samples import Sample, all_recorded, made_of_every_version

BLOCK = 1000
"""Frames of a block."""

MOST_BYTES = 4096
MOST_SAMPLE_BYTES = 2048
SMALL_BYTES = 60
"""A frame is chosen by one in this many bytes and its size."""

PLANTED_PART = 0.35
"""Of the frames, those that begin as one with canaries."""

_CHANGES = (1, 1, 1, 1, 1, 2, 2, 3)
_MOST_CHANGES = max(_CHANGES)
_BYTES = [bytes([value]) for value in range(256)]
_FLIPS = (0, 1, 0x7F, 0x80, 0xFF)
_ANY_LENGTH = [*INT16, *INT32, *COMPACT]
_INT32_LITTLE = [struct.pack("<i", n) for n in (0, 1, 4, 5, 15, 16, 2**31 - 1, -1, -(2**31), 255, 65_536, 48_000_001)]
_TYPES = bytes([*range(0x15), 0x7F, 0xFF])
_DEPTHS = (1, 2, 3, 5, 10, 59, 60, 61, 199, 200)


@dataclass(frozen=True, slots=True)
class Good:
    """A frame to mutate.

    Attributes:
        places: where lengths are in it, and what may be there instead.
    """

    data: bytes
    direction: Direction
    api_key: int | None
    api_version: int | None
    places: tuple[tuple[int, int, list[bytes]], ...] = ()


Change = Callable[[bytes, int, int, int, Good, Good], bytes]
"""A frame, three random numbers below 2^31, the good frame that it was, another."""


def block(protocol: str, seed: int, number: int, count: int = BLOCK) -> list[Asked]:
    """The frames of a block."""
    pool, weights = _pools()[protocol]
    changes = CHANGES[protocol]
    chance = np.random.Generator(np.random.PCG64([seed, number, len(protocol)]))
    chosen, others = (chance.choice(len(pool), count, p=weights).tolist() for _ in range(2))
    counts = chance.choice(_CHANGES, count).tolist()
    kinds = chance.integers(len(changes), size=(count, _MOST_CHANGES)).tolist()
    numbers = chance.integers(1 << 31, size=(count, _MOST_CHANGES, 3)).tolist()
    drawn, flagged = chance.random(count).tolist(), chance.random(count).tolist()
    frames = []
    for index in range(count):
        good, other = pool[chosen[index]], pool[others[index]]
        data = good.data
        for step in range(counts[index]):
            a, b, c = numbers[index][step]
            data = changes[kinds[index][step]](data, a, b, c, good, other)
        if len(data) > MOST_BYTES:
            data = data[:MOST_BYTES]
        direction, key, version = good.direction, good.api_key, good.api_version
        a, b, c = numbers[index][0]
        if drawn[index] > 0.96:
            direction, key, version = _otherwise(good, other, a, b, c)
        if protocol == "mongodb" and drawn[index] < 0.7 and len(data) >= 16:
            data = struct.pack("<i", len(data)) + data[4:]
        flags = c % (FLAGS + 1) if flagged[index] < 0.03 else 0
        frames.append(Asked(data, direction, key, version, flags))
    return frames


def _otherwise(good: Good, other: Good, a: int, b: int, c: int) -> tuple[Direction, int | None, int | None]:
    """What is true of another frame, or nothing, or nonsense."""
    if good.api_key is None:
        return ("request" if good.direction == "response" else "response"), None, None
    if a % 4:
        return other.direction, other.api_key, other.api_version
    if b % 2:
        return good.direction, None, None
    return good.direction, b % 2**16 - 2**15, c % 2**16 - 2**15


@cache
def _pools() -> dict[str, tuple[list[Good], Any]]:
    kafka = [_of_sample(one) for one in (*planted.kafka(), *made_of_every_version(), *all_recorded())]
    mongodb = [Good(data, direction, None, None) for direction, data in (*planted.mongodb(), *mongodb_samples())]
    with_canaries = {"kafka": len(planted.kafka()), "mongodb": len(planted.mongodb())}
    return {
        name: (pool, _weights(pool, with_canaries[name])) for name, pool in (("kafka", kafka), ("mongodb", mongodb))
    }


def _of_sample(sample: Sample) -> Good:
    if len(sample.data) > MOST_SAMPLE_BYTES:
        return Good(sample.data, sample.direction, sample.api_key, sample.api_version)
    return Good(sample.data, sample.direction, sample.api_key, sample.api_version, tuple(length_places(sample)))


def _weights(pool: Sequence[Good], with_canaries: int) -> Any:
    sizes = np.array([len(one.data) for one in pool])
    weights = np.where(sizes <= MOST_SAMPLE_BYTES, 1 / (SMALL_BYTES + sizes), 0.0)
    first, rest = weights[:with_canaries], weights[with_canaries:]
    return np.concatenate((first * PLANTED_PART / first.sum(), rest * (1 - PLANTED_PART) / rest.sum()))


def _flip(data: bytes, a: int, b: int, c: int, _: Good, __: Good) -> bytes:
    if not data:
        return data
    at = a % len(data)
    value = _FLIPS[b % 5] if b % 8 < 5 else c % 256
    return data[:at] + _BYTES[value] + data[at + 1 :]


def _flip_a_bit(data: bytes, a: int, b: int, _: int, __: Good, ___: Good) -> bytes:
    if not data:
        return data
    at = a % len(data)
    return data[:at] + _BYTES[data[at] ^ (1 << b % 8)] + data[at + 1 :]


def _truncate(data: bytes, a: int, _: int, __: int, ___: Good, ____: Good) -> bytes:
    return data[: a % (len(data) + 1)]


def _insert(data: bytes, a: int, b: int, c: int, _: Good, __: Good) -> bytes:
    at = a % (len(data) + 1)
    return data[:at] + (b * 2**62 + c * 2**31 + a).to_bytes(16, "big")[-(1 << b % 5) :] + data[at:]


def _delete(data: bytes, a: int, b: int, _: int, __: Good, ___: Good) -> bytes:
    at = a % (len(data) + 1)
    return data[:at] + data[at + (1 << b % 5) :]


def _repeat(data: bytes, a: int, b: int, c: int, _: Good, __: Good) -> bytes:
    start = a % (len(data) + 1)
    end = min(start + b % 64, len(data))
    return data[:end] + data[start:end] * (1, 1, 2, 16)[c % 4] + data[end:]


def _lie(data: bytes, a: int, b: int, _: int, good: Good, __: Good) -> bytes:
    """Where the good frame had a length; after other changes that may be anywhere."""
    if not good.places:
        return data
    start, end, lies = good.places[a % len(good.places)]
    return data[:start] + lies[b % len(lies)] + data[end:]


def _nearly(data: bytes, a: int, b: int, _: int, good: Good, __: Good) -> bytes:
    """A length that is wrong by a little."""
    if not good.places:
        return data
    _, end, _ = good.places[a % len(good.places)]
    at = end - 1
    if not 0 <= at < len(data):
        return data
    return data[:at] + _BYTES[(data[at] + (1, 2, 255, 254, 16)[b % 5]) % 256] + data[at + 1 :]


def _lie_anywhere(data: bytes, a: int, b: int, _: int, __: Good, ___: Good) -> bytes:
    at, lie = a % (len(data) + 1), _ANY_LENGTH[b % len(_ANY_LENGTH)]
    return data[:at] + lie + data[at + len(lie) :]


def _splice(data: bytes, a: int, b: int, _: int, __: Good, other: Good) -> bytes:
    return data[: a % (len(data) + 1)] + other.data[b % (len(other.data) + 1) :]


def _zeros(data: bytes, a: int, b: int, _: int, __: Good, ___: Good) -> bytes:
    return data[: a % (len(data) + 1)] + bytes((10, 30, 100, 300)[b % 4])


def _little_lie(data: bytes, a: int, b: int, _: int, __: Good, ___: Good) -> bytes:
    """Where a small number is that may be a length of BSON."""
    size = len(data)
    for at in range(a % (size + 1), size - 4):
        if data[at] and data[at + 1 : at + 4] == b"\0\0\0":
            near = _BYTES[(data[at] + (1, 4, 251, 255)[b % 4]) % 256] + b"\0\0\0"
            return data[:at] + (near if b % 3 else _INT32_LITTLE[b % len(_INT32_LITTLE)]) + data[at + 4 :]
    return data


def _change_a_type(data: bytes, a: int, b: int, _: int, __: Good, ___: Good) -> bytes:
    size = len(data)
    for at in range(min(20 + a % max(size - 20, 1), size), min(size, 20 + a % max(size - 20, 1) + 50)):
        if data[at] in _TYPES:
            return data[:at] + _BYTES[_TYPES[b % len(_TYPES)]] + data[at + 1 :]
    return data


def _nest(data: bytes, a: int, _: int, __: int, ___: Good, ____: Good) -> bytes:
    """Documents in each other, up to too many."""
    return data[:16] + bytes(5) + _nested(_DEPTHS[a % len(_DEPTHS)])


@cache
def _nested(depth: int) -> bytes:
    sizes = [5 + 8 * n for n in range(depth)]
    return b"".join(struct.pack("<i", size) + b"\3a\0" for size in sizes[:0:-1]) + struct.pack("<i", 5) + b"\0" * depth


def _compress(data: bytes, a: int, _: int, __: int, ___: Good, ____: Good) -> bytes:
    """What was changed before is then inside."""
    return compressed(data, [*COMPRESSORS][a % len(COMPRESSORS)]) if len(data) >= 16 else data


def _checksum(data: bytes, a: int, _: int, __: int, ___: Good, ____: Good) -> bytes:
    if len(data) < 20:
        return data
    return checksummed(struct.pack("<i", len(data)) + data[4:], wrong=a % 2)


_ANY: tuple[Change, ...] = (_flip, _flip, _flip_a_bit, _truncate, _insert, _delete, _repeat, _lie_anywhere, _splice)
CHANGES: dict[str, tuple[Change, ...]] = {
    "kafka": (*_ANY, _lie, _lie, _nearly, _zeros),
    "mongodb": (
        *_ANY,
        _little_lie,
        _little_lie,
        _change_a_type,
        _change_a_type,
        _nest,
        _compress,
        _compress,
        _checksum,
    ),
}
