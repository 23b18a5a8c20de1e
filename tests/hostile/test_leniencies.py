"""What peers send against the protocol, and are understood all the same."""

from __future__ import annotations

import pytest

from decoder import Codec
from decoder.explain.frame import explain
from decoder.kafka.protocol import KafkaProtocol
from decoder.kafka.recognition import BEGUN
from decoder.model import Frame
from pipeline.capture.runs.agent import Agent
from pipeline.capture.sessions.recognition import SURE_ENOUGH
from pipeline.capture.stats import CaptureStats
from tests.decoder.kafka import encode
from tests.pipeline.capture.wire import Flow, prefixed, request

CODEC = Codec()
OLD_LIBRDKAFKA = request(1, client_id=b"rdkafka", body=bytes(4))
"""As librdkafka asks before 1.0: ApiVersions v0 has no body, but it writes the length of an empty array."""
VERSIONS = [{"apiKey": key, "minVersion": 0, "maxVersion": 3} for key in range(19)]
ANSWER = prefixed(encode.response(18, 0, {"apiKeys": VERSIONS}, correlation_id=1))
METADATA = prefixed(encode.request(3, 1, {"topics": [{"name": "orders"}]}, client_id="rdkafka", correlation_id=2))


def frames_of(flow: Flow) -> tuple[list[Frame], CaptureStats]:
    agent = Agent("a", "lengths", CaptureStats())
    items = [item for packet in flow.packets for item in agent.take(packet)]
    items += agent.finish()
    return [item for item in items if isinstance(item, Frame)], agent.stats


def test_the_request_is_ok_and_shows_what_stands_behind_it() -> None:
    message = CODEC.decode(OLD_LIBRDKAFKA[4:])
    assert (message.status, message.api_name, message.body) == ("ok", "ApiVersions", {})
    assert (message.error_code, message.error_offset) == ("trailing_bytes", len(OLD_LIBRDKAFKA) - 8)
    last = explain(OLD_LIBRDKAFKA[4:], codec=CODEC).lines[-1]
    assert (last.name, last.start, last.end, last.hex) == (
        "(trailing bytes)", len(OLD_LIBRDKAFKA) - 8, len(OLD_LIBRDKAFKA) - 4, "00 00 00 00"
    )  # fmt: skip


def test_the_connection_is_recognised_by_the_answer() -> None:
    flow = Flow().open().send(0, OLD_LIBRDKAFKA).send(1, ANSWER).send(0, METADATA)
    frames, stats = frames_of(flow.close())
    assert stats.connections == {"kafka": 1}
    assert stats.gaps == 0
    assert [(f.api_key, f.direction) for f in frames] == [(18, "request"), (18, "response"), (3, "request")]
    assert frames[0].frame == OLD_LIBRDKAFKA[4:]


def test_or_by_the_next_request_where_no_answer_was_captured() -> None:
    flow = Flow().open().send(0, OLD_LIBRDKAFKA).send(0, METADATA)
    frames, stats = frames_of(flow)
    assert stats.connections == {"kafka": 1}
    assert [f.api_key for f in frames] == [18, 3]


@pytest.mark.parametrize("server", [b"", b"\0\0\0\x06\0\0\0\x01\0\0", b"HTTP/1.1 400 Bad Request\r\n\r\n", ANSWER[:-1]])
def test_alone_it_is_no_evidence(server: bytes) -> None:
    """A header of ApiVersions v0 and anything behind it reads so: other bytes may, too."""
    assert KafkaProtocol().recognise(OLD_LIBRDKAFKA, server) < SURE_ENOUGH


def test_it_is_a_doubt() -> None:
    protocol = KafkaProtocol()
    exact = request(1, client_id=b"rdkafka")
    assert protocol.recognise(OLD_LIBRDKAFKA, ANSWER) == BEGUN < protocol.recognise(exact, ANSWER)


def test_bytes_behind_records_are_not_stored() -> None:
    """A wrong length may have made payload of them, or names of payload."""
    produce = encode.request(0, 9, {"acks": 1, "topicData": []}, client_id="p", correlation_id=2)
    flow = Flow().open().send(0, request(1)).send(1, ANSWER).send(0, prefixed(produce + b"secret"))
    frames, _ = frames_of(flow.close())
    assert b"secret" not in frames[-1].frame
    assert frames[-1].size == len(produce) + 6
