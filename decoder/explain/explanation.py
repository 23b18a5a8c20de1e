"""A message field by field: what each byte means, and where decoding failed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from decoder.model import Message

MESSAGE = "message"
"""``Line.type`` of the heading of a message inside a bytes field."""
BATCH = "batch"
"""``Line.name`` of a record batch."""
TRAILING = "(trailing bytes)"
"""``Line.name`` of bytes behind a whole message."""
GAP = "(not decoded)"
"""``Line.name`` of bytes that no field explains."""
_HEX_SHOWN = 16
_TEXT_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Line:
    """One line of an explanation.

    Attributes:
        start, end: bytes of the frame, end exclusive.
        depth: how deep the field nests, from 0.
        name, type, value: as in the schema; ``value`` shortened for reading.
        hex: the first bytes of the field.
        is_error: this line shows where and why decoding stopped.
    """

    start: int
    end: int
    depth: int
    name: str
    type: str
    value: str
    hex: str
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class Explanation:
    """A message of ``size`` bytes, line by line in the order of the bytes.

    Attributes:
        inside: of a compressed MongoDB message the one in it, whose bytes count from a header of its own.
        frame: its bytes.
    """

    message: Message
    lines: tuple[Line, ...]
    size: int
    inside: Explanation | None = None
    frame: bytes = b""


def short(text: str) -> str:
    """A value as a line shows it."""
    return text if len(text) <= _TEXT_SHOWN else text[: _TEXT_SHOWN - 1] + "…"


def hex_text(frame: bytes, start: int, end: int | None = None) -> str:
    """The first bytes of a field, as a line shows them."""
    end = len(frame) if end is None else end
    shown = frame[start : min(end, start + _HEX_SHOWN)].hex(" ")
    return shown + (" …" if end - start > _HEX_SHOWN else "")


def error_line(frame: bytes, message: Message) -> list[Line]:
    """Where and why decoding stopped: one line, or none."""
    if message.error_offset is None or message.status in ("ok", "redacted"):
        return []
    start = message.error_offset or 0
    return [
        Line(
            start,
            len(frame),
            0,
            message.error_code or "",
            message.status,
            message.error_detail or "",
            hex_text(frame, start),
            True,
        )
    ]


def gap_line(frame: bytes, start: int, end: int) -> Line:
    """Bytes that no field explains."""
    return Line(
        start, end, 0, GAP, "raw", f"{end - start} byte{'' if end == start + 1 else 's'}", hex_text(frame, start, end)
    )


def with_gaps(frame: bytes, lines: Sequence[Line]) -> list[Line]:
    """The lines, and one for each run of bytes in none of them, so that every byte is accounted for."""
    found: list[Line] = []
    at = 0
    for line in [*lines, Line(len(frame), len(frame), 0, "", "", "", "")]:
        if line.start > at:
            found.append(gap_line(frame, at, line.start))
        at = max(at, line.end)
        found.append(line)
    return found[:-1]


def as_objects(explanation: Explanation) -> Iterator[dict[str, Any]]:
    """The lines as JSON objects with stable keys; those of a message inside another have ``inside`` true."""
    yield from _objects(explanation, is_inside=False)
    if explanation.inside is not None:
        yield from _objects(explanation.inside, is_inside=True)


def _objects(explanation: Explanation, *, is_inside: bool) -> Iterator[dict[str, Any]]:
    for line in explanation.lines:
        yield {
            "start": line.start,
            "end": line.end,
            "depth": line.depth,
            "name": line.name,
            "type": line.type,
            "value": line.value,
            "hex": line.hex,
            "error": line.is_error,
            **({"inside": True} if is_inside else {}),
        }
