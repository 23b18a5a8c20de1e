"""What lands of every field of every Kafka message? What decoder.kafka.redaction.secrets lists, and nothing else."""

from __future__ import annotations

import base64
import random
from collections.abc import Iterator
from typing import Any, get_args

import numpy as np
import pytest

from decoder.field_hash import FieldHash
from decoder.kafka.bulk import KafkaBulk
from decoder.kafka.kernel.streams import new_frames
from decoder.kafka.redaction.frames import RECORDS
from decoder.kafka.redaction.secrets import Fate, fates
from decoder.kafka.schema import table
from decoder.kafka.schema.table import FieldLayout, StructLayout, api_versions
from decoder.model import Direction, Frame, FrameFlags, PayloadPolicy
from decoder.redact import redact
from tests.decoder.kafka.batches import batch, record
from tests.decoder.kafka.encode import consumer_protocol, find_layout, frame
from tests.decoder.kafka.landed import decode, landed

FIELD_HASH = FieldHash(b"the key of this deployment")
POLICIES: tuple[PayloadPolicy, ...] = get_args(PayloadPolicy)
SORTS = [
    (kind, key, version)
    for key, (oldest, newest) in api_versions().items()
    for version in range(oldest, newest + 1)
    for kind in ("request", "response")
]
TAG = "unknown tag"
TOPIC, USER_DATA = "a topic in the bytes of a member", "user data"


class Planted:
    """A message of one sort with a canary in every field that can hold one.

    Attributes:
        canaries: each with the path of its field, TAG, TOPIC or USER_DATA, and the fate that it must have.
    """

    def __init__(self, kind: Direction, key: int, version: int) -> None:
        self.kind, self.key, self.version = kind, key, version
        self.canaries: list[tuple[bytes, str, Fate]] = []
        self._named = fates()[kind, key, version]
        self._has_secrets = Fate.SECRET in self._named.values()
        body = self._struct(find_layout(kind, key, version)[0], "")
        self.frame = frame(kind, key, version, body)

    def _canary(self, path: str, fate: Fate) -> bytes:
        text = f"canary{random.Random(f'{path} {len(self.canaries)}').getrandbits(48):012x}".encode()
        self.canaries.append((text, path, fate))
        return text

    def _struct(self, layout: StructLayout, above: str) -> dict[str, Any]:
        values = {item.name: self._value(item, above + item.name) for item in layout.fields}
        if layout.flexible:
            tagged = self._canary(TAG, Fate.SECRET if self._has_secrets else Fate.OPAQUE)
            values["unknownTaggedFields"] = {"77": base64.b64encode(tagged).decode()}
        return values

    def _value(self, item: FieldLayout, path: str) -> Any:
        return [self._element(item, path)] if item.array else self._element(item, path)

    def _element(self, item: FieldLayout, path: str) -> Any:
        if item.struct is not None:
            return self._struct(item.struct, path + "/")
        if item.type not in ("string", "bytes", "records"):
            return {"bool": True, "uuid": "dGhlIHRvcGljIG9yZGVycw", "float64": 0.5}.get(item.type, 7)
        fate = self._named.get(path, Fate.STAYS)
        if item.type == "records":
            return batch([record(self._canary(path, fate), b"value")])
        if fate is not Fate.MEMBER:
            text = self._canary(path, fate)
            return text.decode() if item.type == "string" else text
        topic, data = self._canary(TOPIC, Fate.STAYS), self._canary(USER_DATA, Fate.OPAQUE)
        if path.lower().endswith("assignment"):
            body = {"assignedPartitions": [{"topic": topic.decode(), "partitions": [1]}], "userData": data}
            return consumer_protocol("ConsumerProtocolAssignment", 0, body)
        body = {"topics": [topic.decode()], "userData": data}
        return consumer_protocol("ConsumerProtocolSubscription", 0, body)

    def landing(self, policy: PayloadPolicy, **options: Any) -> Frame:
        return landed(self.frame, self.kind, self.key, self.version, policy=policy, **options)


def must_stay(fate: Fate, policy: PayloadPolicy) -> bool:
    """By the words of Fate."""
    return fate is Fate.STAYS or (fate is not Fate.SECRET and policy == "full")


def by_lanes(dirty: Frame) -> Frame:
    """What of a frame comes of the lanes: by the kernel, or if it gives it back by plain redaction."""
    data = np.frombuffer(bytearray(dirty.frame), np.uint8)
    frames = new_frames(1)
    for column, value in zip(frames._fields, (0, 0, len(data), 0, 0, 0, 0, 0, dirty.api_key, dirty.api_version, 7, 0), strict=True):  # noqa: E501  # fmt: skip
        getattr(frames, column)[0] = value
    left = KafkaBulk.seal(data, frames, np.array([dirty.direction == "response"], np.uint8), dirty.payload_policy)
    return redact(dirty, FIELD_HASH) if len(left) else landed(
        data.tobytes(), dirty.direction, dirty.api_key, dirty.api_version, policy=dirty.payload_policy,
        flags=int(frames.flags[0]),
    )  # fmt: skip


@pytest.fixture(scope="module")
def planted() -> list[Planted]:
    return [Planted(*sort) for sort in SORTS]


