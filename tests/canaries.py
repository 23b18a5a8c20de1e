"""How do we know that no secret gets ashore? We plant marked ones in a capture, and look for them in what came of it.

A canary is a text that occurs nowhere else. Credentials have one, record payload another, so that a test can tell what
a policy promises of each.
"""

from __future__ import annotations

import base64
import random
import string
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.capture.packets.packet import Packet
from tests.decoder.kafka.batches import CONTROL, TRANSACTIONAL, batch, message, record, wrapper
from tests.decoder.kafka.compressed import CODECS, xerial
from tests.decoder.kafka.credentials import credentials
from tests.decoder.kafka.encode import request, response
from tests.pipeline.capture import wire
from tests.pipeline.capture.wire import Flow, prefixed

PRODUCE, FETCH, SASL_HANDSHAKE, API_VERSIONS, SHARE_FETCH = 0, 1, 17, 18, 78
_WINDOW = 10
_PACKET_HEADERS = 54
"""Bytes of Ethernet, IP and TCP in front of what a packet carries."""
_TOPIC_ID = "dGhlIHRvcGljIG9yZGVycw"


def canary(name: str) -> bytes:
    """A text of 24 letters and digits, the same for the same name."""
    source = random.Random(f"canary {name}")
    return "".join(source.choices(string.ascii_letters + string.digits, k=24)).encode()


@dataclass(frozen=True, slots=True)
class Said:
    """One message of a conversation with its length prefix.

    Attributes:
        side: 0 client, 1 server.
        body_at: from which byte on damage leaves it what it is; None: it must not be damaged at all.
    """

    side: int
    data: bytes
    body_at: int | None = None


Conversation = list[Said]


@cache
def conversations(credential: bytes, payload: bytes) -> list[Conversation]:
    """What clients and brokers say to each other, with the secrets in every place that we know of."""
    talks = [_exchanges(list(credentials(credential).values())), _records(payload), _metadata(credential)]
    talks += [*_raw_tokens(credential), *_unreadable(credential)]
    return talks


def write_capture(path: Path, credential: bytes, payload: bytes) -> Path:
    """All conversations, one connection each."""
    packets = [p for flow in flows(conversations(credential, payload)) for p in flow.packets]
    path.write_bytes(wire.pcap(packets))
    return path


def flows(talks: Sequence[Conversation]) -> Iterator[Flow]:
    """One connection for each conversation; each message is a packet unless it is larger."""
    ts = wire.T0
    for number, talk in enumerate(talks):
        flow = Flow(client=("10.0.0.1", 40_000 + number), ts=ts).open()
        for said in talk:
            flow.send(said.side, said.data)
        flow.close()
        ts = flow.ts
        yield flow


def _request(key: int, version: int, body: dict, number: int) -> Said:
    return Said(0, prefixed(request(key, version, body, correlation_id=number)), 22)


def _response(key: int, version: int, body: dict, number: int) -> Said:
    return Said(1, prefixed(response(key, version, body, correlation_id=number)), 10)


def _exchanges(bodies: Sequence[tuple]) -> Conversation:
    """Each body with an empty other half."""
    talk = [_request(API_VERSIONS, 3, {}, 0), _response(API_VERSIONS, 3, {}, 0)]
    for number, (kind, key, version, body) in enumerate(bodies, start=1):
        talk.append(_request(key, version, body if kind == "request" else {}, number))
        talk.append(_response(key, version, body if kind == "response" else {}, number))
    return talk


def record_sets(payload: bytes) -> dict[str, bytes]:
    """Records with the payload in keys, values and header values, in each format and codec."""
    one = record(payload, payload * 2, 0, [(b"trace", payload), (b"none", None)])
    rest = [record(None, payload, 1), record(payload, None, 2), record(b"", b"", 3)]
    plain = b"".join([one, *rest])
    sets = {
        "v2": batch([one, *rest], producer=(4711, 3, 17)),
        "v2 transactional": batch([one], attributes=TRANSACTIONAL, producer=(4711, 3, 17)),
        "v2 that claims to be a control batch": batch([one], attributes=CONTROL)[:-1] + b"\1",
        "v2 cut off": batch([one])[:-5],
        "v2 with a wrong checksum": batch([one])[:-1] + b"\1",
        "v1": message(payload, payload * 2),
        "v0": message(payload, payload * 2, magic=0),
        "v1 wrapper": wrapper([message(payload, payload)]),
        "v0 wrapper": wrapper([message(payload, payload, magic=0)], magic=0),
        "no batch at all": payload * 3,
    }
    for name, (number, compress) in {**CODECS, "xerial": (2, xerial)}.items():
        sets[f"v2 {name}"] = batch([], attributes=number, compressed=compress(plain), count=4)
    return sets


