from __future__ import annotations

import pytest

import decoder
from decoder import Codec, limits
from decoder.errors import ErrorCode

CODEC = Codec()


def test_the_package_offers_what_users_need():
    assert {"Codec", "Message", "Frame", "FrameFlags", "CODEC_VERSION"} <= set(decoder.__all__)


def test_the_readme_of_the_class_is_true():
    frame = bytes.fromhex("00120000000000070004") + b"demo"
    message = CODEC.decode(frame)
    assert message.status == "ok"
    assert message.header == {
        "requestApiKey": 18, "requestApiVersion": 0, "correlationId": 7, "clientId": "demo",
    }  # fmt: skip


@pytest.mark.parametrize("wrap", [bytes, bytearray, memoryview])
def test_any_bytes_like_object_will_do(wrap):
    frame = bytes.fromhex("00120000000000070004") + b"demo"
    assert CODEC.decode(wrap(frame)).client_id == "demo"


def test_a_mistake_of_the_caller_is_an_exception():
    with pytest.raises(ValueError, match="unknown protocol 'amqp'; known: kafka, mongodb"):
        CODEC.decode(b"", protocol="amqp")
    with pytest.raises(ValueError, match="'request' or 'response', not 'reply'"):
        CODEC.decode(b"", direction="reply")


def test_a_frame_above_the_limit_is_not_even_looked_at(monkeypatch):
    monkeypatch.setattr(limits, "MAX_FRAME_BYTES", 10)
    message = CODEC.decode(bytes(11), api_key=3, api_version=1)
    assert (message.status, message.error_code, message.error_offset) == ("malformed", ErrorCode.FRAME_TOO_LARGE, 0)


def test_a_fault_of_ours_costs_one_message():
    def fail(_span):
        raise RuntimeError("boom")

    message = CODEC.decode(bytes.fromhex("00120000000000070004") + b"demo", trace=fail)
    assert (message.status, message.error_code) == ("malformed", ErrorCode.INTERNAL)
    assert message.error_detail == "RuntimeError"  # its text may quote the frame