@pytest.mark.parametrize("policy", POLICIES)
def test_of_every_field_lands_what_the_table_allows(planted, policy):
    assert len(planted) > 600
    for made in planted:
        for landing in (redact(made.landing(policy), FIELD_HASH), by_lanes(made.landing(policy))):
            wrong = [
                (path, fate) for text, path, fate in made.canaries if (text in landing.frame) != must_stay(fate, policy)
            ]
            assert wrong == [], (made.kind, made.key, made.version)
            assert decode(landing).status in ("ok", "redacted")
            assert len(landing.frame) == len(made.frame)


def test_each_canary_is_alone_and_every_field_has_one(planted):
    for made in planted:
        assert all(made.frame.count(text) == 1 for text, _, _ in made.canaries)
        kinds = {path for _, path, _ in made.canaries}
        assert set(made._named) - kinds <= {path for path, fate in made._named.items() if fate is Fate.MEMBER}
    assert {fate for made in planted for _, _, fate in made.canaries} == set(Fate) - {Fate.MEMBER}


@pytest.mark.parametrize("policy", POLICIES)
def test_of_a_response_whose_request_was_not_seen_only_its_id_lands(planted, policy):
    for made in planted:
        if made.kind == "response":
            orphan = landed(made.frame, "response", policy=policy, flags=int(FrameFlags.ORPHAN_RESPONSE))
            assert redact(orphan, FIELD_HASH).frame == made.frame[:4] + bytes(len(made.frame) - 4)


@pytest.mark.parametrize("policy", ["lengths", "hash", "none"])
def test_tags_in_headers_keep_their_length_only(policy):
    for kind, key, version in SORTS:
        flexible = find_layout(kind, key, version)[1]
        if not flexible or (kind == "response" and table.response_header_version(key, flexible) == 0):
            continue
        whole = frame(kind, key, version, {})
        at = 16 if kind == "request" else 4  # behind the client id "client", or the correlation id
        assert whole[at] == 0
        dirty = landed(whole[:at] + b"\1\x4d\x06canary" + whole[at + 1 :], kind, key, version, policy=policy)
        for cleaned in (redact(dirty, FIELD_HASH), by_lanes(dirty)):
            assert cleaned.frame == dirty.frame.replace(b"canary", bytes(6)), (kind, key, version)


def _swallowing() -> Iterator[tuple[str, Frame]]:
    """Frames as somebody forges them who wants the records behind his own to land: each with another hole."""
    victim = batch([record(b"k", b"canary of another")])[12:]
    for flags in (0, FrameFlags.AFTER_GAP):
        for name, kind, key, version, body in (
            ("a name", "request", 3, 1, {"topics": [{"name": "SWALLOWED"}]}),
            ("a note", "request", 8, 2, {"groupId": "g", "memberId": "SWALLOWED"}),
            ("a topic of Fetch", "response", 1, 4, {"responses": [{"topic": "SWALLOWED", "partitions": []}]}),
            ("bytes of a member", "response", 11, 0, {"members": [{"memberId": "m", "metadata": b"SWALLOWED"}]}),
            ("telemetry", "request", 72, 0, {"metrics": b"SWALLOWED"}),
        ):
            data = frame(kind, key, version, body)
            width = 4 if isinstance(next(iter(body.values())), bytes) or "bytes" in name else 2
            compact = key == 72
            size = bytes([len(b"SWALLOWED") + 1]) if compact else len(b"SWALLOWED").to_bytes(width, "big")
            longer = bytes([len(victim) + 1]) if compact else len(victim).to_bytes(width, "big")
            forged = data.replace(size + b"SWALLOWED", longer + victim)
            assert victim in forged, name
            yield name, landed(forged, kind, key, version, flags=int(flags))
        header = b"\0\3\0\x1d\0\0\0\7\0\6client"  # Metadata v29
        yield "a version to come", landed(header + victim, "request", flags=int(flags))
        yield "a body that ends early", landed(frame("request", 3, 1, {}) + victim, "request", flags=int(flags))


@pytest.mark.parametrize("policy", ["lengths", "hash", "none"])
def test_a_forged_frame_swallows_nothing(policy):
    for name, dirty in _swallowing():
        forged = landed(
            dirty.frame, dirty.direction, dirty.api_key, dirty.api_version, policy=policy, flags=dirty.flags
        )
        assert b"canary" not in redact(forged, FIELD_HASH).frame, name
        if dirty.api_version != 29:
            assert b"canary" not in by_lanes(forged).frame, name


def test_the_kernel_leaves_what_plain_redaction_leaves(planted):
    """Of frames that are what they should be, and of broken ones."""
    source, seen = random.Random(7), 0
    for made in planted:
        for number in range(12):
            data = bytearray(frame(made.kind, made.key, made.version, {}) if number < 4 else made.frame)
            for _ in range(number % 4 if len(data) > 8 else 0):
                data[source.randrange(8, len(data))] = source.randrange(256)
            dirty = landed(bytes(data), made.kind, made.key, made.version)
            sealed = KafkaBulk.sealed(dirty)
            assert sealed is None or sealed == redact(dirty), (made.kind, made.key, made.version)
            seen += sealed is not None and (made.key, made.kind) not in RECORDS
    assert seen > 1000


def test_a_known_tag_does_not_cost_the_kernel_a_frame():
    body = {"replicaState": {"replicaId": 3, "replicaEpoch": 4}}
    dirty = landed(frame("request", 1, 16, body), "request", 1, 16)
    assert KafkaBulk.sealed(dirty) is dirty
    assert redact(dirty) is dirty
