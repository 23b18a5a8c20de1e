"""Makes hostile MongoDB messages and passes them to every part that reads them."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Sequence
from functools import cache
from typing import get_args

import crc32c

from decoder import Frame, Message
from decoder.field_hash import FieldHash
from decoder.model import Direction, FrameFlags, PayloadPolicy, RawFrame
from decoder.mongodb.codec.summary import summarise
from decoder.mongodb.codec.wire import HEADER_BYTES
from decoder.mongodb.extractors import Half, command_facts, handshake
from decoder.mongodb.stream.pairing import MongoPairer
from decoder.mongodb.stream.peek import possible_header
from decoder.redact import redact
from tests.captures.mongodb.exchanges import frames
from tests.captures.mongodb.record import ALL, HERE
from tests.decoder.mongodb.build import COMPRESSORS, checksummed, compressed
from tests.decoder.mongodb.kernel.asked import compare, compare_fronts
from tests.decoder.mongodb.redaction.planted import CREDENTIALS, PAYLOAD
from tests.hostile.invariants import CODEC
from tests.hostile.mutate import FLAGS, MOST_BYTES, Hostile

KEY = FieldHash(b"a key of this deployment")
POLICIES: tuple[PayloadPolicy, ...] = get_args(PayloadPolicy)
_LIES = [struct.pack("<i", n) for n in (0, 1, 4, 5, 15, 16, 2**31 - 1, -1, -(2**31), 255, 65_536, 48_000_001)]
TRIES = 50
"""Places looked at for one that a mutation is meant for."""
_DEPTHS = (1, 2, 3, 5, 10, 59, 60, 61, 199, 200, 1000)
"""Around the limits of the kernel and of the plain reader; most are small, as each level costs time."""
_TYPES = bytes([*range(0x15), 0x7F, 0xFF])

Good = tuple[Direction, bytes]


@cache
def samples() -> tuple[Good, ...]:
    """Every message of the recordings, and made ones of every opcode and type of value."""
    recorded = [(frame.direction, frame.frame) for name in ALL for frame in frames(HERE / f"{name}.pcap")]
    made = [*PAYLOAD.values(), *((direction, data) for direction, data, _ in CREDENTIALS.values())]
    return tuple(dict.fromkeys([*made, *recorded]))


class MongodbMutator:
    """Makes hostile frames of good ones; see tests.hostile.mutate.Mutator."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def frame(self, number: int) -> Hostile:
        """The frame of this number."""
        source = random.Random((self._seed << 48) + number)
        direction, data = source.choice(samples())
        other = source.choice(samples())[1]
        names = []
        for _ in range(source.choice((1, 1, 1, 2, 3, 5))):
            mutation = source.choice(MUTATIONS)
            data = mutation(data, source, other)[:MOST_BYTES]
            names.append(mutation.__name__)
        if source.random() < 0.7 and len(data) >= 16:
            data = struct.pack("<i", len(data)) + data[4:]
        if source.random() < 0.05:
            direction = "response" if direction == "request" else "request"
        flags = source.randrange(FLAGS + 1) if source.random() < 0.05 else 0
        return Hostile(data, direction, None, None, flags, f"mongodb {direction}: {', '.join(names)}")


def flip_bytes(data: bytes, source: random.Random, _: bytes) -> bytes:
    changed = bytearray(data)
    for _time in range(source.choice((1, 1, 2, 8)) if data else 0):
        changed[source.randrange(len(changed))] = source.choice((0, 1, 0x7F, 0x80, 0xFF, source.randrange(256)))
    return bytes(changed)


def truncate(data: bytes, source: random.Random, _: bytes) -> bytes:
    return data[: source.randrange(len(data) + 1)]


def insert(data: bytes, source: random.Random, _: bytes) -> bytes:
    at = source.randrange(len(data) + 1)
    return data[:at] + source.randbytes(source.choice((1, 2, 4, 16))) + data[at:]


def delete(data: bytes, source: random.Random, _: bytes) -> bytes:
    at = source.randrange(len(data) + 1)
    return data[:at] + data[at + source.choice((1, 2, 4, 16)) :]


def repeat(data: bytes, source: random.Random, _: bytes) -> bytes:
    start, end = sorted((source.randrange(len(data) + 1), source.randrange(len(data) + 1)))
    return data[:end] + data[start:end] * source.choice((1, 2, 50)) + data[end:]


def splice(data: bytes, source: random.Random, other: bytes) -> bytes:
    return data[: source.randrange(len(data) + 1)] + other[source.randrange(len(other)) :]


