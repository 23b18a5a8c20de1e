"""The kernel reads what the plain reader reads, text for text, and gives back the rest."""

from __future__ import annotations

import random
import struct

import numpy as np
import pytest

from decoder.kafka.codec.embedded import EMBEDDING_APIS
from decoder.kafka.kernel import bodies as kernel
from decoder.model import FrameFlags
from tests.decoder.kafka.batches import batch, control, damaged, message, record, wrapper
from tests.decoder.kafka.encode import request, response
from tests.decoder.kafka.kernel.asked import Asked, differences, messages, plainly, read
from tests.hostile.samples import made, recorded
from tests.hostile.test_mutations import mutations

PRODUCE, FETCH, METADATA, API_VERSIONS = 0, 1, 3, 18
PIECES = bytes.fromhex("41 22 80 8f 90 9f a0 bf c0 c1 c2 df e0 e1 ed ef f0 f1 f4 f5 f7 f8 ff")
"""Bytes at the borders of what UTF-8 allows, one from between each two."""
FLOAT_APIS = {48, 49}
"""DescribeClientQuotas and AlterClientQuotas carry floats, whose shortest text the kernel leaves to a library."""


def asked(sample, data=None):
    return Asked(sample.data if data is None else data, sample.direction, sample.api_key, sample.api_version)


def outcome(*frames):
    batch = read(frames)
    assert not differences(frames, batch)
    return batch.outcomes.tolist()


def test_every_api_oldest_and_newest():
    frames = [asked(sample) for sample in made()]
    batch = read(frames)
    assert not differences(frames, batch)
    given_back = {(one.api_key, one.direction) for one, how in zip(frames, batch.outcomes, strict=True) if how == 2}
    assert {key for key, _ in given_back} <= FLOAT_APIS | {PRODUCE, FETCH, 78}


def test_recorded_frames():
    frames = [asked(sample) for sample in recorded()]
    assert outcome(*frames).count(kernel.GIVEN_BACK) < len(frames) / 10


def test_messages_inside_messages_are_those_of_the_plain_reader():
    frames = [asked(sample) for sample in (*recorded(), *made()) if sample.api_key in EMBEDDING_APIS]
    found = messages(frames)
    assert found == [plainly(one) for one in frames]
    assert sum(bool(message.embedded) for message in found) > 5


def test_an_answer_in_version_0_to_a_later_question():
    frame = response(API_VERSIONS, 0, {"errorCode": 35, "apiKeys": [{"apiKey": 18, "minVersion": 0, "maxVersion": 3}]})
    assert outcome(Asked(frame, "response", API_VERSIONS, 4)) == [kernel.NO_CLIENT_ID]


def test_truncated_at_every_byte():
    frames = [asked(s, s.data[:cut]) for s in recorded() for cut in range(min(len(s.data), 400))]
    outcome(*frames)


def test_one_wrong_byte():
    frames = [asked(sample, data) for sample, data in mutations(10_000)]
    batch = read(frames)
    assert not differences(frames, batch)
    # A wrong byte in a value is another value: those the kernel reads too.
    assert 1000 < np.count_nonzero(batch.outcomes != kernel.GIVEN_BACK) < len(frames)


@pytest.mark.parametrize(
    "records",
    [
        batch([record(b"k", b"v")]),
        batch([record(b"k", b"v")]) * 3,
        batch([record(b"k", b"v")])[:-1],
        *(batch([record(b"k", b"v")], attributes=1 << bit) for bit in (6, 7, 14)),
        *(message(b"k", b"v", magic=magic, attributes=8) for magic in (0, 1)),
        batch([record(b"k", b"v")]) + batch([record(b"k", b"v")])[:61],
        batch([record(b"k", b"v")]) + batch([record(b"k", b"v")])[:60],
        batch([record(b"k", b"v")]) + b"\0" * 16,
        damaged(batch([record(b"k", b"v")])),
        batch([], base_offset=2**63 - 1),
        batch([], base_offset=2**63 - 1, last_delta=2),
        batch([], base_offset=-(2**63), last_delta=-1),
        control(0),
        control(1),
        message(b"k", b"v"),
        message(b"k", b"v") + message(None, None),
        wrapper([message(b"k", b"v")]),
        batch([record(b"k", b"v")])[:16] + b"\x05" + batch([record(b"k", b"v")])[17:],
        b"",
    ],
)
@pytest.mark.parametrize("flags", [0, FrameFlags.PAYLOAD_REMOVED, 40, 56])
def test_record_batches(records, flags):
    body = {"topicData": [{"name": 'o"rders', "partitionData": [{"index": 3, "records": records}]}]}
    frame = Asked(request(PRODUCE, 9, body), "request", None, None, int(flags))
    outcome(frame)


def test_the_agents_verdict_is_not_on_a_snapshots_records():
    partition = {"index": 0, "unalignedRecords": damaged(batch([record(b"k", b"v")]))}
    frame = response(59, 0, {"topics": [{"name": "__cluster_metadata", "partitions": [partition]}]})
    flags = int(FrameFlags.PAYLOAD_REMOVED | FrameFlags.CRC_CHECKED)
    assert outcome(Asked(frame, "response", 59, 0, flags)) == [kernel.NO_CLIENT_ID]


