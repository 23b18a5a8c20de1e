"""Of a compressed v0/v1 message set only the content gives count and first offset: what the policies keep of them."""

from __future__ import annotations

import random
import struct
import zlib
from functools import lru_cache

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from decoder import Codec, Frame, FrameFlags
from decoder.field_hash import FieldHash
from decoder.kafka.bulk import KafkaBulk
from decoder.kafka.extractors.exchanges import record_batch_rows
from decoder.kafka.extractors.offsets import offset_events
from decoder.kafka.records.message_sets import EXTENT
from decoder.redact import redact
from pipeline.capture.runs.one_capture import frames_of
from tests.decoder.kafka.batches import GZIP, LOG_APPEND_TIME, batch, damaged, message, record, wrapper
from tests.decoder.kafka.compressed import CODECS, xerial
from tests.decoder.kafka.encode import response
from tests.decoder.kafka.kernel.asked import Asked, messages
from tests.decoder.kafka.landed import decode, landed
from tests.hostile.samples import CAPTURES

PRODUCE, FETCH = 0, 1
HASH = FieldHash(b"the key of this deployment")
CANARY = b"tweety-0123456789abcdef"
MARKED = FrameFlags.PAYLOAD_REMOVED | FrameFlags.CRC_CHECKED | FrameFlags.SETS_MEASURED
KEPT = ("lengths", "hash")
"""Policies that leave the batch headers and remove the content."""


def fetched(*fields: bytes, policy: str = "lengths", topic: str = "orders", flags: int = 0) -> Frame:
    """A Fetch response of v3, with a partition for each records field."""
    parts = [{"partitionIndex": at, "records": field} for at, field in enumerate(fields)]
    body = {"responses": [{"topic": topic, "partitions": parts}]}
    return landed(response(FETCH, 3, body), "response", FETCH, 3, policy=policy, flags=flags)


def problems(frame: Frame) -> set[str]:
    """Why records of it cannot be read."""
    found = Codec().records(
        frame.frame, direction=frame.direction, api_key=frame.api_key, api_version=frame.api_version, flags=frame.flags
    )
    return {problem.error_code for part in found.partitions for problem in part.problems}


def extents(frame: Frame) -> list[tuple]:
    """First offset, last offset and count of each batch, by both readers."""
    asked = Asked(frame.frame, frame.direction, frame.api_key, frame.api_version, frame.flags)
    plain = decode(frame)
    assert messages([asked]) == [plain]
    return [(b.get("baseOffset"), b.get("lastOffset"), b.get("recordsCount")) for b in plain.record_batches]


def wrapped(compress, codec: int, magic: int, offset: int, first: int, count: int = 3) -> bytes:
    inner = b"".join(message(CANARY, CANARY * 2, magic=magic, offset=first + at) for at in range(count))
    return message(None, compress(inner), magic=magic, offset=offset, attributes=codec)


OLD_CODECS = {**{name: CODECS[name] for name in ("gzip", "snappy", "lz4")}, "xerial": (2, xerial)}