def lie_about_a_length(data: bytes, source: random.Random, _: bytes) -> bytes:
    """Where a small number is that may be one."""
    tried = (source.randrange(len(data) - 3) for _ in range(TRIES if len(data) > 3 else 0))
    at = next((at for at in tried if 0 < int.from_bytes(data[at : at + 4], "little") <= len(data)), None)
    if at is None:
        return data
    near = int.from_bytes(data[at : at + 4], "little") + source.choice((-5, -1, 1, 4))
    return data[:at] + source.choice([*_LIES, struct.pack("<i", near)]) + data[at + 4 :]


def change_a_type(data: bytes, source: random.Random, _: bytes) -> bytes:
    tried = (source.randrange(20, len(data)) for _ in range(TRIES if len(data) > 20 else 0))
    at = next((at for at in tried if data[at] in _TYPES), None)
    if at is None:
        return data
    return data[:at] + bytes([source.choice(_TYPES)]) + data[at + 1 :]


def nest(data: bytes, source: random.Random, _: bytes) -> bytes:
    """Documents in each other, up to too many."""
    return data[:16] + bytes(5) + _nested(source.choice(_DEPTHS))


@cache
def _nested(depth: int) -> bytes:
    sizes = [5 + 8 * n for n in range(depth)]
    return b"".join(struct.pack("<i", size) + b"\3a\0" for size in sizes[:0:-1]) + struct.pack("<i", 5) + b"\0" * depth


def compress(data: bytes, source: random.Random, _: bytes) -> bytes:
    """What was changed before is then inside."""
    return compressed(data, source.choice([*COMPRESSORS])) if len(data) >= 16 else data


def checksum(data: bytes, source: random.Random, _: bytes) -> bytes:
    if len(data) < 20:
        return data
    return checksummed(struct.pack("<i", len(data)) + data[4:], wrong=source.choice((0, 1)))


MUTATIONS: tuple[Callable[[bytes, random.Random, bytes], bytes], ...] = (
    flip_bytes,
    flip_bytes,
    truncate,
    insert,
    delete,
    repeat,
    splice,
    lie_about_a_length,
    lie_about_a_length,
    change_a_type,
    nest,
    compress,
    checksum,
)


def read_all(hostile: Sequence[Hostile]) -> list[Message]:
    """Each by all that the agent and the lake do with it."""
    return [_read(frame) for frame in hostile]


def _read(hostile: Hostile) -> Message:
    data, direction = hostile.data, hostile.direction
    message = CODEC.decode(data, protocol="mongodb", direction=direction, flags=hostile.flags)
    if len(data) >= 16:
        possible_header(data, 0, direction)
    check_summary(data, direction, message, hostile.flags)
    pairer, raw = MongoPairer(), RawFrame(data, len(data), 1, 1)
    key = pairer.request(raw) if direction == "request" else pairer.response(raw)
    policy = POLICIES[crc32c.crc32c(data) % len(POLICIES)]
    stored = redact(_landed(hostile, key.flags | hostile.flags, policy), KEY)
    again = message
    if (stored.frame, stored.flags) != (data, hostile.flags):
        again = CODEC.decode(stored.frame, protocol="mongodb", direction=direction, flags=stored.flags)
    assert again.error_code != "internal", again.error_detail
    half = Half(again.header, again.body, stored.flags)
    command_facts(half, half)
    handshake(half)
    assert (
        hostile.flags
        or message.status != "ok"
        or again.status in ("ok", "redacted")
        or stored.flags & FrameFlags.BODY_REMOVED
    )
    return message


def compare_kernel(hostile: Sequence[Hostile], messages: Sequence[Message]) -> None:
    """The kernel reads the same in what it reads of them, all at once."""
    compare(hostile, messages)
    compare_fronts(hostile)


def check_summary(data: bytes, direction: Direction, message: Message, flags: int = 0) -> None:
    """What is read without documents is what the whole message holds; ``flags``: those of the frame."""
    summary = summarise(data, direction, flags)
    if summary is None:
        assert len(data) < HEADER_BYTES
        return
    names = "messageLength", "requestID", "responseTo", "opCode"
    assert not message.header or tuple(message.header[name] for name in names) == summary.header
    if message.status != "ok":
        return
    assert summary.opcode == message.header.get("originalOpcode", message.header["opCode"])
    assert summary.compressor == message.header.get("compressor")
    bits = [message.body[name] for name in ("flagBits", "flags", "responseFlags") if name in message.body]
    assert [summary.flags] == (bits or [None])
    if direction == "request":
        facts = command_facts(Half(message.header, message.body), None)
        assert summary[4:] == (facts.command, facts.database, facts.collection)


def _landed(hostile: Hostile, flags: int, policy: PayloadPolicy) -> Frame:
    return Frame(
        "a", "c", "c-0", 0, hostile.direction, 1, 2, "10.0.0.1", 1, "10.0.0.2", 27017, "mongodb", None, None, None,
        None, len(hostile.data), hostile.data, int(flags), "f", policy,
    )  # fmt: skip
