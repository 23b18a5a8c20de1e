from __future__ import annotations

import itertools
import random
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decoder import limits
from decoder.model import RawFrame
from decoder.mongodb.stream.framing import MongoFramer
from decoder.mongodb.stream.pairing import MongoPairer
from tests.decoder.mongodb.build import COMPRESSORS, command, compressed, legacy, message, reply, sequence

MESSAGES = st.lists(st.binary(max_size=60).map(lambda body: message(2013, body)), min_size=1, max_size=8)


def requests(count: int, compressor: str | None = None) -> list[bytes]:
    found = []
    for n in range(count):
        one = command(
            {"insert": f"orders-{n}", "$db": "shop"}, sequence("documents", {"n": n, "x": "y" * n}), request_id=n + 1
        )
        found.append(compressed(one, compressor) if compressor else one)
    return found


def split(data: bytes, cuts: list[int]) -> list[bytes]:
    edges = [0, *sorted(c % (len(data) + 1) for c in cuts), len(data)]
    return [data[a:b] for a, b in itertools.pairwise(edges)]


@settings(derandomize=True, deadline=None)
@given(MESSAGES, st.lists(st.integers(0, 10_000), max_size=20), st.sampled_from(["request", "response"]))
def test_any_split_of_the_stream_gives_the_same_messages(messages, cuts, direction):
    framer = MongoFramer(direction)
    frames = [f for ts, part in enumerate(split(b"".join(messages), cuts)) for f in framer.feed(part, ts).frames]
    assert [frame.data for frame in frames] == messages
    assert all(frame.size == len(frame.data) and not frame.after_gap for frame in frames)
    assert framer.buffered == 0


@settings(derandomize=True, deadline=None, max_examples=300)
@given(st.lists(st.binary(max_size=200), max_size=6), st.lists(st.booleans(), max_size=6))
def test_whatever_comes_the_bytes_are_accounted_for(parts, losses):
    framer, frames, skipped = MongoFramer("request"), [], 0
    for number, part in enumerate(parts):
        outcomes = [framer.feed(part, number)]
        if number < len(losses) and losses[number]:
            outcomes.append(framer.lost(10, number))
        frames += [frame for outcome in outcomes for frame in outcome.frames]
        skipped += sum(outcome.bytes_skipped for outcome in outcomes)
    outcomes = [framer.conclude(), framer.close()]
    frames += [frame for outcome in outcomes for frame in outcome.frames]
    skipped += sum(outcome.bytes_skipped for outcome in outcomes)
    assert sum(len(frame.data) for frame in frames) + skipped == sum(map(len, parts))


@pytest.mark.parametrize("length", [0, -1, 3, 15, 2**31 - 1, limits.MAX_MONGODB_MESSAGE_BYTES + 1])
def test_a_length_that_cannot_be_one_ends_the_step(length):
    first, second, third = requests(3)
    framer = MongoFramer("request")
    frames = [*framer.feed(first, 1).frames]
    bad = struct.pack("<i", length) + second[4:]
    outcomes = [framer.feed(bad, 2), framer.feed(third, 3)]
    frames += [frame for outcome in outcomes for frame in outcome.frames]
    assert [frame.data for frame in frames] == [first, third]
    assert frames[1].after_gap
    assert sum(outcome.bytes_skipped for outcome in outcomes) == len(second)
    assert framer.buffered < limits.MIN_MONGODB_MESSAGE_BYTES


@pytest.mark.parametrize("compressor", [None, *COMPRESSORS])
def test_a_stream_joined_midway_begins_with_its_first_whole_message(compressor):
    messages = requests(6, compressor)
    stream = b"".join(messages)
    for cut in range(1, len(messages[0]) + len(messages[1])):
        framer = MongoFramer("request", MongoPairer())
        framer.lost(0, 0)
        found = [*framer.feed(stream[cut:], 1).frames, *framer.conclude().frames, *framer.close().frames]
        whole = [
            m for m, end in zip(messages, itertools.accumulate(map(len, messages)), strict=True) if end - len(m) >= cut
        ]
        assert [frame.data for frame in found] == whole, cut


def conversation(seed: int) -> tuple[list[bytes], list[bytes]]:
    """Requests with their responses; payloads hold whole messages of both kinds."""
    source = random.Random(seed)
    asked, answered = [], []
    for n in range(30):
        inner = source.choice([command({"find": "fake"}), reply({"ok": 1}, source.randrange(40)), source.randbytes(50)])
        more = {"blob": inner, "n": n}
        request = command({"insert": "orders", "$db": "shop", **more}, request_id=n + 1)
        response = reply({"cursor": {"firstBatch": [more]}, "ok": 1}, n + 1, 1000 + n)
        packed = source.random() < 0.3
        asked.append(compressed(request, "zlib") if packed else request)
        answered.append(compressed(response, "zlib") if packed else response)
    return asked, answered


@pytest.mark.parametrize("seed", range(40))
def test_after_a_loss_no_false_message_and_all_whole_ones(seed):
    """Segments of any size; some are lost. What of a message is there in whole segments is found again."""
    source = random.Random(seed)
    asked, answered = conversation(seed)
    pairer = MongoPairer()
    pairer.expect_requests()
    for message_bytes in asked:
        pairer.request(RawFrame(message_bytes, len(message_bytes), 1, 1))
    framer = MongoFramer("response", pairer)
    frames: list[RawFrame] = []

    def take(outcome):
        for frame in outcome.frames:
            frames.append(frame)
            pairer.response(frame)

    kept = []
    for ts, message_bytes in enumerate(answered):
        for part in split(message_bytes, [source.randrange(10_000)] if source.random() < 0.3 else []):
            if source.random() < 0.1:
                take(framer.conclude(len(part)))
                take(framer.lost(len(part), ts))
                pairer.lost("response")
                kept.append(False)
            elif part:
                take(framer.feed(part, ts))
        if not kept or kept[-1] is not False:
            kept.append(message_bytes)
    take(framer.conclude())
    take(framer.close())
    whole = [frame for frame in frames if len(frame.data) == frame.size]
    assert all(frame.data in answered for frame in whole)
    lost = kept.count(False)
    assert len(whole) >= len(answered) - 3 * lost


@pytest.mark.parametrize("name", ["OP_UPDATE", "OP_INSERT", "OP_QUERY", "OP_GET_MORE", "OP_DELETE", "OP_COMMAND"])
def test_old_messages_are_found_too(name):
    one = legacy()[name]
    framer = MongoFramer("request", MongoPairer())
    framer.lost(0, 0)
    found = framer.feed(b"rest of something" + one + one + command({"ping": 1}), 1)
    assert [frame.data for frame in found.frames] == [one, one, command({"ping": 1})]
    assert (found.method, found.bytes_skipped) == ("scan", 17)


def test_a_hole_inside_a_message_costs_this_message_only():
    first, second = requests(2)
    framer = MongoFramer("request")
    framer.feed(first[:30], 1)
    cut = framer.lost(len(first) - 30, 2)
    assert [(frame.data, frame.size) for frame in cut.frames] == [(first[:30], len(first))]
    assert cut.method == "length"
    assert [frame.data for frame in framer.feed(second, 3).frames] == [second]
