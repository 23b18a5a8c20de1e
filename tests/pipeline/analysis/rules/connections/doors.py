"""Connections to a broker that does not let clients in, or loses them, written packet by packet."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from zlib import crc32

from typer.testing import CliRunner

from decoder.kafka.apis import ApiKey
from pipeline.capture.packets.packet import Packet
from pipeline.cli import app
from tests.decoder.kafka import encode
from tests.pipeline.capture.wire import ACK, FIN, Flow, large_fetched, large_produce, pcap, prefixed

START, SEC = 1_700_000_000_000_000, 1_000_000
SERVER, HOST = "10.0.0.9", "10.0.0.5"
OF_BROKER = tuple(range(68))
OF_CONTROLLER = (ApiKey.FETCH, 17, 18, 36, 52, 53, 54, 55, 56, 57, 58, 59, 60, 62, 63)
TOKEN = struct.pack(">i", 8) + b"\0app\0app"
TOPIC = {"topics": [{"name": "orders"}]}
METADATA = {
    "brokers": [{"nodeId": 1, "host": SERVER, "port": 9092}],
    "topics": [{"name": "orders", "partitions": [{"partitionIndex": 0, "leaderId": 1}]}],
}


class Door(Flow):
    """A connection; ``asked`` counts its requests."""

    asked = 0
    name = "app"

    def wait(self, seconds: float) -> Door:
        """Nothing comes for so long."""
        self.ts += int(seconds * SEC)
        return self

    def ask(self, api: int, version: int, body: dict[str, Any] | None = None) -> Door:
        """A request."""
        self.asked += 1
        frame = encode.request(api, version, body or {}, client_id=self.name, correlation_id=self.asked)
        self.send(0, prefixed(frame))
        return self

    def answer(self, api: int, version: int, body: dict[str, Any] | None = None) -> Door:
        """The response to the latest request."""
        self.send(1, prefixed(encode.response(api, version, body or {}, correlation_id=self.asked)))
        return self

    def versions(self, keys: Iterable[int] = OF_BROKER) -> Door:
        """ApiVersions, answered."""
        listed = [{"apiKey": key, "minVersion": 0, "maxVersion": 12} for key in keys]
        self.ask(ApiKey.API_VERSIONS, 2)
        return self.answer(ApiKey.API_VERSIONS, 2, {"apiKeys": listed})

    def begun(self) -> Door:
        """Open, with ApiVersions and Metadata answered."""
        self.open()
        self.versions().ask(ApiKey.METADATA, 5, TOPIC).answer(ApiKey.METADATA, 5, METADATA)
        self.acknowledge(0)
        return self

    def beats(self, times: int, every: float = 0.5) -> Door:
        """This many requests, answered."""
        for _ in range(times):
            self.ask(ApiKey.METADATA, 5, TOPIC).answer(ApiKey.METADATA, 5, METADATA).wait(every)
        return self

    def closes(self, side: int) -> Door:
        """One side closes, the other follows."""
        for way in (side, 1 - side):
            self.add(way, self.seq[way], self.seq[1 - way], FIN | ACK)
            self.seq[way] += 1
        self.acknowledge(side)
        return self

    def sends_again(self, side: int, data: bytes, times: int = 6, first: float = 0.3) -> Door:
        """What was sent last is sent again, after pauses that double."""
        pause = first
        for _ in range(times):
            self.wait(pause).add(side, self.seq[side] - len(data), self.seq[1 - side], ACK, data[:1460])
            pause *= 2
        return self


def door(
    number: int, seconds: float, *, port: int = 9092, host: str = HOST, name: str = "app", server: str = SERVER
) -> Door:
    """A connection that begins so late."""
    own = crc32(f"{host} {number} {server} {port}".encode())
    some = Door((host, 41_000 + number), (server, port), (own, own ^ 0x5555_5555), START + int(seconds * SEC))
    some.name = name
    return some


def each(make: Callable[[int], Flow], times: int = 6) -> list[Flow]:
    """Several connections."""
    return [make(number) for number in range(times)]


def served(seconds: float = 50, *, number: int = 900, host: str = HOST) -> Door:
    """A connection on which the broker answers for so long."""
    return door(number, 0, host=host, name="beside").begun().beats(int(seconds * 2)).closes(0)


def fetched(number: int, kilobytes: int) -> bytes:
    """A response with one batch."""
    return large_fetched(number, kilobytes)


def produced(number: int, kilobytes: int) -> bytes:
    """A request with one batch."""
    return large_produce(number, kilobytes)


def at_controller(number: int, server: str = SERVER) -> Door:
    """Closed behind Metadata, which is not offered."""
    some = door(number, number, server=server)
    some.open()
    return some.versions(OF_CONTROLLER).ask(ApiKey.METADATA, 5, TOPIC).closes(1)


def logs_in(number: int, server: str = SERVER) -> Door:
    """By SaslHandshake v0: the credentials follow without a header."""
    some = door(number, number, server=server)
    some.open()
    some.versions().ask(ApiKey.SASL_HANDSHAKE, 0, {"mechanism": "PLAIN"})
    some.answer(ApiKey.SASL_HANDSHAKE, 0, {"mechanisms": ["PLAIN"]}).send(0, TOKEN)
    return some


def cut(number: int, seconds: float, *, host: str = HOST, asks: bool = False, resets: bool = False) -> Door:
    """Accepted, and closed at once."""
    some = door(number, seconds, host=host)
    some.open()
    if asks:
        some.ask(ApiKey.API_VERSIONS, 2)
    if resets:
        some.reset(1)
        return some
    return some.closes(1)


def crowd(*, asks: bool = False, resets: bool = False) -> list[Door]:
    """Connections of four hosts that are cut, one after the other."""
    return [
        cut(number, 2 + 2 * number, host=f"10.0.0.{20 + number % 4}", asks=asks, resets=resets) for number in range(20)
    ]


def doors() -> list[Flow]:
    """A controller's listener, refused credentials and a server out of connections, on hosts of their own."""
    some = each(lambda number: at_controller(number, "10.0.0.10"))
    return [*some, *each(lambda number: logs_in(number, "10.0.0.11").closes(1)), served(), *crowd()]


def packets(*flows: Flow) -> list[Packet]:
    """All their packets in the order of time."""
    return sorted((packet for one in flows for packet in one.packets), key=lambda packet: packet.ts_us)


def rows(tmp_path: Path, some: Iterable[Packet]) -> list[dict[str, Any]]:
    """The findings of a capture."""
    path = tmp_path / "some.pcap"
    path.write_bytes(pcap(some))
    done = CliRunner().invoke(app, ["diagnose", "--json", str(path)])
    assert "internal error" not in done.output
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def found(tmp_path: Path, *flows: Flow) -> dict[str, str]:
    """By subject of ``connection_failed`` the severity; whatever else is found above info by its rule."""
    return {
        row["subject"] if row["rule"] == "connection_failed" else row["rule"]: row["severity"]
        for row in rows(tmp_path, packets(*flows))
        if row["severity"] != "info" or row["rule"] == "connection_failed"
    }
