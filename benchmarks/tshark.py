"""Measures how fast a capture is decoded, beside tshark on the same file."""

from __future__ import annotations

import resource
import shutil
import struct
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import orjson

from benchmarks.apart import apart
from benchmarks.candidates import CONSOLE, Candidate, measure, show
from benchmarks.corpus import CorpusFrame, describe
from pipeline.commands.messages.messages import as_object, decoded_messages, ordered_frames

ROUNDS = 3
FRAMES = 50_000
_MAX_FRAME_BYTES = 65_000
_FIELDS = ("frame.number", "kafka.api_key", "kafka.api_version", "kafka.correlation_id", "kafka.client_id")
QUIET = ("-o", "tcp.analyze_sequence_numbers:FALSE")


def main(recorded: Sequence[CorpusFrame]) -> None:
    """One table: a capture with only such frames as this tshark understands, read by both."""
    if shutil.which("tshark") is None:
        CONSOLE.print("tshark is not installed (Debian: apt-get install tshark)")
        return
    frames = copies(understood(recorded)[:FRAMES])
    CONSOLE.print(f"\nBeside tshark {version()}, versions that it knows: {describe(frames)}; a packet each")
    candidates: list[Candidate[CorpusFrame]] = [
        replace(apart("benchmarks.wirelake", "frame_readers")[0], name="Wirelake, kernel, frames in memory"),
        FromCapture("Wirelake, agent and plain reader", "JSON text, all fields"),
        Tshark(
            "tshark, reads and follows TCP only",
            "nothing",
            ("-Y", "tcp", "-w", "/dev/null", "--disable-protocol", "kafka"),
        ),
        Tshark("tshark -T fields", f"text, {len(_FIELDS)} fields", ("-Y", "kafka", "-T", "fields", *_fields())),
        Tshark("tshark -T json", "JSON text, all fields", ("-Y", "kafka", "-T", "json", "-J", "kafka")),
    ]
    results = measure(candidates, [frames] * len(candidates), ROUNDS)
    title = f"from a capture file, CPU time of all processes, {ROUNDS} rounds in turn, tshark's start with it"
    show(title, results, len(frames), "frames")


def understood(frames: Sequence[CorpusFrame]) -> list[CorpusFrame]:
    """Of the exchanges those where tshark knows the versions and complains of nothing, and that fit into packets."""
    long = {frame.exchange for frame in frames if len(frame.data) > _MAX_FRAME_BYTES}
    frames = [frame for frame in frames if frame.exchange not in long]
    with tempfile.TemporaryDirectory() as folder:
        capture = write_capture(Path(folder) / "all.pcap", frames)
        columns = ("-T", "fields", "-e", "kafka.correlation_id", "-e", "_ws.expert.message")
        lines = _tshark(capture, *columns).splitlines()
    good = [bool(line.split("\t")[0]) and not line.split("\t")[1] for line in lines]
    bad = {frame.exchange for frame, is_good in zip(frames, good, strict=True) if not is_good}
    return [frame for frame in frames if frame.exchange not in bad]


def copies(frames: Sequence[CorpusFrame], count: int = FRAMES) -> list[CorpusFrame]:
    """The frames again and again, each time as connections of their own."""
    return [
        replace(frame, connection=f"{frame.connection} {copy}")
        for copy in range(max(1, count // len(frames)))
        for frame in frames
    ]


@dataclass(frozen=True, slots=True)
class Wire:
    """How frames are in a stream: to which port, and with which length in front."""

    port: int
    prefix: struct.Struct | None = None


KAFKA = Wire(9092, struct.Struct(">i"))
MONGODB = Wire(27017)


@dataclass
class InFile:
    """Reads the frames from a capture file."""

    name: str
    gives: str
    wire: Wire = field(default=KAFKA, kw_only=True)
    _folder: tempfile.TemporaryDirectory[str] = field(default_factory=tempfile.TemporaryDirectory, init=False)
    _capture: Path = field(default_factory=Path, init=False)

    def check(self, items: Sequence[CorpusFrame]) -> list[bool]:
        return [True] * len(items)

    def round(self, repeat: int) -> float:
        raise NotImplementedError

    def load(self, items: Sequence[CorpusFrame]) -> None:
        self._capture = write_capture(Path(self._folder.name) / "frames.pcap", items, self.wire)


class FromCapture(InFile):
    """What ``wirelake decode --json`` does."""

    def round(self, repeat: int) -> float:
        begun = time.process_time()
        for _ in range(repeat):
            for decoded in decoded_messages(ordered_frames([str(self._capture)])):
                orjson.dumps(as_object(decoded))
        return time.process_time() - begun


@dataclass
class Tshark(InFile):
    """tshark with some arguments; ``start``: seconds that its start takes, not to be counted."""

    arguments: tuple[str, ...] = ()
    start: float = field(default=0.0, kw_only=True)

    def round(self, repeat: int) -> float:
        begun = children_seconds()
        for _ in range(repeat):
            subprocess.run(["tshark", "-r", str(self._capture), *QUIET, *self.arguments],
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)  # fmt: skip
        return children_seconds() - begun - repeat * self.start


def _fields() -> Iterable[str]:
    return (part for name in _FIELDS for part in ("-e", name))


def _tshark(capture: Path, *arguments: str) -> str:
    command = ["tshark", "-r", str(capture), *QUIET, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def version() -> str:
    lines = subprocess.run(["tshark", "--version"], capture_output=True, text=True, check=True).stdout.splitlines()
    return lines[0].split()[2]


def children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def write_capture(path: Path, frames: Iterable[CorpusFrame], wire: Wire = KAFKA) -> Path:
    """A pcap with each frame in a TCP segment of its own; every connection has its own client address."""
    clients: dict[str, int] = {}
    sent: dict[tuple[str, bool], int] = defaultdict(lambda: 1)
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 1 << 18, 1))
        for number, frame in enumerate(frames):
            to_server = frame.direction == "request"
            client = clients.setdefault(frame.connection, len(clients))
            payload = (wire.prefix.pack(len(frame.data)) if wire.prefix else b"") + frame.data
            seq = sent[frame.connection, to_server]
            ack = sent[frame.connection, not to_server]
            sent[frame.connection, to_server] += len(payload)
            packet = _packet(client, wire.port, payload, to_server=to_server, seq=seq, ack=ack)
            seconds, micros = divmod(number * 100, 1_000_000)
            file.write(struct.pack("<IIII", 1_700_000_000 + seconds, micros, len(packet), len(packet)) + packet)
    return path


def _packet(client: int, port: int, payload: bytes, *, to_server: bool, seq: int, ack: int) -> bytes:
    """Ethernet, IPv4 and TCP without checksums, as captures of outgoing packets have them."""
    client_ip, server_ip = struct.pack(">I", 0x0A010000 + client + 1), bytes([10, 0, 0, 1])
    source, target = (client_ip, server_ip) if to_server else (server_ip, client_ip)
    ports = (40_000, port) if to_server else (port, 40_000)
    tcp = struct.pack(">HHIIBBHHH", *ports, seq, ack, 0x50, 0x18, 65_535, 0, 0)
    size = 20 + len(tcp) + len(payload)
    ip = struct.pack(">BBHHHBBH", 0x45, 0, size, 0, 0x4000, 64, 6, 0) + source + target
    return bytes(12) + b"\x08\x00" + ip + tcp + payload
