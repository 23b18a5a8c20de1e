"""How does a test make a row of the landing zone? From the bytes of a frame."""

from __future__ import annotations

from decoder import Codec, Frame, Message
from decoder.model import Direction, PayloadPolicy

_CODEC = Codec()


def landed(
    data: bytes,
    direction: Direction = "request",
    api_key: int | None = None,
    api_version: int | None = None,
    *,
    policy: PayloadPolicy = "lengths",
    flags: int = 0,
    protocol: str = "kafka",
) -> Frame:
    """A frame as pairing leaves it: the key and version of a request come from its header."""
    if direction == "request" and api_key is None:
        api_key, api_version = int.from_bytes(data[:2], "big"), int.from_bytes(data[2:4], "big")
    return Frame(
        agent_id="agent",
        connection_id="connection",
        exchange_id="connection-0",
        seq=0,
        direction=direction,
        ts=1_700_000_000_000_000,
        ts_end=1_700_000_000_000_000,
        client_ip="10.0.0.1",
        client_port=40000,
        server_ip="10.0.0.2",
        server_port=9092,
        protocol=protocol,
        api_key=api_key,
        api_version=api_version,
        correlation_id=7,
        reply_to=None,
        size=len(data),
        frame=data,
        flags=flags,
        flow_id="flow",
        payload_policy=policy,
    )


def decode(frame: Frame) -> Message:
    """As the pipeline decodes a landed frame."""
    return _CODEC.decode(
        frame.frame,
        direction=frame.direction,
        api_key=frame.api_key,
        api_version=frame.api_version,
        flags=frame.flags,
    )
