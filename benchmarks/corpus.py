"""Which frames does everyone decode? Recorded ones, with their records as they were on the wire."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from decoder.model import Direction, Frame, FrameFlags
from pipeline.capture.runs.one_capture import frames_of

CAPTURES = Path(__file__).parents[1] / "tests" / "captures"
NOT_COMPARED = FrameFlags.TRUNCATED | FrameFlags.REDACTED | FrameFlags.SASL_TOKEN | FrameFlags.ORPHAN_RESPONSE
_HEAD = struct.Struct(">ibhh")


@dataclass(frozen=True, slots=True)
class CorpusFrame:
    """A frame, what its decoder is given with it, and the connection and exchange that it belongs to."""

    data: bytes
    direction: Direction
    api_key: int
    api_version: int
    connection: str = ""
    exchange: str = ""


def samples() -> list[CorpusFrame]:
    """Every frame of the sample captures: many kinds of message, all of them small."""
    return recorded(sorted(CAPTURES.glob("*.pcap")))


def recorded(captures: Iterable[Path]) -> list[CorpusFrame]:
    """Every frame in the order of the agent: a request just before its response."""
    frames = []
    for path in captures:
        for item in frames_of(path, payload_policy="full"):
            if isinstance(item, Frame) and not item.flags & NOT_COMPARED and item.api_key is not None:
                version = -1 if item.api_version is None else item.api_version
                ids = (f"{path.stem} {item.connection_id}", f"{path.stem} {item.exchange_id}")
                frames.append(CorpusFrame(item.frame, item.direction, item.api_key, version, *ids))
    return frames


def write(path: Path, frames: Iterable[CorpusFrame]) -> Path:
    """For other languages: int32 length, int8 direction (1: response), int16 api key, int16 version, bytes."""
    with path.open("wb") as file:
        for frame in frames:
            is_response = frame.direction == "response"
            file.write(_HEAD.pack(len(frame.data), is_response, frame.api_key, frame.api_version) + frame.data)
    return path


def describe(frames: Sequence[CorpusFrame]) -> str:
    """Number, size and mix, for the head of a table."""
    sorts = Counter((frame.direction, frame.api_key, frame.api_version) for frame in frames)
    requests = sum(frame.direction == "request" for frame in frames)
    mean = sum(len(frame.data) for frame in frames) / max(len(frames), 1)
    common = ", ".join(f"{side} {key} v{version}: {n}" for (side, key, version), n in sorts.most_common(6))
    apis = len({(side, key) for side, key, _ in sorts})
    return (
        f"{len(frames):,} frames ({requests:,} requests), mean {mean:.0f} bytes, {apis} kinds of message in "
        f"{len(sorts)} versions; most often {common}"
    )
