"""Finds the one length that, if it were another, would make a broken message decode to its last byte.

A wrong length is how most hand-made and half-ported messages fail, and decoding often stops far behind it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from decoder.kafka.codec.bodies import LENGTH, FieldSpan
from decoder.kafka.codec.messages import decode_frame
from decoder.kafka.codec.program import compile_programs
from decoder.kafka.records.text import REPLACEMENT
from decoder.model import Direction, Message

_MAX_FIELDS = 40
"""Lengths that are tried, the nearest to the error first."""
_MAX_LENGTH = 1024
"""The largest length that is tried for each."""
_BUDGET = 6_000_000
"""Bytes of frames decoded before giving up: below a second's work."""
_FRAME_COST = 500
"""What decoding costs beside its bytes, counted in bytes."""

_INT_BYTES = {"string": 2, "bytes": 4, "records": 4, "array": 4}
_FORM = {1: "unsigned varint", 2: "int16", 4: "int32"}


@dataclass(frozen=True, slots=True)
class Repair:
    """A changed length with which the message decodes to its last byte.

    Attributes:
        path: names and array indexes of the field whose length it is.
        type: Kafka's name of the field's type.
        start, end: bytes of the frame that hold the length now.
        stated: the length that they give; None for null.
        needs: the length that fits: bytes, or elements of an array.
        written: the bytes of that length.
        value: the field's value then.
        other_form: the present bytes hold the right length, in a form that this version does not use.
        is_plausible: the message then also reads like one.
    """

    path: tuple[str | int, ...]
    type: str
    start: int
    end: int
    stated: int | None
    needs: int
    written: bytes
    value: Any
    other_form: str | None = None
    is_plausible: bool = False


def find_repair(
    frame: bytes,
    direction: Direction,
    api_key: int | None,
    api_version: int | None,
) -> Repair | None:
    """The most likely repair of a frame that does not decode; None if no single length explains it."""
    programs = compile_programs()
    spans: list[FieldSpan] = []
    decode_frame(programs, frame, direction, api_key, api_version, trace=spans.append)
    budget = _BUDGET
    fallback = None
    for repair in _candidates(frame, spans):
        budget -= len(frame) + _FRAME_COST
        if budget < 0:
            break
        changed = frame[: repair.start] + repair.written + frame[repair.end :]
        found: list[FieldSpan] = []
        message = decode_frame(programs, changed, direction, api_key, api_version, trace=found.append, strict=True)
        if message.status != "ok" or REPLACEMENT in (message.client_id or ""):
            continue
        value = next((span.value for span in found if span.path == repair.path and span.start == repair.start), None)
        whole = replace(repair, value=value)
        if is_plausible(message, found):
            return replace(whole, is_plausible=True)
        fallback = fallback or whole
    return fallback


def is_plausible(message: Message, spans: list[FieldSpan]) -> bool:
    """Whether a message that decodes also reads like one: its texts printable, no tags that no release knows."""
    texts = (span.value for span in spans if span.type.endswith("string") and span.value)
    return all(text.isprintable() for text in texts) and not any(span.type == "unknown tagged field" for span in spans)


def path_text(path: tuple[str | int, ...] | str) -> str:
    """``topics[0].name``."""
    parts = path.split("/") if isinstance(path, str) else path
    text = ""
    for part in parts:
        text += f"[{part}]" if isinstance(part, int) or part.isdigit() else f".{part}" if text else part
    return text


def _candidates(frame: bytes, spans: list[FieldSpan]) -> Iterator[Repair]:
    lengths = [(type_, span) for span in spans if (type_ := _length_type(span)) is not None]
    lengths.sort(key=lambda item: item[1].start, reverse=True)
    for type_, span in lengths[:_MAX_FIELDS]:
        end = span.end if span.type.endswith(LENGTH) else span.content_start
        stated = _stated_length(frame[span.start : end], type_)
        yield from _other_forms(frame, type_, span, stated)
        for size in _nearest_first(stated, min(_MAX_LENGTH, len(frame) - end)):
            written = written_length(size, type_)
            yield Repair(span.path, type_, span.start, end, stated, size, written, None)


def _length_type(span: FieldSpan) -> str | None:
    """The type of a field that begins with a length."""
    type_ = span.type.removesuffix(f" {LENGTH}")
    return type_ if type_.removeprefix("compact ") in _INT_BYTES else None


def _nearest_first(stated: int | None, greatest: int) -> Iterator[int]:
    around = min(max(stated or 0, 0), greatest)
    for distance in range(greatest + 1):
        for size in dict.fromkeys((around + distance, around - distance)):
            if 0 <= size <= greatest and size != stated:
                yield size


def _other_forms(frame: bytes, type_: str, span: FieldSpan, stated: int | None) -> Iterator[Repair]:
    """The length as the other kind of version writes it: a fixed integer for a compact one, or the reverse."""
    short = type_.removeprefix("compact ")
    if type_ != short:
        form = _FORM[_INT_BYTES[short]]
        end = span.start + _INT_BYTES[short]
        size = int.from_bytes(frame[span.start : end], "big", signed=True)
    elif span.start < len(frame):
        form, end = _FORM[1], span.start + 1
        size = frame[span.start] - 1 if frame[span.start] < 0x80 else -1
    else:
        return
    if 0 <= size <= len(frame) - end:
        yield Repair(span.path, type_, span.start, end, stated, size, written_length(size, type_), None, form)


def _stated_length(raw: bytes, type_: str) -> int | None:
    if not type_.startswith("compact "):
        size = int.from_bytes(raw, "big", signed=True)
    else:
        size = sum((byte & 0x7F) << (7 * index) for index, byte in enumerate(raw)) - 1
    return None if size == -1 else size


def written_length(size: int, type_: str) -> bytes:
    """The bytes of a length (-1: null) in front of a field of this type."""
    if not type_.startswith("compact "):
        return size.to_bytes(_INT_BYTES[type_], "big", signed=True)
    value, encoded = size + 1, bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
