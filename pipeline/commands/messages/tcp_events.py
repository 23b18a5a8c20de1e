"""Packets by which a TCP connection begins, ends, breaks off or halts, beside messages of ``wirelake decode --tcp``."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from pipeline.capture.network.link import ACK, FIN, RST, SYN, ZERO_WINDOW, Dissector, Endpoint, Segment
from pipeline.capture.packets.packet import DamagedCaptureError
from pipeline.capture.packets.sources import read_packets
from pipeline.capture.sessions.recognition import readable
from pipeline.capture.sessions.tls import alert_of

Place = tuple[str, int]
"""Address and port."""

_MOST_KNOWN: Final = 100_000
"""Connections whose opener is known; directions whose sender is known to have no room."""
_TLS_MAJOR: Final = b"\x03"
"""The first byte of the version in each TLS record."""


@dataclass(frozen=True, slots=True)
class TcpEvent:
    """A packet that opens, ends, halts or resumes a connection, or carries a TLS alert in clear.

    Attributes:
        ts: capture time, µs since the epoch.
        client, server: the ends; where no SYN was captured, the one with the larger port is the client.
        is_of_client: whether the client sent it.
        flags: ``SYN``, ``SYN ACK``, ``FIN``, ``RST``, ``ZERO WINDOW`` (the first packet by which its sender asks to be
            sent nothing), ``WINDOW OPEN`` (the first after that by which it does not), or empty.
        alert: the name of a TLS alert, or empty.
    """

    ts: int
    client: Place
    server: Place
    is_of_client: bool
    flags: str
    alert: str

    def as_object(self, ts: str) -> dict[str, object]:
        """For JSON; ``ts``: its time as text."""
        return {
            "ts": ts, "tcp": self.flags or None, "tls_alert": self.alert or None,
            "direction": "request" if self.is_of_client else "response", "client_ip": self.client[0],
            "client_port": self.client[1], "server_ip": self.server[0], "server_port": self.server[1],
        }  # fmt: skip


def tcp_events(path: str, *, allow_truncated: bool | None) -> Iterator[TcpEvent]:
    """Those of a capture, in its order; arguments and errors as of pipeline.capture.runs.one_capture.frames_of."""
    dissector, openers, full = Dissector(), OrderedDict[frozenset[Place], Place](), _Full()
    try:
        for packet in read_packets(path):
            segment = dissector.segment(packet)
            if segment is None:
                continue
            alert, flags = _alert(segment.payload), _flags(segment.flags) or full.turn(segment)
            if flags or alert:
                yield _event(packet.ts_us, segment, flags, alert, openers)
    except DamagedCaptureError:
        if allow_truncated is False:
            raise


class _Full:
    """Senders that have no room."""

    def __init__(self) -> None:
        self._those: OrderedDict[tuple[Endpoint, Endpoint], None] = OrderedDict()

    def turn(self, segment: Segment) -> str:
        """Whether a packet says that its sender has no room any more, or has some again; empty if nothing changes."""
        way = segment.source, segment.destination
        if segment.flags & ZERO_WINDOW:
            if way in self._those:
                return ""
            self._those[way] = None
            if len(self._those) > _MOST_KNOWN:
                self._those.popitem(last=False)
            return "ZERO WINDOW"
        if self._those and way in self._those:
            del self._those[way]
            return "WINDOW OPEN"
        return ""


def _event(
    ts: int, segment: Segment, flags: str, alert: str, openers: OrderedDict[frozenset[Place], Place]
) -> TcpEvent:
    source, destination = readable(segment.source), readable(segment.destination)
    ends = frozenset((source, destination))
    if segment.flags & SYN:
        openers[ends] = destination if segment.flags & ACK else source
        if len(openers) > _MOST_KNOWN:
            openers.popitem(last=False)
    client = openers.get(ends) or max(source, destination, key=lambda end: end[1])
    server = destination if client == source else source
    return TcpEvent(ts, client, server, client == source, flags, alert)


def _alert(payload: bytes) -> str:
    """A TLS alert in clear within the records that a segment begins with."""
    named = alert_of(payload, b"") if payload[1:2] == _TLS_MAJOR else None
    return "" if named is None else named.removeprefix("client ")


def _flags(flags: int) -> str:
    if flags & RST:
        return "RST"
    if flags & SYN:
        return "SYN ACK" if flags & ACK else "SYN"
    return "FIN" if flags & FIN else ""
