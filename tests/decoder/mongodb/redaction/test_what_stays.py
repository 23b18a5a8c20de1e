"""What each policy leaves of a message: all of it, what a diagnosis needs, which values are equal, or sizes alone."""

from __future__ import annotations

import base64
import datetime
import random
from typing import Any

import bson
import pytest
from bson import Int64, ObjectId
from hypothesis import given, settings
from hypothesis import strategies as st

from decoder.model import FrameFlags
from tests.decoder.mongodb.build import (
    checksummed,
    command,
    legacy,
    reply,
    sequence,
)
from tests.decoder.mongodb.redaction.planted import (
    CODEC,
    PAYLOAD,
    POLICIES,
    decode,
    landed,
    variants,
)


def test_full_is_what_was_on_the_wire():
    for direction, plain in PAYLOAD.values():
        for data in variants(plain).values():
            assert landed(data, direction, "full").frame == data


def test_lengths_leaves_what_a_diagnosis_needs():
    session = bson.Binary(bytes(range(16)), 4)
    document = {
        "find": "orders", "filter": {"customer": "alice", "total": 5}, "limit": 3, "batchSize": Int64(2),
        "lsid": {"id": session}, "txnNumber": Int64(9), "readConcern": {"level": "majority"},
        "$readPreference": {"mode": "primary"}, "$db": "shop",
    }  # fmt: skip
    kept = decode(landed(command(document), "request", "lengths")).body["sections"][0]["document"]
    assert kept == {
        "find": "orders", "filter": {"customer": "*****", "total": 0}, "limit": 3, "batchSize": 2,
        "lsid": {"id": {"$binary": {"base64": base64.b64encode(session).decode(), "subType": "04"}}}, "txnNumber": 9,
        "readConcern": {"level": "majority"}, "$readPreference": {"mode": "primary"}, "$db": "shop",
    }  # fmt: skip
    answer = {
        "cursor": {"id": Int64(77), "ns": "shop.orders", "firstBatch": [{"_id": 5}]}, "n": 4, "nModified": 3,
        "writeErrors": [{"index": 1, "code": 11000, "errmsg": "dup alice"}], "ok": 1.0,
    }  # fmt: skip
    kept = decode(landed(reply(answer), "response", "lengths")).body["sections"][0]["document"]
    assert kept == {
        "cursor": {"id": 77, "ns": "shop.orders", "firstBatch": [{"_id": 0}]}, "n": 4, "nModified": 3,
        "writeErrors": [{"index": 1, "code": 11000, "errmsg": "*********"}], "ok": 1.0,
    }  # fmt: skip


@pytest.mark.parametrize("policy", POLICIES)
def test_a_message_without_payload_stays_as_it_is(policy):
    for direction, data in (
        ("request", command({"ping": 1, "$db": "admin"})),
        (
            "request",
            command({"hello": 1, "client": {"application": {"name": "shop"}, "driver": {"name": "x", "version": "1"}}}),
        ),
        ("request", legacy()["OP_GET_MORE"]),
        ("request", legacy()["OP_KILL_CURSORS"]),
        ("response", reply({"ok": 1.0, "n": 5})),
    ):
        for one in variants(data).values():
            frame = landed(one, direction, policy)
            assert (frame.frame, frame.flags) == (one, 0)


def test_hash_shows_which_values_are_equal():
    def stored(value: Any) -> Any:
        frame = landed(command({"find": "c", "filter": {"a": value}}), "request", "hash")
        return decode(frame).body["sections"][0]["document"]["filter"]["a"]

    values: list[Any] = ["alice", "bobby", 1.5, 2.5, 5, 6, Int64(5), ObjectId(bytes(12)), ObjectId(b"x" * 12), b"12345"]
    assert [stored(value) for value in values] == [stored(value) for value in values]
    assert len({repr(stored(value)) for value in values}) == len(values)
    assert all(stored(value) != value for value in values)
    dated = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)
    assert stored(dated) == stored(dated)


@settings(derandomize=True, deadline=None, max_examples=60)
@given(st.randoms(use_true_random=False))
def test_none_depends_on_sizes_alone(source: random.Random):
    def frames(text: str, number: int) -> list[bytes]:
        document = {"a": text, "b": [number, {"c": text}]}
        batch = {"cursor": {"id": 5, "ns": "a.b", "firstBatch": [document, document]}, "ok": 1}
        found = [
            ("request", command({"insert": "orders", "$db": "shop"}, sequence("documents", document))),
            ("request", command({"insert": "orders", "documents": [document, document], "$db": "shop"})),
            ("request", command({"find": "orders", "filter": document, "$db": "shop"})),
            ("response", reply(batch)),
        ]
        return [landed(data, direction, "none").frame for direction, data in found]

    size = source.randrange(30)
    texts = ["".join(source.choices("abcdefgh", k=size)) for _ in range(2)]
    assert frames(texts[0], source.getrandbits(31)) == frames(texts[1], source.getrandbits(31))


class TestChecksum:
    DATA = checksummed(command({"find": "orders", "filter": {"pin": 4711}}))

    def test_is_made_anew_so_that_it_reveals_nothing_of_what_was_removed(self):
        frame = landed(self.DATA, "request", "lengths")
        assert frame.flags == FrameFlags.PAYLOAD_REMOVED | FrameFlags.CRC_CHECKED
        assert frame.frame[-4:] != self.DATA[-4:]
        assert CODEC.decode(frame.frame, protocol="mongodb").status == "ok"

    def test_that_is_wrong_is_reported(self):
        frame = landed(checksummed(command({"find": "orders", "filter": {"pin": 4711}}), wrong=5), "request", "lengths")
        assert frame.flags & FrameFlags.CRC_MISMATCH
        assert decode(frame).error_code == "checksum_mismatch"
        assert landed(self.DATA, "request", "full").flags == FrameFlags.CRC_CHECKED
