"""How many Kafka requests and responses are in a capture? Counted by tshark's reassembly, apart from our decoder.

tshark follows each TCP stream; here the bytes of either direction are cut at the length prefixes, and responses are
paired with requests first in, first out. `python -m tests.captures.count FILE…` writes `<name>.counts.json`:
{"request": {"api_key:version": n}, "response": {…}}, a response counted under the key and version of its request.
"""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from collections import Counter
from pathlib import Path

PRODUCE = 0


def count_frames(pcap: Path, ports: list[int]) -> dict[str, dict[str, int]]:
    """Count the frames of `pcap`.

    Args:
        pcap: the capture.
        ports: server ports that speak Kafka.

    Raises:
        ValueError: if a response has no request or carries another correlation id.
    """
    counts: dict[str, Counter[str]] = {"request": Counter(), "response": Counter()}
    for stream, (to_server, to_client) in _conversations(pcap, ports).items():
        waiting: list[tuple[str, int]] = []
        for frame in _cut(to_server):
            key, version, correlation = struct.unpack_from(">hhi", frame)
            name = f"{key}:{version}"
            counts["request"][name] += 1
            if key != PRODUCE or _acks(frame, version) != 0:
                waiting.append((name, correlation))
        for frame in _cut(to_client):
            (correlation,) = struct.unpack_from(">i", frame)
            if not waiting:
                raise ValueError(f"{pcap.name}: stream {stream}: response {correlation} without request")
            name, wanted = waiting.pop(0)
            if wanted != correlation:
                raise ValueError(f"{pcap.name}: stream {stream}: response {correlation}, expected {wanted} ({name})")
            counts["response"][name] += 1
    return {side: dict(sorted(some.items(), key=_by_number)) for side, some in counts.items()}


def write_counts(pcap: Path, ports: list[int]) -> None:
    """Count the frames of `pcap` and write the result beside it."""
    pcap.with_suffix(".counts.json").write_text(json.dumps(count_frames(pcap, ports), indent=2) + "\n")


def _by_number(item: tuple[str, int]) -> tuple[int, int]:
    key, version = item[0].split(":")
    return int(key), int(version)


def _tshark(pcap: Path, *arguments: str) -> str:
    # Wireshark's own Kafka dissector is switched off: only TCP is wanted.
    command = ["tshark", "-r", str(pcap), "--disable-protocol", "kafka", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _conversations(pcap: Path, ports: list[int]) -> dict[int, tuple[bytes, bytes]]:
    """Return for each TCP stream what went to the server and what came back, as tshark reassembles it."""
    wanted = " or ".join(f"tcp.port == {port}" for port in ports)
    numbers = _tshark(pcap, "-Y", f"tcp.len > 0 and ({wanted})", "-T", "fields", "-e", "tcp.stream").split()
    options = [option for number in sorted(set(numbers), key=int) for option in ("-z", f"follow,tcp,raw,{number}")]
    found: dict[int, tuple[bytes, bytes]] = {}
    stream, server_is_second = -1, True
    sides: tuple[list[str], list[str]] = ([], [])
    for line in _tshark(pcap, "-q", *options).splitlines() if options else []:
        if line.startswith("Filter: tcp.stream eq "):
            stream, sides = int(line.rpartition(" ")[2]), ([], [])
        elif line.startswith("Node 1:"):
            server_is_second = int(line.rpartition(":")[2]) in ports
        elif line.startswith("====="):
            if sides[0] or sides[1]:
                first, second = (bytes.fromhex("".join(side)) for side in sides)
                found[stream] = (first, second) if server_is_second else (second, first)
                sides = ([], [])
        elif line and not line.startswith(("Follow:", "Node 0:")):
            # What the second node sent is indented by a tab.
            sides[line.startswith("\t")].append(line.strip())
    return found


def _cut(data: bytes) -> list[bytes]:
    """Cut a byte stream at its length prefixes; an unfinished frame at the end is left out."""
    frames, at = [], 0
    while at + 4 <= len(data):
        (size,) = struct.unpack_from(">i", data, at)
        if at + 4 + size > len(data):
            break
        frames.append(data[at + 4 : at + 4 + size])
        at += 4 + size
    return frames


def _acks(frame: bytes, version: int) -> int:
    """Return `acks` of a Produce request: with 0 the broker does not answer."""
    (client_id,) = struct.unpack_from(">h", frame, 8)
    at = 10 + max(client_id, 0)
    if version >= 9:  # empty tag buffer, then transactional_id as compact string: length + 1, 0 for null
        assert frame[at] == 0, "tags in a Produce header"
        assert frame[at + 1] < 0x80, "a transactional id longer than 126 bytes"
        at += 2 + max(frame[at + 1] - 1, 0)
    elif version >= 3:
        (transactional_id,) = struct.unpack_from(">h", frame, at)
        at += 2 + max(transactional_id, 0)
    (acks,) = struct.unpack_from(">h", frame, at)
    return int(acks)


if __name__ == "__main__":
    for each in sys.argv[1:]:
        write_counts(Path(each), [9092])