def compressed_traces(payload: bytes) -> list[bytes]:
    """Pieces of the compressed records, in which the payload itself cannot be seen.

    Not those that the records have in common with others of the same shape.
    """
    others = b"".join(data for name in ("another", "open payload") for data in record_sets(canary(name)).values())
    hidden = [data for data in record_sets(payload).values() if payload not in data]
    pieces = [data[at : at + 12] for data in hidden for at in range(len(data) // 2, len(data) - 16, 12)]
    found = [piece for piece in pieces if piece not in others]
    assert len(found) > len(hidden)
    return found


def _produce(records: bytes, version: int, number: int) -> Said:
    topic = {"topicId": _TOPIC_ID} if version >= 13 else {"name": "orders"}
    body = {"topicData": [{**topic, "partitionData": [{"index": 3, "records": records}]}], "acks": -1}
    return _request(PRODUCE, version, body, number)


def _fetched(records: bytes, version: int, number: int, *, name: str = "orders", topic_id: str = _TOPIC_ID) -> Said:
    topic = {"topicId": topic_id} if version >= 13 else {"topic": name}
    body = {"responses": [{**topic, "partitions": [{"partitionIndex": 3, "records": records}]}]}
    return _response(FETCH, version, body, number)


def _records(payload: bytes) -> Conversation:
    talk: Conversation = []
    number = 0
    for records in record_sets(payload).values():
        for version in (7, 9, 13):
            number += 1
            talk += [_produce(records, version, number), _response(PRODUCE, version, {}, number)]
        for version in (4, 12, 17):
            number += 1
            talk += [_request(FETCH, version, {}, number), _fetched(records, version, number)]
        number += 1
        shared = {"responses": [{"topicId": _TOPIC_ID, "partitions": [{"partitionIndex": 1, "records": records}]}]}
        talk += [_request(SHARE_FETCH, 1, {}, number), _response(SHARE_FETCH, 1, shared, number)]
    return talk


def _metadata(secret: bytes) -> Conversation:
    """What a broker fetches from a controller. Damage could rename the topic, so there is none."""
    talk: Conversation = []
    for number, records in enumerate(record_sets(secret).values()):
        version = (4, 12, 17)[number % 3]
        answer = _fetched(records, version, number, name="__cluster_metadata", topic_id="AAAAAAAAAAAAAAAAAAAAAQ")
        talk += [_request(FETCH, version, {}, number), Said(1, answer.data)]
    return talk


def _raw_tokens(secret: bytes) -> list[Conversation]:
    """After SaslHandshake v0 tokens have a length, but no header (KIP-43)."""

    def after_handshake(*tokens: bytes) -> Conversation:
        talk = [_request(SASL_HANDSHAKE, 0, {"mechanism": "PLAIN"}, 1), _response(SASL_HANDSHAKE, 0, {}, 1)]
        for number, token in enumerate(tokens):
            talk.append(Said(number % 2, prefixed(token), 4))
        return [*talk, _request(API_VERSIONS, 3, {}, 2), _response(API_VERSIONS, 3, {}, 2)]

    scram = (
        b"n,,n=alice,r=" + secret,
        b"r=" + secret + b",s=" + base64.b64encode(secret) + b",i=4096",
        b"c=biws,r=" + secret + b",p=" + base64.b64encode(secret),
        b"v=" + secret,
    )
    plain = after_handshake(b"\0alice\0" + secret, b"")
    bearer = after_handshake(b"n,,\1auth=Bearer " + secret + b"\1\1", b"")
    twice = [*plain, *_exchanges([credentials(secret)["SaslAuthenticate request"]])]
    return [plain, after_handshake(*scram), bearer, plain[2:], after_handshake(*scram)[2:], twice]


def _unreadable(secret: bytes) -> list[Conversation]:
    """Credentials in messages that do not decode, or that nobody can tell from others."""
    good = credentials(secret)
    hello = [_request(API_VERSIONS, 3, {}, 1), _response(API_VERSIONS, 3, {}, 1)]
    unknown: Conversation = [*hello]
    for number, (kind, key, _, _) in enumerate(good.values(), start=2):
        asked = struct.pack(">hhih", key, 99, number, 6) + b"client\0"
        answer = struct.pack(">i", number) + b"\0"
        unknown.append(Said(0, prefixed(asked + (secret if kind == "request" else b"")), 22))
        unknown.append(Said(1, prefixed(answer + (secret if kind == "response" else b"")), 10))
    trailing = [
        Said(said.side, prefixed(said.data[4:] + secret), said.body_at) if secret in said.data else said
        for said in _exchanges(list(good.values()))
    ]
    future = Said(0, prefixed(struct.pack(">hhih", 999, 0, 2, 6) + b"client" + secret), 20)
    orphans = [said for said in _exchanges(list(good.values())) if said.side == 1]
    cut = _request(36, 2, {"authBytes": secret}, 2)
    return [
        unknown,
        trailing,
        [*hello, future],
        [*hello, *orphans],
        [*hello, Said(0, cut.data[:-3])],
    ]


@cache
def _spoken(credential: bytes, payload: bytes) -> list[tuple[Conversation, Flow]]:
    talks = conversations(credential, payload)
    return list(zip(talks, flows(talks), strict=True))


def harmed(source: random.Random, credential: bytes, payload: bytes) -> list[Packet]:
    """The capture with packets lost, cut, doubled, mixed up, and bytes changed in the bodies of messages."""
    packets: list[Packet] = []
    for talk, flow in _spoken(credential, payload):
        said = {number + 3: one for number, one in enumerate(talk)}  # behind the handshake
        begin = source.choice([0, 0, 3, source.randrange(len(flow.packets))])
        kept = []
        for number, packet in enumerate(flow.packets):
            one = said.get(number)
            if number < begin or source.random() < 0.05:
                continue
            hurt = packet
            if one is not None and one.body_at is not None and source.random() < 0.2:
                hurt = _changed(source, hurt, _PACKET_HEADERS + one.body_at)
            if source.random() < 0.05:
                hurt = _with_data(hurt, hurt.data[: source.randrange(14, len(hurt.data) + 1)])
            kept += [hurt] * source.choice([1, 1, 1, 1, 2])
        for at in range(len(kept) - 1):
            if source.random() < 0.05:
                kept[at], kept[at + 1] = kept[at + 1], kept[at]
        packets += kept
    return packets


def _changed(source: random.Random, packet: Packet, body_at: int) -> Packet:
    data = bytearray(packet.data)
    if body_at < len(data):
        for _ in range(source.choice([1, 1, 3])):
            data[source.randrange(body_at, len(data))] = source.randrange(256)
    return _with_data(packet, bytes(data))


def _with_data(packet: Packet, data: bytes) -> Packet:
    return packet._replace(data=data)


def traces(*secrets: bytes) -> list[bytes]:
    """Every piece of the secrets as it is, in hex, UTF-16, and base64 wherever it begins in it."""
    found: set[bytes] = set()
    for secret in secrets:
        for at in range(len(secret) - _WINDOW + 1):
            piece = secret[at : at + _WINDOW]
            text = piece.decode()
            found |= {piece, piece.hex().encode(), piece.hex().upper().encode()}
            found |= {text.encode("utf-16-le"), text.encode("utf-16-be")}
            for before in range(3):
                encoded = base64.b64encode(bytes(before) + piece)
                whole = (before + len(piece)) * 8 // 6
                found.add(encoded[-(-before * 8 // 6) : whole])
    return sorted(found)


def seen_in(data: bytes, needles: Sequence[bytes]) -> list[bytes]:
    return [needle for needle in needles if needle in data]


def seen_in_files(root: Path, needles: Sequence[bytes]) -> list[str]:
    """Files below a folder in which a needle is: as they are, and Parquet files as they are read."""
    return [
        f"{path.relative_to(root)}{how}: {found}"
        for path in sorted(root.rglob("*"))
        if path.is_file()
        for how, data in (("", path.read_bytes()), (" (read)", _read_back(path)))
        if (found := seen_in(data, needles))
    ]


def _read_back(path: Path) -> bytes:
    """The values of a Parquet file, uncompressed; nothing of other files."""
    if path.suffix != ".parquet" or path.stat().st_size == 0:
        return b""
    table = pq.ParquetFile(path).read()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()
