"""What does the agent make of a capture? Frames, gaps and counts, of a recording or of packets made from it."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path

from decoder.model import Frame, Gap
from pipeline.capture.packets.packet import Packet
from pipeline.capture.packets.sources import read_packets
from pipeline.capture.runs.one_capture import frames_of
from pipeline.capture.stats import CaptureStats
from tests.paths import CAPTURES
from tests.pipeline.capture.wire import pcap

RECORDED = sorted(CAPTURES.glob("*.pcap"))
SMALL = CAPTURES / "version_negotiation.pcap"
LARGE = CAPTURES / "stuck_commit.pcap"


def read(path: Path, **options) -> tuple[list[Frame], list[Gap], CaptureStats]:
    stats = CaptureStats()
    items = list(frames_of(path, stats=stats, **options))
    return [i for i in items if isinstance(i, Frame)], [i for i in items if isinstance(i, Gap)], stats


def read_packets_of(tmp_path: Path, packets: list[Packet]) -> tuple[list[Frame], list[Gap], CaptureStats]:
    path = tmp_path / "rewritten.pcap"
    path.write_bytes(pcap(packets))
    return read(path)


def content(frames: list[Frame]) -> Counter:
    """What must not depend on how the packets came: everything but times and the ids that derive from them."""
    return Counter(
        (f.client_ip, f.client_port, f.server_port, f.direction, f.seq, str(f.exchange_id).partition("-")[2], f.api_key,
         f.api_version, f.correlation_id, f.size, f.frame, f.flags)
        for f in frames
    )  # fmt: skip


def packets_of(path: Path) -> list[Packet]:
    return list(read_packets(str(path)))


@cache
def original(path: Path) -> list[Frame]:
    return read(path)[0]
