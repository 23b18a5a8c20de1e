"""Is what the agent makes of a harmed capture true? Compared with the frames of the unharmed one, byte by byte."""

from __future__ import annotations

import ipaddress
import tempfile
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from decoder.model import Direction, Frame, FrameFlags, Gap
from decoder.mongodb.codec.messages import open_message
from decoder.mongodb.codec.wire import HEADER_BYTES
from pipeline.capture.packets.packet import Packet
from pipeline.capture.runs.one_capture import frames_of
from tests.hostile.harm import Harmed
from tests.hostile.streams import Stream, Way, bases, streams
from tests.pipeline.capture.wire import pcap

PREFIX = {"kafka": 4, "mongodb": 0}
"""Bytes in front of a frame that give its length."""
_MASKS = {"kafka": b"\0", "mongodb": b"\0*"}
"""What the agent writes over bytes that might be credentials, or payload of another policy."""

Side = tuple[tuple[str, int], tuple[str, int], Direction]
"""Client, server, direction."""


def side_of(frame: Frame) -> Side:
    return (frame.client_ip, frame.client_port), (frame.server_ip, frame.server_port), frame.direction


def way_of(side: Side) -> Way:
    client, server = ((ipaddress.ip_address(host).packed, port) for host, port in side[:2])
    return (client, server) if side[2] == "request" else (server, client)


@dataclass(frozen=True, slots=True)
class TrueFrame:
    """A frame of the unharmed capture; ``start`` is its position, or that of its length prefix, in its stream."""

    frame: Frame
    start: int

    @property
    def end(self) -> int:
        return self.start + PREFIX[self.frame.protocol] + self.frame.size


class Truth:
    """An unharmed capture and its frames by side, in order."""

    def __init__(self, packets: list[Packet]) -> None:
        self.packets = packets
        items = read(packets)
        assert not any(isinstance(item, Gap) for item in items)
        self.sides: dict[Side, list[TrueFrame]] = defaultdict(list)
        self.size: dict[Way, int] = {}
        frames = [item for item in items if isinstance(item, Frame)]
        for frame in sorted(frames, key=lambda f: f.seq):
            before = self.sides[side_of(frame)]
            before.append(TrueFrame(frame, before[-1].end if before else 0))
            self.size[way_of(side_of(frame))] = before[-1].end
        self.partner = {(frame.exchange_id, frame.direction): frame for frame in frames}


