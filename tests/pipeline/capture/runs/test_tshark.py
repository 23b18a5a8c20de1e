"""Does Wireshark find the same messages? Its own reassembly and Kafka dissector, on each connection and direction."""

from __future__ import annotations

import ipaddress
import subprocess
from collections import defaultdict
from pathlib import Path
from random import Random

import pytest

from decoder.model import Frame, FrameFlags
from pipeline.capture.packets.sources import read_packets
from pipeline.capture.runs.one_capture import frames_of
from tests.hostile.harm import HARMLESS, HARMS, SHAPES
from tests.hostile.loss import RECORDED
from tests.pipeline.capture.wire import pcap
from tests.requirements import require_tshark

pytestmark = pytest.mark.slow

Stream = tuple[str, int, str, int]
"""From and to: address and port."""

FIELDS = ("ip.src", "tcp.srcport", "ip.dst", "tcp.dstport", "kafka.correlation_id", "kafka.len")


def seen_by_tshark(path: Path) -> dict[Stream, list[tuple[int, int]]]:
    """Correlation id and size of each message. It knows few versions, but cuts and numbers messages of any."""
    command = ["tshark", "-r", str(path), "-d", "tcp.port==9092,kafka", "-o", "tcp.reassemble_out_of_order:TRUE"]
    command += ["-Y", "kafka", "-T", "fields", *(option for field in FIELDS for option in ("-e", field))]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = defaultdict(list)
    for line in output.splitlines():
        source, source_port, destination, destination_port, ids, sizes = line.split("\t")
        stream = (source, int(source_port), destination, int(destination_port))
        found[stream] += zip(map(int, ids.split(",")), map(int, sizes.split(",")), strict=True)
    return dict(found)


def seen_by_agent(path: Path) -> dict[Stream, list[tuple[int, int]]]:
    found = defaultdict(list)
    frames = [item for item in frames_of(path) if isinstance(item, Frame) and not item.flags & FrameFlags.TRUNCATED]
    for frame in sorted(frames, key=lambda f: f.seq):
        assert ipaddress.ip_address(frame.client_ip).version == 4
        client, server = (frame.client_ip, frame.client_port), (frame.server_ip, frame.server_port)
        stream = (*client, *server) if frame.direction == "request" else (*server, *client)
        assert frame.correlation_id is not None
        found[stream].append((frame.correlation_id, frame.size))
    return dict(found)


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_recorded_captures(path: Path) -> None:
    require_tshark()
    assert seen_by_agent(path) == seen_by_tshark(path)


@pytest.mark.parametrize("shape", ["as recorded", "mss 536"])
@pytest.mark.parametrize("harm", sorted(HARMLESS))
@pytest.mark.parametrize("path", [p for p in RECORDED if p.stat().st_size < 300_000], ids=lambda path: path.stem)
def test_mixed_up_and_repeated_packets(tmp_path: Path, path: Path, harm: str, shape: str) -> None:
    require_tshark()
    packets = SHAPES[shape](Random(1), list(read_packets(str(path))))
    harmed = tmp_path / "harmed.pcap"
    harmed.write_bytes(pcap(HARMS[harm](Random(2), packets)))
    assert seen_by_agent(harmed) == seen_by_tshark(harmed)
