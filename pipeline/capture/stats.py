"""What a capture run has seen, kept and not understood."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from decoder.model import CLOSED, MIDWAY, Frame, FrameFlags, Gap
from decoder.mongodb.codec.wire import OPCODES
from pipeline.capture.packets.packet import DamagedCaptureError

_TRUNCATED, _CLOSED = int(FrameFlags.TRUNCATED), int(CLOSED)
_BY_CLIENT = int(FrameFlags.CLOSED_BY_CLIENT)

MAX_OTHER_TALK = 1000
"""Servers of other protocols that are listed. A scan must not fill the memory."""

MAX_TLS_PEERS = 1000
"""Pairs of an encrypting client and server that are listed. A crowd of them must not fill the memory."""

NOTICES = {
    "conflicting_copies": "places where bytes came twice with different content (the first are kept)",
    "conflicting_bytes": "bytes that came twice with different content (the first are kept)",
    "resets_ignored": "TCP resets that their receiver would not believe",
    "segments_after_close": "data segments of connections that were over",
    "connections_forgotten": "connections forgotten: too many at once",
    "idle_connections_expired": "connections forgotten: no packet for longer than the idle timeout",
    "holes_overfull": "holes given up: too much waited behind them",
    "memory_relieved": "connections cut short: all together kept too much",
    "work_refused": "times that a connection was counted, not read, because reading it cost too much (a gap shows it; "
    "`work` in the settings sets how much)",
    "times_clamped": "packets with a time outside of 1970 to 2199, or with none (its nearest end stands for it)",
    "clock_set_back": "times that the clock was set back (what spans one has a wrong duration)",
    "requests_forgotten": "requests no longer waited for: too many without a response on one connection",
}
"""What was unusual, and which limits were reached, in words for the summary."""


CLOSINGS = {
    "client_in_response": ("client", "while an answer was coming"),
    "server_in_response": ("server", "in the middle of an answer"),
    "client_in_request": ("client", "in the middle of a request"),
    "server_in_request": ("server", "in the middle of a request"),
}
"""Who closed connections in the middle of a message, in words: the capture lost nothing there."""


class TlsPeers(NamedTuple):
    """Who talks to whom in a connection that is encrypted.

    Attributes:
        server_name: what the client asked for (SNI, RFC 6066); None if its ClientHello was not captured or hides it.
    """

    client_ip: str
    server_ip: str
    server_port: int
    server_name: str | None


class OtherTalk(NamedTuple):
    """What is spoken with a server, if it is not Kafka or MongoDB on both sides.

    Attributes:
        asks, answers: name of what the client and the server speak, see pipeline.capture.sessions.foreign_protocols;
            the title of a protocol of ours, if one side speaks it.
    """

    server_ip: str
    server_port: int
    asks: str
    answers: str


@dataclass(slots=True)
class CaptureStats:
    """Counts of one run; grows while the capture is read.

    Attributes:
        packets: packets read.
        skipped: packets without a TCP segment that can be read, by reason.
        connections: connections recognised, by protocol.
        not_recognised: connections that were not, by reason: ``no_data``, ``not_captured``, ``tls``,
            ``not_recognised``, ``budget``.
        tls: of connections that are encrypted, who talks to whom: the first MAX_TLS_PEERS of them.
        other_talk: what other protocols are spoken with which server: the first MAX_OTHER_TALK of them.
        decrypted: connections that were decrypted, whatever they speak inside.
        unused_keys: captures that hold keys of TLS connections, which were not asked for.
        requests, responses: whole frames by (api key, api version) of the request; (None, None) for orphans and tokens.
        truncated: frames whose end the capture lacks.
        closed: frames cut off when a peer closed the connection, by who and where,
            see CLOSINGS.
        frames: frames by protocol.
        gaps: losses.
        bytes_lost: bytes of recognised connections in gaps; see decoder.model.Gap.
        joined_midway: directions of connections that began with bytes in no message when the capture met them.
        bytes_midway: these bytes: of messages that had begun, and of responses to requests that had been sent.
        notices: what was unusual, and how often a limit was reached; see NOTICES.
        files: landing files published by this run, relative to the landing zone.
        files_present: landing files that were there already, with the same content.
        clock_set_back_us: how far the clock of the capturing machine was set back at the most, µs; how often is among
            the notices.
        kernel_dropped: packets that the kernel had no room for, as the capturing program reports; None if it does not.
        ring_files_missed: files of a ring buffer that disappeared before they were read.
        cut_off: captures that end, or turn to nonsense, in the middle and were read up to there, a sentence each.
        damaged_files: those of them that turn to nonsense: what follows is lost, not only the last packet.
    """

    packets: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    connections: Counter[str] = field(default_factory=Counter)
    not_recognised: Counter[str] = field(default_factory=Counter)
    tls: Counter[TlsPeers] = field(default_factory=Counter)
    other_talk: Counter[OtherTalk] = field(default_factory=Counter)
    decrypted: int = 0
    unused_keys: int = 0
    requests: Counter[tuple[int | None, int | None]] = field(default_factory=Counter)
    responses: Counter[tuple[int | None, int | None]] = field(default_factory=Counter)
    frames: Counter[str] = field(default_factory=Counter)
    truncated: int = 0
    closed: Counter[str] = field(default_factory=Counter)
    gaps: int = 0
    bytes_lost: int = 0
    joined_midway: int = 0
    bytes_midway: int = 0
    notices: Counter[str] = field(default_factory=Counter)
    files: list[str] = field(default_factory=list)
    files_present: list[str] = field(default_factory=list)
    kernel_dropped: int | None = None
    ring_files_missed: int = 0
    clock_set_back_us: int = 0
    damaged_files: int = 0
    cut_off: list[str] = field(default_factory=list)

    def count(self, item: Frame | Gap) -> None:
        """Count one row of the landing zone."""
        if isinstance(item, Gap):
            if item.method.startswith(MIDWAY):
                self.joined_midway += 1
                self.bytes_midway += item.bytes_lost
                return
            self.gaps += item.is_loss
            self.bytes_lost += item.bytes_lost
            return
        self.frames[item.protocol] += 1
        if item.flags & _TRUNCATED:
            if item.flags & _CLOSED:
                self.closed[f"{'client' if item.flags & _BY_CLIENT else 'server'}_in_{item.direction}"] += 1
            else:
                self.truncated += 1
            return
        counter = self.requests if item.direction == "request" else self.responses
        counter[item.api_key, item.api_version] += 1

    def count_cut(self, damage: DamagedCaptureError) -> None:
        """Note that a capture was read up to where it is damaged."""
        self.cut_off.append(f"{damage.path} is {damage.problem} at byte {damage.offset:,}: read up to there")
        self.damaged_files += not damage.problem.startswith("truncated")

    @property
    def is_whole(self) -> bool:
        """Whether all files were read to their end."""
        return not (self.cut_off or self.ring_files_missed)

    def count_tls(self, peers: TlsPeers, connections: int = 1) -> None:
        """Count connections that are encrypted."""
        if peers in self.tls or len(self.tls) < MAX_TLS_PEERS:
            self.tls[peers] += connections

    def count_other_talk(self, talk: OtherTalk, connections: int = 1) -> None:
        """Count connections on which another protocol is spoken."""
        if talk in self.other_talk or len(self.other_talk) < MAX_OTHER_TALK:
            self.other_talk[talk] += connections

    def count_kafka(self, table: pa.Table) -> None:
        """Count many Kafka frames; whole ones with an api."""
        is_response = pc.equal(table["direction"], "response").to_numpy()
        apis = table["api_key"].to_numpy().astype(np.int64) << 16 | table["api_version"].to_numpy()
        kinds, counts = np.unique(apis << 1 | is_response, return_counts=True)
        for kind, count in zip(kinds.tolist(), counts.tolist(), strict=True):
            counter = self.responses if kind & 1 else self.requests
            counter[kind >> 17, kind >> 1 & 0xFFFF] += count
        self.frames["kafka"] += table.num_rows

    def add(self, other: CaptureStats) -> None:
        """Add the counts of another run."""
        self.packets += other.packets
        self.gaps += other.gaps
        self.truncated += other.truncated
        self.decrypted += other.decrypted
        self.unused_keys += other.unused_keys
        for peers, connections in other.tls.items():
            self.count_tls(peers, connections)
        for talk, connections in other.other_talk.items():
            self.count_other_talk(talk, connections)
        self.bytes_lost += other.bytes_lost
        self.joined_midway += other.joined_midway
        self.bytes_midway += other.bytes_midway
        self.skipped.update(other.skipped)
        self.connections.update(other.connections)
        self.not_recognised.update(other.not_recognised)
        self.requests.update(other.requests)
        self.responses.update(other.responses)
        self.frames.update(other.frames)
        self.notices.update(other.notices)
        self.closed.update(other.closed)
        self.files += other.files
        self.files_present += other.files_present
        self.cut_off += other.cut_off
        self.damaged_files += other.damaged_files
        self.ring_files_missed += other.ring_files_missed
        self.clock_set_back_us = max(self.clock_set_back_us, other.clock_set_back_us)
        if other.kernel_dropped is not None:
            self.kernel_dropped = (self.kernel_dropped or 0) + other.kernel_dropped

    @classmethod
    def of_dict(cls, values: Mapping[str, Any]) -> CaptureStats:
        """What :meth:`as_dict` gave; but how many of each api there were, and who encrypts, is not taken."""
        counters = {"skipped", "connections", "not_recognised", "frames", "notices", "closed"}
        taken: dict[str, Any] = {name: Counter(values[name]) for name in counters}
        others = values.keys() - counters - {"requests", "responses", "tls", "other_talk"}
        stats = cls(**taken, **{name: values[name] for name in others})
        for one in values.get("other_talk", ()):
            talk = OtherTalk(*(one[name] for name in OtherTalk._fields))
            stats.count_other_talk(talk, one["connections"])
        return stats

    def as_dict(self) -> dict[str, Any]:
        """For JSON: counters as sorted objects, Kafka's apis as ``key:version``, MongoDB's opcodes by name."""
        result = asdict(self)
        for name in ("skipped", "connections", "not_recognised", "frames", "notices", "closed"):
            result[name] = dict(sorted(getattr(self, name).items()))
        result["tls"] = [{**peers._asdict(), "connections": self.tls[peers]} for peers in sorted(self.tls, key=str)]
        talks = sorted(self.other_talk, key=str)
        result["other_talk"] = [{**talk._asdict(), "connections": self.other_talk[talk]} for talk in talks]
        for name in ("requests", "responses"):
            counter: Counter[tuple[int | None, int | None]] = getattr(self, name)
            result[name] = {_api_name(api): counter[api] for api in sorted(counter, key=order)}
        return result


def order(api: tuple[int | None, int | None]) -> tuple[bool, bool, int, int]:
    """Sorts what messages are counted by: Kafka's apis, MongoDB's opcodes (they have no version), then the unknown."""
    key, version = api
    return key is None, version is None, key or 0, version or 0


def _api_name(api: tuple[int | None, int | None]) -> str:
    """Of a MongoDB opcode, which has no version, the name, or the number if it is unknown."""
    key, version = api
    if key is None:
        return "unknown"
    return OPCODES.get(key, str(key)) if version is None else f"{key}:{version}"
