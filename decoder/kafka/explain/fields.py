"""What each byte of a Kafka message means: fields, record batches, and the messages inside bytes fields."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from decoder.codec import Codec
from decoder.errors import ErrorCode
from decoder.explain.explanation import (
    BATCH,
    MESSAGE,
    TRAILING,
    Explanation,
    Line,
    error_line,
    gap_line,
    hex_text,
    short,
    with_gaps,
)
from decoder.kafka.apis import ApiKey
from decoder.kafka.codec.bodies import LENGTH, FieldSpan
from decoder.kafka.codec.embedded import Place, places, read_embedded
from decoder.kafka.codec.messages import RECORDS_REMOVED
from decoder.kafka.codec.program import Programs, compile_programs
from decoder.kafka.records.batches import batch_spans, summarise
from decoder.kafka.records.compression import Budget
from decoder.model import Direction, FrameFlags, Message
from decoder.protocol import Context

_BROKEN = ("partial", "malformed", "truncated")


def explain_frame(frame: bytes, context: Context, codec: Codec) -> Explanation:
    """See decoder.explain.frame.explain."""
    spans: list[FieldSpan] = []
    direction, api_key, api_version, flags = context
    message = codec.decode(
        frame, direction=direction, api_key=api_key, api_version=api_version, flags=flags, trace=spans.append
    )
    spans = _of_one_reading(spans, message)
    lines = [_line(frame, span) for span in spans]
    budget = Budget()
    for span in spans:
        if span.type.endswith("records") and span.value:
            removed = bool(flags & RECORDS_REMOVED)
            lines += [_removed_line(frame, span)] if removed else _batch_lines(frame, span, budget, flags)
    by_path = {span.path: span for span in spans}
    for place in places(message, direction):
        lines += _embedded_lines(compile_programs(), frame, by_path[place.path], place, direction, flags, budget)
    lines += _half_read(frame, spans, message)
    lines.sort(key=lambda line: (line.start, line.is_error, line.depth, -line.end))
    failed = error_line(frame, message)
    if failed:
        lines += failed
    elif message.error_code == ErrorCode.TRAILING_BYTES.value:
        start = message.error_offset or 0
        text = f"{len(frame) - start} bytes behind the message, of which its receiver takes no notice"
        lines.append(Line(start, len(frame), 0, TRAILING, "raw", text, hex_text(frame, start)))
    return Explanation(message, tuple(with_gaps(frame, lines)), len(frame))


def _of_one_reading(spans: list[FieldSpan], message: Message) -> list[FieldSpan]:
    """The spans of the reading that counts: an ApiVersions response may be read again as v0 (KIP-511)."""
    if message.api_key != ApiKey.API_VERSIONS:
        return spans
    first, *others = [index for index, span in enumerate(spans) if span.path == ("errorCode",)] or [0]
    if not others:
        return spans
    is_second = message.status == "ok" and message.error_code is None
    return [*spans[:first], *spans[others[0] :]] if is_second else spans[: others[0]]


def _half_read(frame: bytes, spans: list[FieldSpan], message: Message) -> Iterator[Line]:
    """The bytes in front of the error that belong to no whole field: the first bytes of a varint."""
    read = max((span.content_start if _is_container(span) else span.end for span in spans), default=0)
    if message.status in _BROKEN and message.error_offset is not None and read < message.error_offset:
        yield gap_line(frame, read, message.error_offset)


def _is_container(span: FieldSpan) -> bool:
    return span.type.endswith(("array", "struct")) and span.value is not None


def _line(frame: bytes, span: FieldSpan) -> Line:
    return Line(
        start=span.start,
        end=span.end,
        depth=sum(1 for part in span.path[:-1] if isinstance(part, str)),
        name=_name(span.path),
        type=span.type,
        value=_value(span),
        hex=hex_text(frame, span.start, span.end),
    )


def _removed_line(frame: bytes, span: FieldSpan) -> Line:
    depth = sum(1 for part in span.path if isinstance(part, str))
    text = "batches that were removed before the frame was stored"
    return Line(
        span.content_start, span.end, depth, BATCH, "removed", text, hex_text(frame, span.content_start, span.end)
    )  # fmt: skip


def _batch_lines(frame: bytes, span: FieldSpan, budget: Budget, flags: int) -> Iterator[Line]:
    """The record batches within a records field."""
    spans = batch_spans(frame, span.content_start, span.end)
    measured = bool(flags & FrameFlags.SETS_MEASURED)
    batches = summarise(frame, span.content_start, span.end, budget, measured=measured)
    for place, batch in zip(spans, batches, strict=True):
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
            place.start, place.end, depth, BATCH, f"magic {place.magic}", text, hex_text(frame, place.start, place.end)
        )


def _embedded_lines(
    programs: Programs, frame: bytes, field: FieldSpan, place: Place, direction: Direction, flags: int, budget: Budget
) -> Iterator[Line]:
    """The message inside a bytes field: a heading, its fields, and its own error if it has one."""
    spans: list[FieldSpan] = []
    found = read_embedded(programs, place, direction, flags, spans.append)
    base = field.content_start
    depth = sum(1 for part in field.path if isinstance(part, str))
    is_read = found["version"] is not None
    name = f"{found['name'] or 'request'} v{found['version']}" if is_read else "(not decoded)"
    reason = found["status"] if "protocolType" not in found else f"of protocol type {found['protocolType']!r}"
    yield Line(
        base, field.end, depth, name, MESSAGE if is_read else "raw", reason, hex_text(frame, base, field.end)
    )  # fmt: skip
    if not is_read:
        return
    for span in spans:
        inner = replace(
            span,
            path=(*field.path, name, *span.path),
            start=span.start + base,
            end=span.end + base,
            content_start=span.content_start + base,
        )
        yield _line(frame, inner)
        if inner.type.endswith("records") and inner.value:
            yield from _batch_lines(frame, inner, budget, flags)
    if "error_code" in found:
        start = base + found["error_offset"]
        text = f"byte {start}: {found['error_detail']}"
        yield Line(start, field.end, depth + 1, found["error_code"], found["status"], text,
                   hex_text(frame, start, field.end), True)  # fmt: skip
    elif found.get("trailingBytes"):
        start = field.end - found["trailingBytes"]
        text = f"{found['trailingBytes']} bytes, of a newer version"
        yield Line(start, field.end, depth + 1, "(further bytes)", "raw", text, hex_text(frame, start, field.end))


def _name(path: tuple[str | int, ...]) -> str:
    last = path[-1]
    if isinstance(last, int):
        return f"[{last}]"
    if not last:
        return f"[{path[-2]}]"
    before = path[-2] if len(path) > 1 else None
    return f"[{before}] {last}" if isinstance(before, int) else str(last)


def _value(span: FieldSpan) -> str:
    if span.type.endswith(LENGTH):
        return str(span.value)
    if span.type.endswith("array"):
        return "null" if span.value is None else f"{span.value} element{'' if span.value == 1 else 's'}"
    if span.type.endswith("records"):
        return "null" if span.value is None else f"{span.value} bytes"
    if span.type == "struct":
        return "null" if span.value is None else ""
    text = (
        "null" if span.value is None else repr(span.value) if isinstance(span.value, str) else str(span.value).lower()
    )
    return short(text)
