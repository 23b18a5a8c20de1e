"""What does a frame become in hostile hands? The same seed and number give the same frame."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from decoder.model import Direction, FrameFlags
from tests.hostile.lengths import COMPACT, INT16, INT32, Place, length_places
from tests.hostile.samples import Sample, all_recorded, made_of_every_version

MOST_BYTES = 32 * 1024
"""Splices and repetitions may not grow a frame beyond this."""
FLAGS = 2 * max(FrameFlags) - 1


@dataclass(frozen=True, slots=True)
class Hostile:
    """A frame to decode, what its reader is given with it, and how it was made."""

    data: bytes
    direction: Direction
    api_key: int | None
    api_version: int | None
    flags: int
    made_by: str


class Mutator:
    """Makes hostile frames of good ones.

    Args:
        seed: frames of another seed are others.
        samples: good frames, in pools among which the choice is even.
    """

    def __init__(self, seed: int, samples: Sequence[Sequence[Sample]] | None = None) -> None:
        self._seed = seed
        self._pools = samples or (made_of_every_version(), all_recorded())

    def frame(self, number: int) -> Hostile:
        """The frame of this number."""
        source = random.Random((self._seed << 48) + number)
        sample, other = self._sample(source), self._sample(source)
        data, names = sample.data, []
        for _ in range(source.choice((1, 1, 1, 2, 3, 5))):
            mutation = source.choice(MUTATIONS)
            data = mutation(data, source, sample, other)[:MOST_BYTES]
            names.append(mutation.__name__)
        direction, key, version = _context(source, sample, other)
        flags = source.randrange(FLAGS + 1) if source.random() < 0.05 else 0
        return Hostile(data, direction, key, version, flags, f"{sample}: {', '.join(names)}")

    def _sample(self, source: random.Random) -> Sample:
        return source.choice(source.choice(self._pools))


def _context(source: random.Random, sample: Sample, other: Sample) -> tuple[Direction, int | None, int | None]:
    """Mostly the truth; sometimes what is true of another frame, or nothing."""
    chance = source.random()
    if chance < 0.92:
        return sample.direction, sample.api_key, sample.api_version
    if chance < 0.97:
        return other.direction, other.api_key, other.api_version
    if chance < 0.98:
        return sample.direction, None, None
    return sample.direction, source.randrange(-(2**15), 2**15), source.randrange(-(2**15), 2**15)


def flip_bytes(data: bytes, source: random.Random, *_: Sample) -> bytes:
    changed = bytearray(data)
    for _time in range(source.choice((1, 1, 2, 8)) if data else 0):
        changed[source.randrange(len(changed))] = source.choice((0, 1, 0x7F, 0x80, 0xFF, source.randrange(256)))
    return bytes(changed)


def truncate(data: bytes, source: random.Random, *_: Sample) -> bytes:
    return data[: source.randrange(len(data) + 1)]


def insert(data: bytes, source: random.Random, *_: Sample) -> bytes:
    at = source.randrange(len(data) + 1)
    return data[:at] + source.randbytes(source.choice((1, 2, 4, 16))) + data[at:]


def delete(data: bytes, source: random.Random, *_: Sample) -> bytes:
    at = source.randrange(len(data) + 1)
    return data[:at] + data[at + source.choice((1, 2, 4, 16)) :]


def repeat(data: bytes, source: random.Random, *_: Sample) -> bytes:
    start, end = sorted((source.randrange(len(data) + 1), source.randrange(len(data) + 1)))
    return data[:end] + data[start:end] * source.choice((1, 2, 50)) + data[end:]


def lie_about_a_length(data: bytes, source: random.Random, sample: Sample, _other: Sample) -> bytes:
    """Where the good frame had a length; after other mutations that may be anywhere."""
    places = _places(sample)
    if not places:
        return data
    start, end, lies = source.choice(places)
    return data[:start] + source.choice(lies) + data[end:]


def lie_anywhere(data: bytes, source: random.Random, *_: Sample) -> bytes:
    at = source.randrange(len(data) + 1)
    lie = source.choice(source.choice((INT16, INT32, COMPACT)))
    return data[:at] + lie + data[at + len(lie) :]


def splice(data: bytes, source: random.Random, _sample: Sample, other: Sample) -> bytes:
    return data[: source.randrange(len(data) + 1)] + other.data[source.randrange(len(other.data)) :]


def zeros_at_the_end(data: bytes, source: random.Random, *_: Sample) -> bytes:
    return data[: source.randrange(len(data) + 1)] + bytes(source.choice((10, 100, 3000)))


MUTATIONS: tuple[Callable[[bytes, random.Random, Sample, Sample], bytes], ...] = (
    flip_bytes,
    truncate,
    insert,
    delete,
    repeat,
    lie_about_a_length,
    lie_about_a_length,
    lie_anywhere,
    splice,
    zeros_at_the_end,
)


@cache
def _places(sample: Sample) -> tuple[Place, ...]:
    return tuple(length_places(sample))