class TestWhatIsKept:
    @pytest.mark.parametrize("policy", KEPT)
    def test_the_records_themselves_are_gone(self, policy):
        cleaned = redact(fetched(wrapper([message(b"k", b"v")]), policy=policy), HASH)
        assert problems(cleaned) == {"payload_removed"}

    @pytest.mark.parametrize("policy", [*KEPT, "full"])
    @pytest.mark.parametrize("name", OLD_CODECS)
    def test_count_and_offsets_of_each_codec(self, name, policy):
        codec, compress = OLD_CODECS[name]
        v0 = wrapped(compress, codec, 0, 42, 40)  # absolute offsets within
        v1 = wrapped(compress, codec, 1, 102, 0)  # relative to the last
        cleaned = redact(fetched(v0 + v1, policy=policy), HASH)
        assert extents(cleaned) == [(40, 42, 3), (100, 102, 3)]
        assert len(cleaned.frame) == len(fetched(v0 + v1).frame)

    @pytest.mark.parametrize("policy", KEPT)
    def test_everything_else_that_the_batch_states_stays_too(self, policy):
        dirty = fetched(wrapper([message(b"k", b"v")] * 2, offset=9, attributes=LOG_APPEND_TIME), policy=policy)
        before, after = (decode(frame).record_batches[0] for frame in (dirty, redact(dirty, HASH)))
        if policy == "hash":  # a checksum would let anyone try out values
            assert before.pop("crc") != after.pop("crc") == 0
        assert after == before
        assert after["timestampType"] == "LogAppendTime"

    @pytest.mark.parametrize("policy", KEPT)
    def test_of_the_content_nothing_else_is_left(self, policy):
        codec, compress = OLD_CODECS["snappy"]  # leaves the payload readable
        set_ = wrapped(compress, codec, 1, 102, 0)
        assert CANARY in set_
        cleaned = redact(fetched(set_, policy=policy), HASH).frame
        assert not any(CANARY[at : at + 4] in cleaned for at in range(len(CANARY) - 3))
        value = cleaned[cleaned.index(set_[:12]) + 34 :][: len(set_) - 34]
        hidden = HASH(set_[34:]) if policy == "hash" else bytes(len(set_) - 34)
        assert value == hidden[: -EXTENT.size] + EXTENT.pack(100, 3)

    def test_without_room_in_the_value_nothing_is_kept(self):
        tiny = [message(None, b"?" * size, offset=9, attributes=GZIP) for size in range(EXTENT.size)]
        cleaned = redact(fetched(*tiny))
        assert extents(cleaned) == [(None, 9, None)] * EXTENT.size
        assert cleaned.flags == FrameFlags.PAYLOAD_REMOVED | FrameFlags.CRC_CHECKED

    @pytest.mark.parametrize("policy", KEPT)
    @pytest.mark.parametrize(
        "bad",
        [
            damaged(wrapper([message(b"k", b"v")], offset=9)),
            wrapper([], offset=9),
            wrapper([wrapper([message(b"k", b"v")])], offset=9),
            wrapper([message(b"k", b"v", offset=50)], offset=9),
            message(None, b"no gzip at all, but long enough", offset=9, attributes=GZIP),
            message(None, None, offset=9, attributes=GZIP),
            message(None, CODECS["zstd"][1](message(b"k", b"v")), offset=9, attributes=4),
        ],
    )
    def test_what_cannot_be_opened_is_not_measured_beside_what_can(self, bad, policy):
        good = wrapper([message(b"k", b"v", offset=at) for at in range(4)], offset=23)
        dirty = fetched(good + bad, policy=policy)
        cleaned = redact(dirty, HASH)
        assert extents(cleaned) == extents(dirty) == [(20, 23, 4), (None, 9, None)]
        assert cleaned.flags & FrameFlags.SETS_MEASURED

    def test_the_policy_none_leaves_nothing(self):
        cleaned = redact(fetched(wrapper([message(b"k", b"v")], offset=9), policy="none"))
        assert extents(cleaned) == [(None, None, None)]
        assert not cleaned.flags & FrameFlags.SETS_MEASURED

    def test_the_compiled_redaction_gives_these_frames_back(self):
        assert KafkaBulk.sealed(fetched(wrapper([message(b"k", b"v")]))) is None
        assert KafkaBulk.sealed(fetched(batch([record(b"k", b"v")]))) is not None


class TestNobodyElseCanWriteIt:
    FORGED = message(None, bytes(30) + EXTENT.pack(7, 4711), offset=9, attributes=GZIP)

    @pytest.mark.parametrize("forged", [FORGED, damaged(FORGED[:-1] + b"\0")])
    @pytest.mark.parametrize("policy", [*KEPT, "full"])
    def test_a_peer(self, forged, policy):
        """Beside a set that is measured, and beside the log of the cluster, which is overwritten under ``full`` too."""
        good = wrapper([message(b"k", b"v")], offset=1)
        cleaned = redact(fetched(good, forged, policy=policy), HASH)
        assert extents(cleaned)[1] == (None, 9, None)
        body = {
            "responses": [
                {"topic": topic, "partitions": [{"partitionIndex": 0, "records": field}]}
                for topic, field in (("__cluster_metadata", good), ("orders", forged))
            ]
        }
        mixed = redact(landed(response(FETCH, 3, body), "response", FETCH, 3, policy=policy), HASH)
        assert mixed.flags & FrameFlags.PAYLOAD_REMOVED
        assert extents(mixed)[1] == (None, 9, None)

    def test_an_agent_that_does_not_measure(self):
        """As all did before: zeros, and no flag."""
        flags = int(FrameFlags.PAYLOAD_REMOVED | FrameFlags.CRC_CHECKED)
        assert extents(fetched(damaged(self.FORGED), flags=flags)) == [(None, 9, None)]

    def test_a_count_below_one_is_none(self):
        for count in (0, -1, -(2**31)):
            field = message(None, bytes(30) + EXTENT.pack(7, count), offset=9, attributes=GZIP)
            assert extents(fetched(field, flags=int(MARKED))) == [(None, 9, None)]


_inner = st.lists(
    st.builds(
        message,
        st.none() | st.binary(max_size=20),
        st.none() | st.binary(max_size=60),
        magic=st.sampled_from([0, 1]),
        offset=st.integers(-3, 12) | st.integers(-(2**63), 2**63 - 1),
        attributes=st.sampled_from([0, 0, 0, LOG_APPEND_TIME, GZIP]),
    ),
    max_size=6,
).map(b"".join)
_codec = st.sampled_from([*OLD_CODECS.values(), CODECS["zstd"], (5, bytes), (1, bytes)])


@st.composite
def _hostile_sets(draw):
    """Sets with a good checksum whose content, compressed bytes or lengths may be wrong in any place."""
    content = draw(_inner)
    codec, compress = draw(_codec)
    value = _changed(draw, compress(_changed(draw, content)))
    offset = draw(st.integers(-1, 30) | st.integers(-(2**56), 2**56 - 1))  # what is larger is taken for text
    key = draw(st.none() | st.binary(max_size=4))
    data = message(key, value, magic=draw(st.sampled_from([0, 1])), offset=offset, attributes=codec)
    checked = _changed(draw, data[17:])
    return data[:12] + struct.pack(">I", zlib.crc32(data[16:17] + checked)) + data[16:17] + checked


