"""What a campaign starts from: recorded captures, as packets, as landed rows and as rows of ``bronze.frames``."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path

import pyarrow as pa

from pipeline.capture.packets.packet import Packet
from pipeline.capture.packets.sources import read_packets
from pipeline.embedded.diagnosis import decoded
from pipeline.embedded.inputs import Landed, read_inputs
from tests.paths import CAPTURES
from tests.pipeline.capture.wire import pcap

READ = 12_000
"""Packets that are read of a capture."""


@lru_cache(maxsize=1)
def recordings() -> tuple[Path, ...]:
    """All recorded captures."""
    return tuple(sorted([*CAPTURES.rglob("*.pcap"), *CAPTURES.rglob("*.pcap.zst")]))


@lru_cache(maxsize=2)
def packets_of(path: Path) -> tuple[Packet, ...]:
    """The first ones of a capture."""
    return tuple(islice(read_packets(str(path)), READ))


@lru_cache(maxsize=2)
def landed_of(path: Path) -> tuple[pa.Table, pa.Table]:
    """Landed rows of a capture, in the order of time, and gaps."""
    found = landed(packets_of(path))
    return found.frames.sort_by([("ts", "ascending")]), found.gaps


@lru_cache(maxsize=2)
def frames_of(path: Path) -> tuple[pa.Table, pa.Table]:
    """Rows of bronze, in the order of time, and gaps."""
    frames, gaps = landed_of(path)
    return decoded(frames), gaps


def landed(packets: Sequence[Packet]) -> Landed:
    """Landed rows of what may be a capture."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "packets.pcap")
        file.write_bytes(pcap(packets))
        return read_inputs([str(file)])
