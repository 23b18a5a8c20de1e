"""The package's own tests: cut anywhere, lost anywhere, broken anyhow."""

from __future__ import annotations

import random

import pytest
from wirelake_resp import RespProtocol
from wirelake_resp.framing import RespFramer
from wirelake_resp.values import MalformedError, values

from decoder.kafka.protocol import KafkaProtocol
from decoder.model import Frame, FrameFlags, RawFrame
from decoder.mongodb.protocol import MongoProtocol
from decoder.protocol import Context
from tests.protocols.record import SECRET, VALUE, words

REQUESTS = [
    words("SET", "key", VALUE), b"PING\r\n", words("GET", "key"), words("AUTH", SECRET), b"GET key\n",
    words("CONFIG", "SET", "requirepass", SECRET), words("LPUSH", "key", "", "\r\n$3\r\n", VALUE),
]  # fmt: skip
RESPONSES = [
    b"+OK\r\n", b"$-1\r\n", b"*-1\r\n", f"${len(VALUE)}\r\n{VALUE}\r\n".encode(), b":42\r\n", b"*0\r\n",
    b"*2\r\n*1\r\n$0\r\n\r\n-WRONGTYPE nested\r\n", b"%1\r\n+a\r\n_\r\n", b"|1\r\n+ttl\r\n:3\r\n#t\r\n", b",1.5\r\n",
]  # fmt: skip
RESP = RespProtocol()


def frames(direction, stream: bytes, sizes: list[int]) -> list[RawFrame]:
    framer, found, at = RespFramer(direction), [], 0
    for size in sizes:
        found += framer.feed(stream[at : at + size], at).frames
        at += size
    assert framer.close().frames == ()
    return found


