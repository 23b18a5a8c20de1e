"""Large messages are read by the kernel, and are what the plain reader makes of them."""

from __future__ import annotations

import pytest

from decoder import Codec, Frame
from decoder.model import Message
from pipeline.analysis.frames import effort
from pipeline.analysis.frames.effort import without_zeros
from pipeline.commands.messages import large
from pipeline.commands.messages.large import LARGE, LargeMessages
from pipeline.commands.messages.messages import MessageReader, as_object
from pipeline.terminal.console import json_line
from tests.decoder.kafka import encode

METADATA, API_VERSION = 3, 9


def metadata(topics: int, *, junk: bytes = b"") -> bytes:
    partitions = [
        {"partitionIndex": p, "leaderId": 0x01010101, "leaderEpoch": 0x05050505, "replicaNodes": [0x01010101] * 3}
        for p in range(0x01010101, 0x01010101 + 100)
    ]
    body = {
        "clusterId": "c",
        "brokers": [{"nodeId": 1, "host": "b-ü", "port": 9092}],
        "topics": [{"errorCode": 5, "name": f"topic-{n}", "partitions": partitions} for n in range(topics)],
    }
    return encode.response(METADATA, API_VERSION, body) + junk


def frame(data: bytes) -> Frame:
    return Frame(
        agent_id="a", connection_id="c", exchange_id="e", seq=1, direction="response", ts=1, ts_end=1,
        client_ip="10.0.0.1", client_port=1, server_ip="10.0.0.2", server_port=9092, protocol="kafka",
        api_key=METADATA, api_version=API_VERSION, correlation_id=1, reply_to=None, size=len(data), frame=data, flags=0,
        flow_id="f", payload_policy="lengths",
    )  # fmt: skip


def plainly(data: bytes) -> Message:
    return Codec().decode(data, direction="response", api_key=METADATA, api_version=API_VERSION)


def test_the_kernel_gives_the_same_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(effort, "KERNEL_AFTER_BYTES", LARGE)
    monkeypatch.setattr(effort, "_is_kernel_compiled", lambda: True)
    data = metadata(60)
    found = LargeMessages().read(frame(data))
    assert without_zeros(data) > LARGE
    assert found == plainly(data)


def test_a_body_is_written_down_as_the_kernel_wrote_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(effort, "KERNEL_AFTER_BYTES", LARGE)
    monkeypatch.setattr(effort, "_is_kernel_compiled", lambda: True)
    lines = [
        json_line(as_object(MessageReader(as_text=as_text).read(frame(metadata(60))))) for as_text in (False, True)
    ]
    assert lines[0] == lines[1]
    assert isinstance(LargeMessages(as_text=True).read(frame(metadata(60))), Message)


def test_what_does_not_decode_is_left_to_the_plain_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(effort, "KERNEL_AFTER_BYTES", LARGE)
    monkeypatch.setattr(effort, "_is_kernel_compiled", lambda: True)
    assert LargeMessages().read(frame(metadata(60)[:-1])) is None
    assert LargeMessages().read(frame(metadata(60, junk=b"x"))) is None


def test_the_kernel_is_loaded_once_that_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    data = metadata(60)
    monkeypatch.setattr(effort, "KERNEL_AFTER_BYTES", 3 * without_zeros(data))
    monkeypatch.setattr(effort, "_is_kernel_compiled", lambda: True)
    monkeypatch.setattr(large, "_read", lambda *_: plainly(data))
    reader, small = LargeMessages(), frame(metadata(1))
    read = [reader.read(one) is not None for one in (frame(data), small, frame(data), small, frame(data), small)]
    assert read == [False, False, False, False, True, False]
