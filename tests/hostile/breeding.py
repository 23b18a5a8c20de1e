"""How does an attack become a worse one? Random changes of what is sent, and of how it comes."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Sequence
from dataclasses import replace

from tests.decoder.mongodb.build import COMPRESSORS, compressed
from tests.hostile import mongodb
from tests.hostile.attack import AT_ONCE, DELIVERIES, ROUNDS, SEGMENTS, Attack, Sent

MOST_TALK_BYTES = 256 * 1024
MOST_SENDS = 64
"""A round that is larger shows no more, and leaves fewer rounds."""

BYTES = (
    mongodb.flip_bytes, mongodb.truncate, mongodb.insert, mongodb.delete, mongodb.repeat, mongodb.splice,
    mongodb.lie_about_a_length, mongodb.change_a_type, mongodb.nest,
)  # fmt: skip


class Breeder:
    """Makes children.

    Args:
        source: of all chance.
        corpus: messages that may be mixed in.
    """

    def __init__(self, source: random.Random, corpus: Sequence[bytes]) -> None:
        self._source = source
        self._corpus = corpus

    def child(self, parent: Attack, other: Attack) -> Attack:
        """A parent with one to three changes; some take something of another attack."""
        child, done = parent, []
        for _ in range(self._source.choice((1, 1, 2, 3))):
            change = self._source.choice(CHANGES)
            child = change(self, child, other)
            done.append(change.__name__.strip("_"))
        talk = _bounded(child.talk)
        family = parent.name.split(" + ")[0]
        return replace(child, name=f"{family} + {', '.join(done)}", talk=talk)

    def _bytes(self, attack: Attack, _: Attack) -> Attack:
        def change(data: bytes) -> bytes:
            return self._source.choice(BYTES)(data, self._source, self._source.choice(self._corpus))

        return self._with_one(attack, change)

    def _length(self, attack: Attack, _: Attack) -> Attack:
        """Its length field is right again, as one of either protocol."""
        order = self._source.choice((">", "<"))

        def change(data: bytes) -> bytes:
            return struct.pack(f"{order}i", len(data) - 4 * (order == ">")) + data[4:]

        return self._with_one(attack, change)

    def _compress(self, attack: Attack, _: Attack) -> Attack:
        compressor = self._source.choice([*COMPRESSORS])
        return self._with_one(attack, lambda data: compressed(data, compressor) if len(data) > 16 else data)

    def _times(self, attack: Attack, _: Attack) -> Attack:
        count = self._source.choice((2, 3, 10, 100))
        return self._with_one(attack, lambda data: data * count)

    def _tail_times(self, attack: Attack, _: Attack) -> Attack:
        """The last bytes of a message many times."""
        size, count = self._source.choice((1, 2, 7, 20)), self._source.choice((10, 100, 1000))
        return self._with_one(attack, lambda data: data + data[-size:] * count)

    def _drop(self, attack: Attack, _: Attack) -> Attack:
        at = self._source.randrange(len(attack.talk) or 1)
        return replace(attack, talk=attack.talk[:at] + attack.talk[at + 1 :])

    def _first_part(self, attack: Attack, _: Attack) -> Attack:
        return replace(attack, talk=attack.talk[: self._source.randrange(len(attack.talk) or 1) + 1])

    def _other_side(self, attack: Attack, _: Attack) -> Attack:
        at = self._source.randrange(len(attack.talk) or 1)
        turned = tuple((1 - side, data) for side, data in attack.talk[at : at + 1])
        return replace(attack, talk=attack.talk[:at] + turned + attack.talk[at + 1 :])

    def _joined(self, attack: Attack, _: Attack) -> Attack:
        """All that one side sends goes at once."""
        sides = [b"".join(data for side, data in attack.talk if side == one) for one in (0, 1)]
        return replace(attack, talk=tuple((side, data) for side, data in enumerate(sides) if data))

    def _more_of_the_corpus(self, attack: Attack, _: Attack) -> Attack:
        at = self._source.randrange(len(attack.talk) + 1)
        more = ((self._source.randrange(2), self._source.choice(self._corpus)),)
        return replace(attack, talk=attack.talk[:at] + more + attack.talk[at:])

    def _more_of_another(self, attack: Attack, other: Attack) -> Attack:
        begin = self._source.randrange(len(other.talk) or 1)
        more = other.talk[begin : begin + self._source.choice((1, 2, 4))]
        at = self._source.randrange(len(attack.talk) + 1)
        return replace(attack, talk=attack.talk[:at] + more + attack.talk[at:])

    def _come_as_another(self, attack: Attack, other: Attack) -> Attack:
        return replace(attack, segment=other.segment, rounds=other.rounds, delivery=other.delivery)

    def _segment(self, attack: Attack, _: Attack) -> Attack:
        return replace(attack, segment=self._source.choice(SEGMENTS))

    def _rounds(self, attack: Attack, _: Attack) -> Attack:
        return replace(attack, rounds=self._source.choice(ROUNDS))

    def _at_once(self, attack: Attack, _: Attack) -> Attack:
        return replace(attack, at_once=self._source.choice(AT_ONCE))

    def _delivery(self, attack: Attack, _: Attack) -> Attack:
        return replace(attack, delivery=self._source.choice([*DELIVERIES]))

    def _opened(self, attack: Attack, _: Attack) -> Attack:
        return replace(attack, is_opened=not attack.is_opened)

    def _closed(self, attack: Attack, _: Attack) -> Attack:
        return replace(attack, is_closed=not attack.is_closed)

    def _with_one(self, attack: Attack, change: Callable[[bytes], bytes]) -> Attack:
        """One message of it is changed."""
        if not attack.talk:
            return attack
        at = self._source.randrange(len(attack.talk))
        side, data = attack.talk[at]
        return replace(attack, talk=(*attack.talk[:at], (side, change(data)[:MOST_TALK_BYTES]), *attack.talk[at + 1 :]))


CHANGES: tuple[Callable[[Breeder, Attack, Attack], Attack], ...] = (
    Breeder._bytes, Breeder._bytes, Breeder._length, Breeder._compress, Breeder._times, Breeder._tail_times,
    Breeder._drop, Breeder._first_part, Breeder._other_side, Breeder._joined, Breeder._more_of_the_corpus,
    Breeder._more_of_another, Breeder._come_as_another, Breeder._segment, Breeder._rounds, Breeder._at_once,
    Breeder._delivery, Breeder._opened, Breeder._closed,
)  # fmt: skip


def _bounded(talk: Sequence[Sent]) -> tuple[Sent, ...]:
    """As much of it as a round may have."""
    kept, size = [], 0
    for side, data in talk[:MOST_SENDS]:
        part = data[: MOST_TALK_BYTES - size]
        size += len(part)
        if part:
            kept.append((side, part))
    return tuple(kept)