@pytest.mark.parametrize(("direction", "messages"), [("request", REQUESTS), ("response", RESPONSES)])
def test_messages_are_found_however_they_are_cut(direction, messages):
    stream = b"".join(messages)
    for size in range(1, len(stream) + 1):
        cuts = [size] * (len(stream) // size) + [len(stream) % size]
        found = frames(direction, stream, cuts)
        assert [frame.data for frame in found] == messages
        assert all(frame.size == len(frame.data) and not frame.after_gap for frame in found)


def test_all_bytes_are_in_frames_or_told_to_be_lost():
    choose, lost = random.Random(6), 0
    for _ in range(400):
        stream = b"".join(choose.choices(RESPONSES, k=30))
        framer, at, in_frames, skipped = RespFramer("response"), 0, 0, 0
        given = 0
        while at < len(stream):
            size = choose.randint(1, 40)
            if choose.random() < 0.2:
                outcome = framer.lost(size, at)
                lost += 1
            else:
                piece = bytearray(stream[at : at + size])
                if choose.random() < 0.2:
                    piece[choose.randrange(len(piece))] = choose.randrange(256)
                given += len(piece)
                outcome = framer.feed(bytes(piece), at)
            in_frames += sum(len(frame.data) for frame in outcome.frames)
            skipped += outcome.bytes_skipped
            at += size
        last = framer.close()
        in_frames += sum(len(frame.data) for frame in last.frames)
        assert in_frames + skipped + last.bytes_skipped == given
    assert lost > 400


def test_after_a_loss_it_goes_on_where_a_segment_begins_a_message():
    framer = RespFramer("request")
    cut_off = framer.feed(words("SET", "key", VALUE)[:20], 1)
    assert not cut_off.frames
    (open_one,) = framer.lost(100, 2).frames
    assert len(open_one.data) == 20 < open_one.size
    assert not framer.feed(b"rest of a value\r\n", 3).frames
    found = framer.feed(words("GET", "key"), 4)
    assert [frame.data for frame in found.frames] == [words("GET", "key")]
    assert (found.bytes_skipped, found.method, found.frames[0].after_gap) == (17, "segment_start", True)


def test_responses_come_in_the_order_of_the_requests_and_pushes_belong_to_none():
    pairer = RespPairerOf(3)
    assert [pairer.response(raw(b"+OK\r\n")).exchange_ordinal for _ in range(2)] == [0, 1]
    push = pairer.response(raw(b">3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\nb\r\n"))
    assert (push.exchange_ordinal, push.flags) == (3, FrameFlags.FOLLOWING_RESPONSE)
    assert pairer.unanswered() == [2]
    again = RESP.pairer(pairer.state())
    assert again.response(raw(b"+OK\r\n")).exchange_ordinal == 2
    assert again.response(raw(b"+OK\r\n")).flags == FrameFlags.ORPHAN_RESPONSE


def test_after_a_loss_nobody_is_paired_until_it_is_sure():
    pairer = RespPairerOf(2)
    pairer.lost("response")
    assert pairer.unanswered() == []
    assert pairer.response(raw(b"+OK\r\n")).flags == FrameFlags.ORPHAN_RESPONSE
    key = pairer.request(raw(b"PING\r\n"))
    assert pairer.response(raw(b"+PONG\r\n")).exchange_ordinal == key.exchange_ordinal


@pytest.mark.parametrize("policy", ["lengths", "none", "hash", "full"])
def test_secrets_land_under_no_policy_and_values_only_under_full(policy):
    for direction, messages in (("request", REQUESTS), ("response", RESPONSES)):
        for data in messages:
            frame = stored(data, direction, policy)
            assert len(frame.frame) == len(data)
            assert SECRET.encode() not in frame.frame
            assert (VALUE.encode() in frame.frame) == (policy == "full" and VALUE.encode() in data)
            assert RESP.decode(None, frame.frame, Context(direction, flags=frame.flags)).status in ("ok", "redacted")
    reply = stored(f"*1\r\n$16\r\n{SECRET}\r\n".encode(), "response", policy, FrameFlags.CREDENTIALS)
    assert SECRET.encode() not in reply.frame
    orphan = stored(f"*1\r\n$16\r\n{SECRET}\r\n".encode(), "response", policy, FrameFlags.ORPHAN_RESPONSE)
    assert SECRET.encode() not in orphan.frame


def test_any_bytes_are_a_row_and_keep_no_value():
    choose, broken = random.Random(7), 0
    for _ in range(4000):
        direction = choose.choice(["request", "response"])
        data = bytearray(choose.choice(REQUESTS if direction == "request" else RESPONSES))
        for _ in range(choose.randint(1, 3)):
            data[choose.randrange(len(data))] = choose.choice([0, 10, 13, 36, 42, 48, 57, 255])
        frame = stored(bytes(data), direction, "lengths")
        assert VALUE.encode() not in frame.frame
        assert SECRET.encode() not in frame.frame
        message = RESP.decode(None, frame.frame, Context(direction, flags=frame.flags))
        broken += message.status == "malformed"
        assert (message.status == "ok") == (message.error_code in (None, "trailing_bytes"))
        assert message.error_offset is None or 0 <= message.error_offset <= len(data)
    assert broken > 400


def test_it_speaks_for_itself():
    asked = RESP.decode(None, stored(words("SET", "key", VALUE), "request", "lengths").frame, Context("request"))
    refused = RESP.decode(None, b"-OOM command not allowed\r\n", Context("response"))
    describer = RESP.describer()
    assert describer.describe(asked, None) == f"key, {len(VALUE)} B"
    assert describer.describe(asked, refused) == f"key, {len(VALUE)} B → OOM"
    assert describer.errors(refused) == ["OOM"]
    assert describer.about(asked, None).places == {("key", None)}


def test_a_deep_message_and_a_long_number_are_refused():
    with pytest.raises(MalformedError):
        list(values(b"*1\r\n" * 5000 + b":1\r\n", is_request=False))
    with pytest.raises(MalformedError):
        list(values(b"$99999999999\r\n", is_request=False))


def test_no_protocol_takes_another_for_itself():
    request, response = words("GET", "key"), b"$1\r\na\r\n"
    assert RESP.recognise(request, response) == 1
    assert RESP.recognise(b"PING\r\n", b"+PONG\r\n") == 1
    assert RESP.recognise(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", b"HTTP/1.1 200 OK\r\n") == 0
    for other in (KafkaProtocol(), MongoProtocol()):
        assert other.recognise(request, response) == 0
    kafka = bytes.fromhex("0000000e0012000000000007000464656d6f")
    assert RESP.recognise(kafka, b"\0\0\0\4\0\0\0\7") == 0


def RespPairerOf(requests: int):  # noqa: N802 - reads as what it makes
    pairer = RESP.pairer()
    for _ in range(requests):
        pairer.request(raw(b"PING\r\n"))
    return pairer


def raw(data: bytes) -> RawFrame:
    return RawFrame(data, len(data), 0, 0)


def stored(data: bytes, direction, policy, flags: int = 0) -> Frame:
    frame = Frame(
        agent_id="a", connection_id="c", exchange_id="c-0", seq=0, direction=direction, ts=0, ts_end=0,
        client_ip="10.0.0.1", client_port=40_000, server_ip="10.0.0.2", server_port=6379, protocol="resp", api_key=None,
        api_version=None, correlation_id=None, reply_to=None, size=len(data), frame=data, flags=int(flags),
        flow_id="f", payload_policy=policy,
    )  # fmt: skip
    return RESP.redact(frame)