def test_record_batches_are_read_not_given_back():
    body = {"topicData": [{"name": "orders", "partitionData": [{"index": 3, "records": batch([record(b"k", b"v")])}]}]}
    assert outcome(Asked(request(PRODUCE, 9, body), "request", None, None)) == [kernel.DECODED]


class TestText:
    @pytest.mark.parametrize(
        "name",
        ["", "a", "é世😀", '"\\/', "".join(map(chr, range(128))), "\u2028\x7f\x80\uffff", "x" * 40_000],
    )
    def test_a_string_is_escaped_as_orjson_does(self, name):
        assert outcome(Asked(request(METADATA, 1, {"topics": [{"name": name[:32767]}]}), "request", None, None)) == [0]

    @pytest.mark.parametrize(
        "raw", [b"\x80", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82", b"\xff", b"\xf0\x80\x80\x80"]
    )
    def test_what_is_no_utf8_is_replaced(self, raw):
        marked = request(METADATA, 1, {"topics": [{"name": "?" * len(raw)}]}, client_id="!" * len(raw))
        frame = marked.replace(b"?" * len(raw), raw).replace(b"!" * len(raw), raw)
        assert outcome(Asked(frame, "request", None, None)) == [kernel.DECODED]

    def test_pieces_of_utf8_in_any_order(self):
        source = random.Random(3)
        texts = [bytes(source.choices(PIECES, k=source.randrange(1, 40))) for _ in range(2000)]
        marks = [b"?" * len(text) for text in texts]
        topics = [{"name": mark.decode()} for mark in marks]
        frames = [request(METADATA, 1, {"topics": [topic]}) for topic in topics]
        frames = [frame.replace(mark, text) for frame, mark, text in zip(frames, marks, texts, strict=True)]
        assert outcome(*(Asked(frame, "request", None, None) for frame in frames)) == [kernel.DECODED] * len(frames)

    def test_columns_grow_for_what_is_replaced(self):
        frame = request(METADATA, 1, {"topics": []}, client_id="?" * 32_000).replace(b"?" * 32_000, b"\xff" * 32_000)
        assert outcome(*[Asked(frame, "request", None, None)] * 3) == [kernel.DECODED] * 3

    @pytest.mark.parametrize("number", [0, 1, -1, 9, 10, -10, 2**31 - 1, -(2**31)])
    def test_integers(self, number):
        frame = request(METADATA, 1, {"topics": []}, correlation_id=number)
        assert outcome(Asked(frame, "request", None, None)) == [kernel.DECODED]

    def test_a_client_id_of_null_is_not_an_empty_one(self):
        frames = [
            Asked(request(METADATA, 1, {"topics": []}, client_id=name), "request", None, None) for name in ("", None)
        ]
        assert outcome(*frames) == [kernel.DECODED, kernel.NO_CLIENT_ID]


class TestColumns:
    def test_columns_grow_as_needed(self):
        names = [{"name": "\x01" * 30_000} for _ in range(50)]
        frames = [Asked(request(METADATA, 1, {"topics": names}), "request", None, None)] * 3
        assert outcome(*frames) == [kernel.DECODED] * 3

    def test_no_frames(self):
        assert read([]).outcomes.tolist() == []

    def test_what_the_agent_knows_is_left_to_the_plain_reader(self):
        frame = request(METADATA, 1, {"topics": []})
        for flag in (1, 2, FrameFlags.SASL_TOKEN, FrameFlags.PAYLOAD_DROPPED, FrameFlags.BODY_REMOVED):
            assert outcome(Asked(frame, "request", None, None, int(flag))) == [kernel.GIVEN_BACK]

    def test_neighbours_of_what_is_given_back_are_whole(self):
        good, bad = request(METADATA, 1, {"topics": []}), b"\0\1"
        batch = read([Asked(data, "request", None, None) for data in (bad, good, bad, good, good)])
        assert batch.outcomes.tolist() == [2, 0, 2, 0, 0]
        assert batch.body[1] == batch.body[4] == b'{"topics":[]}'

    def test_a_response_needs_its_request(self):
        frame = response(API_VERSIONS, 0, {"errorCode": 0, "apiKeys": []})
        assert outcome(Asked(frame, "response", API_VERSIONS, 0)) == [kernel.NO_CLIENT_ID]
        assert outcome(Asked(frame, "response", None, None)) == [kernel.GIVEN_BACK]


def test_unknown_tagged_fields():
    body = {"topics": [], "unknownTaggedFields": {"4000": "AAEC", "5000": ""}}
    assert outcome(Asked(request(METADATA, 12, body), "request", None, None)) == [kernel.DECODED]


def test_arrays_of_elements_without_bytes_are_bounded():
    frame = request(METADATA, 1, {"topics": []})[:-4] + struct.pack(">i", 2**31 - 1)
    assert outcome(Asked(frame, "request", None, None)) == [kernel.GIVEN_BACK]
