"""What does a recording look like to who came late, or lost some of it? Variants of pcap files, made by cutting."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import zstandard

from tests.captures.losses import lose

_HEADER = 24
LOSE_EVERY = 60
BURST_S = 0.0003
"""Packets that follow each other sooner belong to one burst: messages are under way between them."""


def pcap_of(path: Path) -> bytes:
    """A recording as tcpdump wrote it."""
    data = path.read_bytes()
    if path.suffix != ".zst":
        return data
    with zstandard.ZstdDecompressor().stream_reader(data) as stream:
        return stream.read()


def joined_after(pcap: bytes, share: float) -> bytes:
    """What of a recording is left for who comes after this share (0 to 1) of its time."""
    begin = _seconds(pcap, _HEADER)
    return joined_at(pcap, begin + share * (_last_seconds(pcap) - begin))


def joined_at(pcap: bytes, since: float) -> bytes:
    """The packets from this time on, seconds since the epoch."""
    at = _HEADER
    while at < len(pcap) and _seconds(pcap, at) < since:
        at = _next(pcap, at)
    return pcap[:_HEADER] + pcap[at:]


def amid_bursts(pcap: bytes, most: int, packets: int | None = None) -> Iterator[bytes]:
    """What is left for who comes between two packets of a burst, of this many bursts; `packets`: at most."""
    places = [_HEADER]
    while places[-1] < len(pcap):
        places.append(_next(pcap, places[-1]))
    times = [_seconds(pcap, at) for at in places[:-1]]
    within = [number for number in range(1, len(times)) if times[number] - times[number - 1] < BURST_S]
    for number in sorted(random.Random(0).sample(within, min(most, len(within)))):
        end = len(places) - 1 if packets is None else min(number + packets, len(places) - 1)
        yield pcap[:_HEADER] + pcap[places[number] : places[end]]


def _seconds(pcap: bytes, at: int) -> float:
    seconds, micros = struct.unpack_from("<II", pcap, at)
    return float(seconds + micros / 1e6)


def _next(pcap: bytes, at: int) -> int:
    return at + 16 + int(struct.unpack_from("<I", pcap, at + 8)[0])


def _last_seconds(pcap: bytes) -> float:
    at = last = _HEADER
    while at < len(pcap):
        last, at = at, _next(pcap, at)
    return _seconds(pcap, last)


VARIANTS: dict[str, Callable[[bytes], bytes]] = {
    "joined midway": lambda pcap: joined_after(pcap, 1 / 8),
    "with loss": lambda pcap: lose(pcap, LOSE_EVERY),
}
"""Incidents in recordings at real rhythms begin after an eighth of their time."""