def _changed(draw, data: bytes) -> bytes:
    if not data or draw(st.integers(0, 3)):
        return data
    copy = bytearray(data)
    copy[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
    return bytes(copy)


@pytest.mark.slow
@settings(max_examples=300, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(fields=st.lists(_hostile_sets(), min_size=1, max_size=3), policy=st.sampled_from(KEPT))
def test_hostile_sets_give_the_same_before_and_after(fields, policy):
    dirty = fetched(*fields, policy=policy)
    cleaned = redact(dirty, HASH)
    assert extents(cleaned) == extents(dirty)
    assert len(cleaned.frame) == len(dirty.frame)
    assert problems(cleaned) <= problems(dirty) | {"payload_removed"}


@pytest.mark.slow
def test_any_byte_of_a_set_may_be_wrong_at_any_place():
    """Without a new checksum: nothing raises, nothing is measured, and what is behind is not taken for a header."""
    good = wrapper([message(CANARY, CANARY)] * 3, offset=9) + wrapper([message(CANARY, CANARY, magic=0)], magic=0)
    source = random.Random(5)
    for _ in range(2000):
        copy = bytearray(good)
        for _ in range(source.choice([1, 1, 2, 5])):
            copy[source.randrange(len(copy))] = source.randrange(256)
        cleaned = redact(fetched(bytes(copy), policy=source.choice(KEPT)), HASH)
        assert all(count in (None, 1, 3) for _, _, count in extents(cleaned))


# --- recorded traffic of a 0.10 broker and its clients ------------------------------------------------------------


@lru_cache
def recorded(policy: str) -> tuple[Frame, ...]:
    found = frames_of(str(CAPTURES / "old_format.pcap"), payload_policy=policy, field_hash=HASH)
    return tuple(item for item in found if isinstance(item, Frame))


def is_set(summary: dict) -> bool:
    return summary["magic"] in (0, 1) and summary.get("compressionType", "none") != "none"


def test_there_are_recorded_sets_of_both_formats_and_each_codec():
    found = {
        (b["magic"], b["compressionType"], frame.direction)
        for frame in recorded("full")
        for b in decode(frame).record_batches
        if is_set(b)
    }
    kinds = ((0, "request"), (1, "request"), (1, "response"))  # the broker unpacks what it converts to format 0
    assert found >= {(magic, codec, side) for codec in ("gzip", "snappy", "lz4") for magic, side in kinds}


@pytest.mark.parametrize("policy", KEPT)
def test_recorded_traffic_gives_the_same_under_each_policy(policy):
    wrappers = 0
    for whole, cleaned in zip(recorded("full"), recorded(policy), strict=True):
        before, after = decode(whole), decode(cleaned)
        for body in (before, after):
            for summary in body.record_batches:
                wrappers += is_set(summary)
                assert not is_set(summary) or (summary["recordsCount"] > 0 and summary["baseOffset"] is not None)
        if policy == "lengths":
            assert after == before
        else:
            assert [_without_crc(b) for b in after.record_batches] == [_without_crc(b) for b in before.record_batches]
        assert extents(cleaned) == extents(whole)
    assert wrappers > 20


def _without_crc(summary: dict) -> dict:
    return {**summary, "crc": None}


def test_recorded_traffic_leaves_no_key_or_value():
    codec, checked = Codec(), 0
    for whole, cleaned in zip(recorded("full"), recorded("lengths"), strict=True):
        found = codec.records(
            whole.frame, direction=whole.direction, api_key=whole.api_key, api_version=whole.api_version, payload=True
        )
        values = {part for p in found.partitions for r in p.records for part in (r.key, r.value) if part}
        checked += len(values)
        assert not any(value in cleaned.frame for value in values if len(value) >= 4)
    assert checked > 100


def test_recorded_exchanges_give_the_same_offsets_under_each_policy():
    found = {}
    for policy in ("full", "lengths"):
        halves: dict = {}
        for frame in recorded(policy):
            halves.setdefault(frame.exchange_id, {})[frame.direction] = (frame, decode(frame).body)
        events, rows = [], []
        for pair in halves.values():
            frame = next(iter(pair.values()))[0]
            bodies = [pair.get(side, (None, None))[1] for side in ("request", "response")]
            if frame.api_key is not None:
                events += offset_events(frame.api_key, frame.api_version, *bodies)
                rows += record_batch_rows(frame.api_key, *bodies)
        found[policy] = events, rows
    assert found["lengths"] == found["full"]
    events, rows = found["lengths"]
    assert all(e.records is not None and e.next_offset is not None for e in events if e.kind == "produced" and e.offset)
    compressed = [row for row in rows if row.compression not in (None, "none")]
    assert compressed
    assert all(row.records and row.base_offset is not None for row in compressed)
