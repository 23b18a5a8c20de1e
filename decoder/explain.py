"""Shows one message field by field: what each byte means, and where decoding failed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from decoder.codec import Codec
from decoder.kafka.bodies import LENGTH, TAGGED_SECTION, FieldSpan
from decoder.kafka.compression import Budget
from decoder.kafka.records import batch_spans, summarise
from decoder.model import Direction, Message

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
        is_error: this line says where and why decoding stopped.
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
    """A message and its bytes, line by line in the order of the bytes."""

    message: Message
    lines: tuple[Line, ...]


def explain(
    frame: bytes,
    direction: Direction = "request",
    api_key: int | None = None,
    api_version: int | None = None,
    flags: int = 0,
    codec: Codec | None = None,
) -> Explanation:
    """Decode one frame (no length prefix) and say what each byte is. Arguments as for Codec.decode."""
    spans: list[FieldSpan] = []
    message = (codec or Codec()).decode(
        frame, direction=direction, api_key=api_key, api_version=api_version, flags=flags, trace=spans.append
    )
    lines = [_line(frame, span) for span in spans if span.type != TAGGED_SECTION or span.value]
    budget = Budget()
    for span in spans:
        if span.type.endswith("records") and span.value:
            lines += _batch_lines(frame, span, budget)
    lines.sort(key=lambda line: (line.start, line.depth, -line.end))
    if message.error_offset is not None and message.status not in ("ok", "redacted"):
        lines.append(_error_line(frame, message))
    elif spans and (rest := max(span.end for span in spans)) < len(frame):
        lines.append(Line(rest, len(frame), 0, "(not decoded)", "raw", f"{len(frame) - rest} bytes", _hex(frame, rest)))
    return Explanation(message, tuple(lines))


def split_length_prefix(data: bytes) -> tuple[bytes, str | None]:
    """Strip Kafka's length prefix from pasted bytes, if they begin with one.

    Returns:
        The frame, and a remark if the prefix does not agree with the bytes that follow.
    """
    if len(data) < 8:
        return data, None
    declared = int.from_bytes(data[:4], "big", signed=True)
    follow = len(data) - 4
    if declared == follow:
        return data[4:], None
    if _prefix_is_likelier(data):
        return data[4:], f"the length prefix says {declared} bytes, but {follow} follow"
    return data, None


def _prefix_is_likelier(data: bytes) -> bool:
    """Whether bytes 4.. read better as a request header than bytes 0..: compare how far each decodes."""
    codec = Codec()
    progress = []
    for offset in (0, 4):
        message = codec.decode(data[offset:])
        reached = len(data) - offset if message.error_offset is None else message.error_offset
        progress.append((message.status not in ("unknown_api", "unknown_version", "malformed"), reached))
    return progress[1] > progress[0]


def _line(frame: bytes, span: FieldSpan) -> Line:
    return Line(
        start=span.start,
        end=span.end,
        depth=sum(1 for part in span.path[:-1] if isinstance(part, str)),
        name=_name(span.path),
        type=span.type,
        value=_value(span),
        hex=_hex(frame, span.start, span.end),
    )


def _batch_lines(frame: bytes, span: FieldSpan, budget: Budget) -> Iterator[Line]:
    """The record batches within a records field."""
    spans = batch_spans(frame, span.content_start, span.end)
    for place, batch in zip(spans, summarise(frame, span.content_start, span.end, budget), strict=True):
        facts = [f"{batch['sizeInBytes']} bytes"]
        if "lastOffset" in batch:
            first = batch["lastOffset"] if batch["baseOffset"] is None else batch["baseOffset"]
            facts.append(f"offsets {first} to {batch['lastOffset']}")
            facts.append(batch.get("controlType") or batch["compressionType"])
            if batch["producerId"] >= 0:
                facts.append(f"producer {batch['producerId']} epoch {batch['producerEpoch']}")
            if batch["isTransactional"]:
                facts.append("transactional")
            if batch["crcValid"] is False:
                facts.append("checksum does not match")
        if place.status != "ok":
            facts.append(place.status)
        depth = sum(1 for part in span.path if isinstance(part, str))
        text = ", ".join(facts)
        yield Line(
            place.start, place.end, depth, "batch", f"magic {place.magic}", text, _hex(frame, place.start, place.end)
        )


def _name(path: tuple[str | int, ...]) -> str:
    last = path[-1]
    if isinstance(last, int):
        return f"[{last}]"
    if not last:
        return f"[{path[-2]}]"
    before = path[-2] if len(path) > 1 else None
    return f"[{before}] {last}" if isinstance(before, int) else str(last)


def _value(span: FieldSpan) -> str:
    if span.type == LENGTH:
        return f"a length of {span.value}"
    if span.type.endswith("array"):
        return "null" if span.value is None else f"{span.value} element{'' if span.value == 1 else 's'}"
    if span.type.endswith("records"):
        return "null" if span.value is None else f"{span.value} bytes"
    if span.type == "struct":
        return "null" if span.value is None else ""
    text = (
        "null" if span.value is None else repr(span.value) if isinstance(span.value, str) else str(span.value).lower()
    )
    return text if len(text) <= _TEXT_SHOWN else text[: _TEXT_SHOWN - 1] + "…"


def _hex(frame: bytes, start: int, end: int | None = None) -> str:
    end = len(frame) if end is None else end
    shown = frame[start : min(end, start + _HEX_SHOWN)].hex(" ")
    return shown + (" …" if end - start > _HEX_SHOWN else "")


def _error_line(frame: bytes, message: Message) -> Line:
    start = message.error_offset or 0
    return Line(
        start,
        len(frame),
        0,
        message.error_code or "",
        message.status,
        message.error_detail or "",
        _hex(frame, start),
        True,
    )


def as_objects(explanation: Explanation) -> Iterator[dict[str, Any]]:
    """The lines as JSON objects with stable keys."""
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
        }
