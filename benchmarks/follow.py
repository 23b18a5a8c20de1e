"""How late is a finding printed? ``wirelake diagnose --follow`` on a live pipe, against the clock.

A recorded incident is replayed again and again in real time, each time with other clients, group and topic, so often
that the frames come at the wanted rate. What is measured is the time from the last evidence of a finding, as it went
into the pipe, to the line that reports it first, by rule: some rules wait, to see whether anything else comes.
"""

from __future__ import annotations

import heapq
import itertools
import json
import os
import statistics
import struct
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path

from rich.table import Table

from benchmarks.candidates import CONSOLE
from pipeline.capture.packets.sources import read_packets
from tests.paths import CAPTURES

RECORDING, FRAMES = CAPTURES / "stuck_commit.pcap", 2661
NAMES = {
    b"\x00\x07billing": b"\x00\x07b%06d", b"\x08billing": b"\x08b%06d",
    b"\x00\x08payments": b"\x00\x08p%07d", b"\x09payments": b"\x09p%07d",
}  # fmt: skip
"""Strings of Kafka's, with their lengths: what is inside of records stays."""
FRAMES_PER_S, SECONDS = 1000, 90
_HEADER = struct.Struct("<IHHiIII")
_RECORD = struct.Struct("<IIII")
_LINK_BYTES = {1: 14, 101: 0, 113: 16, 276: 20}


def main() -> None:
    """Replay, and print how late findings came."""
    process = subprocess.Popen(
        [sys.executable, "-m", "pipeline.cli", "diagnose", "--follow", "-", "--json"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    pipe, output = process.stdin, process.stdout
    if pipe is None or output is None:
        raise RuntimeError("no pipes")
    late: defaultdict[str, list[float]] = defaultdict(list)
    peak: list[int] = [0]

    def read() -> None:
        for line in output:
            now = time.time()
            change = json.loads(line)
            if change["change"] == "new" and change["state"] == "ongoing":
                late[change["rule"]].append(now - datetime.fromisoformat(change["last_ts"]).timestamp())

    def watch() -> None:
        while process.poll() is None:
            peak[0] = max(peak[0], _resident(process.pid))
            time.sleep(1)

    threads = [threading.Thread(target=one, daemon=True) for one in (read, watch)]
    for thread in threads:
        thread.start()
    CONSOLE.print(f"\n{SECONDS} s of {FRAMES_PER_S:,} frames a second into `wirelake diagnose --follow -` …")
    sent = 0
    with pipe:
        for data in packets(SECONDS, FRAMES_PER_S):
            pipe.write(data)
            sent += 1
    process.wait()
    for thread in threads:
        thread.join()
    print_late(late)
    CONSOLE.print(f"{sent:,} packets; both processes kept {peak[0] >> 20:,} MiB at most")


def print_late(late: Mapping[str, list[float]]) -> None:
    """How late findings came, by rule, s."""
    table = Table("rule", "findings", "p50 s", "p95 s", "most s")
    for rule, times in [*sorted(late.items()), ("all", list(itertools.chain(*late.values())))]:
        marks = statistics.quantiles(times, n=100, method="inclusive") if len(times) > 1 else [*times] * 99
        table.add_row(rule, f"{len(times):,}", f"{marks[49]:.2f}", f"{marks[94]:.2f}", f"{max(times):.2f}")
    CONSOLE.print(table)


def packets(seconds: int, frames_per_s: int, *, is_live: bool = True) -> Iterator[bytes]:
    """A capture as tcpdump would write it, each packet when it is time; not ``is_live``: at once."""
    recorded = list(read_packets(str(RECORDING)))
    link = recorded[0].linktype
    yield _HEADER.pack(0xA1B2C3D4, 2, 4, 0, 0, 262144, link)
    begin_us = recorded[0].ts_us
    begin = time.time()

    def copy(number: int) -> Iterator[tuple[float, int, int, bytes]]:
        start = number * FRAMES / frames_per_s
        for place, packet in enumerate(recorded):
            yield start + (packet.ts_us - begin_us) / 1e6, number, place, _renamed(packet.data, link, number)

    copies = int(seconds * frames_per_s / FRAMES)
    for after, _, _, data in heapq.merge(*(copy(number) for number in range(copies))):
        if after > seconds:
            return
        if is_live and (ahead := begin + after - time.time()) > 0:
            time.sleep(ahead)
        now = time.time() if is_live else begin + after
        yield _RECORD.pack(int(now), int(now % 1 * 1e6), len(data), len(data)) + data


def _renamed(data: bytes, link: int, number: int) -> bytes:
    """The packet of a further copy: the client has an address of its own, group and topic other names."""
    changed = bytearray(data)
    ip = _LINK_BYTES[link]
    tcp = ip + (changed[ip] & 15) * 4
    source, destination = (int.from_bytes(changed[at : at + 2], "big") for at in (tcp, tcp + 2))
    at = ip + 12 if source > destination else ip + 16  # clients' ports are the higher ones
    changed[at : at + 4] = bytes([10, 1 + (number >> 8), number & 255, 1])
    found = bytes(changed)
    for name, pattern in NAMES.items():
        found = found.replace(name, pattern % number)
    return found


def _resident(pid: int) -> int:
    """Bytes of a process and its children."""
    total = 0
    for one in (str(pid), *_children(pid)):
        try:
            total += int(Path(f"/proc/{one}/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGESIZE")
        except (OSError, IndexError):
            continue
    return total


def _children(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    except OSError:
        return []
