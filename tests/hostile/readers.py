"""Which readers does the long fuzzing drive? Each is one line of ``READERS``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from decoder import Message
from tests.decoder.kafka.kernel.asked import Asked, messages
from tests.hostile import mongodb
from tests.hostile.invariants import CODEC
from tests.hostile.mutate import Hostile, Mutator


@dataclass(frozen=True, slots=True)
class Reader:
    """A way to decode.

    Attributes:
        decode: frames to messages, one each.
        at_once: how many frames it is given in one call.
        compare: reads the frames in another way, and raises an AssertionError where that differs.
        compared: how many frames ``compare`` is given in one call.
    """

    decode: Callable[[Sequence[Hostile]], Sequence[Message]]
    at_once: int
    compare: Callable[[Sequence[Hostile], Sequence[Message]], None] | None = None
    compared: int = 1


def _plain(frames: Sequence[Hostile]) -> list[Message]:
    return [
        CODEC.decode(
            frame.data,
            direction=frame.direction,
            api_key=frame.api_key,
            api_version=frame.api_version,
            flags=frame.flags,
        )
        for frame in frames
    ]


def _batch(frames: Sequence[Hostile]) -> list[Message]:
    """The kernel, and the plain reader for what it gives back: as in decoder's users, but with its text as values."""
    return messages([Asked(f.data, f.direction, f.api_key, f.api_version, f.flags) for f in frames])


KAFKA = {"plain": Reader(_plain, at_once=1), "batch": Reader(_batch, at_once=1000)}
MONGODB = {"mongodb": Reader(mongodb.read_all, at_once=1, compare=mongodb.compare_kernel, compared=1000)}
READERS = {**KAFKA, **MONGODB}


def mutator(names: Sequence[str], seed: int) -> Mutator | mongodb.MongodbMutator:
    """What makes the frames for these readers."""
    return mongodb.MongodbMutator(seed) if set(names) <= MONGODB.keys() else Mutator(seed)
