"""Pasted bytes are taken for their own protocol, also if they are cut off or state another length."""

from __future__ import annotations

import struct

import pytest

from benchmarks.corpus import samples as kafka_samples
from decoder.mongodb.paste import cut_mongodb, is_mongodb
from tests.captures.mongodb.exchanges import frames
from tests.captures.mongodb.record import ALL, HERE
from tests.decoder.mongodb.build import command, legacy, reply
from tests.hostile.mongodb import samples as mongodb_samples


@pytest.mark.slow
def test_every_message_is_taken_for_what_it_is():
    kafka = [frame.data for frame in kafka_samples()]
    assert len(kafka) > 1000
    assert not [data for data in kafka if is_mongodb(data) or is_mongodb(struct.pack(">i", len(data)) + data)]
    mongodb = [(direction, data) for direction, data in mongodb_samples() if len(data) > 16]
    assert len(mongodb) > 100
    assert not [data for _, data in mongodb if not is_mongodb(data)]


def test_a_recorded_message_shows_its_direction():
    recorded = [frame for name in ALL for frame in frames(HERE / f"{name}.pcap")]
    assert len(recorded) > 300
    assert not [frame for frame in recorded if cut_mongodb(frame.frame).direction != frame.direction]


def test_a_message_that_is_cut_off_or_has_another_length():
    data = command({"ping": 1, "$db": "admin"})
    assert is_mongodb(data[:30])
    assert is_mongodb(struct.pack("<i", 7) + data[4:])
    assert not is_mongodb(data[:15])
    assert not is_mongodb(legacy()["OP_REPLY"][:-1])  # its opcode is a number that is anywhere


def test_the_first_of_several_messages():
    first, second = command({"ping": 1, "$db": "admin"}), reply({"ok": 1.0})
    cut = cut_mongodb(first + second)
    assert (cut.frame, cut.direction) == (first, "request")
    assert cut.remark == f"{len(second)} bytes follow the message that the header announces: the next one begins there"
    assert cut_mongodb(second).direction == "response"
    assert cut_mongodb(first + b"\0").frame == first + b"\0"