@dataclass(slots=True)
class Verdict:
    """How an agent did on one harmed capture, or on many together.

    Attributes:
        whole: frames of which the harmed capture holds every byte.
        recovered: those of them that the agent gave, whole.
        given: frames that the agent gave.
        faults: what must not be: false frames, wrong pairs, bytes that are not accounted for.
        bytes_seen: bytes of the streams of recognised connections, from the first to the last that was spoken of.
        bytes_lost: of these in gaps.
        pairs: exchanges of which both halves were recovered; paired: those that carry one exchange id.
    """

    captures: int = 0
    whole: int = 0
    recovered: int = 0
    given: int = 0
    false: int = 0
    pairs: int = 0
    paired: int = 0
    bytes_seen: int = 0
    bytes_lost: int = 0
    faults: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)

    def add(self, other: Verdict) -> None:
        for name in ("captures", "whole", "recovered", "given", "false", "pairs", "paired", "bytes_seen", "bytes_lost"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.faults += other.faults
        self.missed += other.missed


def judge(truth: Truth, harmed: Harmed) -> Verdict:
    """Run the agent on a harmed capture and compare."""
    items = read(harmed.after)
    frames = sorted((i for i in items if isinstance(i, Frame)), key=lambda f: f.seq)
    gaps = [i for i in items if isinstance(i, Gap)]
    held = streams(harmed.after, bases(harmed.before), truth.size)
    verdict = Verdict(captures=1, given=len(frames))
    found = _match(truth, held, frames, verdict)
    _count_whole(truth, held, found, verdict)
    _check_pairs(truth, found, verdict)
    _check_account(held, frames, gaps, verdict)
    return verdict


def read(packets: list[Packet]) -> list[Frame | Gap]:
    """What the agent makes of packets."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "capture.pcap"
        path.write_bytes(pcap(packets))
        return list(frames_of(path, payload_policy="full"))


Found = list[tuple[TrueFrame, Frame]]


def _match(truth: Truth, held: dict[Way, Stream], frames: list[Frame], verdict: Verdict) -> Found:
    """Which true frame is each frame? Both are in order, so one walk over a side decides."""
    found: Found = []
    at: Counter[Side] = Counter()
    for frame in frames:
        side = side_of(frame)
        candidates = truth.sides.get(side, [])
        stream = held.get(way_of(side))
        index = at[side]
        while index < len(candidates) and not (stream and _is(frame, candidates[index], stream)):
            index += 1
        if index == len(candidates):
            verdict.false += 1
            verdict.faults.append(
                f"false frame: {side} seq {frame.seq} flags {frame.flags} id {frame.correlation_id} size {frame.size} "
                f"ts {frame.ts} {frame.frame[:24].hex()}"
            )
            continue
        at[side] = index + 1
        found.append((candidates[index], frame))
    return found


def _is(frame: Frame, true: TrueFrame, stream: Stream) -> bool:
    """Whether a frame of the harmed capture is this one: its size, its times, its bytes (if cut off: the first ones).

    Of orphans, and of what is cut off, the agent overwrites bytes that might be credentials. A compressed message in
    which it did so is there uncompressed.
    """
    size = _captured(frame)
    last = true.start + PREFIX[frame.protocol] + size - 1
    if frame.size != true.frame.size or (frame.ts, frame.ts_end) != (stream.ts[true.start], stream.ts[last]):
        return False
    given, there = frame.frame, true.frame.frame[:size]
    if bool(frame.flags & FrameFlags.TRUNCATED) != (size < frame.size):
        return False
    if not frame.flags & (FrameFlags.REDACTED | FrameFlags.PAYLOAD_REMOVED):
        return given == there
    if frame.protocol == "mongodb":
        given, there = _uncompressed(given, frame.flags), _uncompressed(there)
    return len(given) == len(there) and _is_masked(given, there, _MASKS[frame.protocol])


def _captured(frame: Frame) -> int:
    """Bytes of the stream that a frame stands for."""
    return len(frame.frame) if frame.flags & FrameFlags.TRUNCATED else frame.size


def _uncompressed(message: bytes, flags: int = 0) -> bytes:
    """A MongoDB message's ids with what is inside; one that is cut off in its header as it is."""
    if len(message) < HEADER_BYTES:
        return message
    opened = open_message(message, flags)
    return message[4:12] + opened.data[12:]


def _is_masked(given: bytes, there: bytes, masks: bytes) -> bool:
    one, other = np.frombuffer(given, np.uint8), np.frombuffer(there, np.uint8)
    return bool(((one == other) | np.isin(one, np.frombuffer(masks, np.uint8))).all())


def _is_whole(true: TrueFrame, stream: Stream) -> bool:
    return bool((stream.ts[true.start : true.end] >= 0).all())


def _count_whole(truth: Truth, held: dict[Way, Stream], found: Found, verdict: Verdict) -> None:
    recovered = {id(true) for true, frame in found if not frame.flags & FrameFlags.TRUNCATED}
    for side, frames in truth.sides.items():
        stream = held[way_of(side)]
        for true in frames:
            if _is_whole(true, stream):
                verdict.whole += 1
                verdict.recovered += id(true) in recovered
                if id(true) not in recovered:
                    verdict.missed.append(f"{side} seq {true.frame.seq} id {true.frame.correlation_id} at {true.start}")
            elif id(true) in recovered:
                verdict.faults.append(f"made of bytes that are not there: {side} seq {true.frame.seq}")


def _check_pairs(truth: Truth, found: Found, verdict: Verdict) -> None:
    requests = {frame.exchange_id: true for true, frame in found if frame.direction == "request"}
    recovered = {id(true.frame): frame for true, frame in found}
    for true, answer in found:
        if answer.direction != "response":
            continue
        asked = requests.get(answer.exchange_id)
        partner = truth.partner.get((true.frame.exchange_id, "request"))
        name = f"{side_of(answer)} response {answer.correlation_id} seq {answer.seq}"
        if asked is not None and asked.frame is not partner:
            verdict.faults.append(f"wrong pair: {name} with request {asked.frame.correlation_id}")
        if answer.api_key is not None and (answer.api_key, answer.api_version) != (
            true.frame.api_key,
            true.frame.api_version,
        ):
            verdict.faults.append(f"wrong api: {name} {answer.api_key}:{answer.api_version}")
        other = recovered.get(id(partner))
        if other is not None and not (answer.flags | other.flags) & FrameFlags.TRUNCATED:
            verdict.pairs += 1
            verdict.paired += other.exchange_id == answer.exchange_id
            is_flagged = answer.flags & (FrameFlags.CORRELATION_MISMATCH | FrameFlags.ORPHAN_RESPONSE)
            if other.exchange_id != answer.exchange_id and not is_flagged:
                verdict.faults.append(f"not paired and not flagged: {name} flags {answer.flags}")


def _check_account(held: dict[Way, Stream], frames: list[Frame], gaps: list[Gap], verdict: Verdict) -> None:
    """Of each direction of each recognised connection: frames with their prefixes and gaps together are all bytes."""
    accounted: Counter[Way] = Counter()
    ways: dict[tuple[str, Direction], Way] = {}
    for frame in frames:
        (client, server, _) = side_of(frame)
        for direction in ("request", "response"):
            ways[frame.connection_id, direction] = way_of((client, server, direction))
        accounted[ways[frame.connection_id, frame.direction]] += PREFIX[frame.protocol] + _captured(frame)
    for gap in gaps:
        way = ways.get((gap.connection_id, gap.direction))
        if way is not None:
            accounted[way] += gap.bytes_lost
            verdict.bytes_lost += gap.bytes_lost
    for way in set(ways.values()):
        spans = held[way].spans
        verdict.bytes_seen += min(spans)
        if accounted[way] not in spans:
            verdict.faults.append(f"bytes not accounted for: {way} has {min(spans)}, frames and gaps {accounted[way]}")
    if len({(g.connection_id, g.direction, g.seq) for g in gaps}) != len(gaps):
        verdict.faults.append("two gaps with one key")
