"""The api and version of a response whose request was not seen: what it decodes as, likeliest first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from decoder.kafka.codec.bodies import UNKNOWN_TAG, FieldSpan
from decoder.kafka.codec.messages import decode_frame
from decoder.kafka.codec.program import compile_programs
from decoder.kafka.errors import ERROR_NAMES
from decoder.kafka.records.batches import summarise

_HOUR_MS = 3_600_000

_USUAL: dict[str | int, Callable[[int], bool]] = {
    "errorCode": lambda value: value in ERROR_NAMES,
    "throttleTimeMs": lambda value: 0 <= value <= _HOUR_MS,
    "port": lambda value: -1 <= value <= 0xFFFF,
}


@dataclass(frozen=True, slots=True)
class Candidate:
    """An api that a response decodes as, to its last byte.

    Attributes:
        versions: all that fit equally well, ascending.
        doubts: values in it that no real broker is likely to send.
    """

    api_key: int
    api_name: str
    versions: tuple[int, ...]
    doubts: int


def guess_response(frame: bytes) -> list[Candidate]:
    """Apis that a response (no length prefix) may be of, likeliest first.

    Likelier are those with fewer doubtful values, with fewer bytes that nothing is known of, and with more text.
    """
    programs = compile_programs()
    best: dict[int, tuple[tuple[int, int, int], list[int]]] = {}
    for key, version in programs.responses:
        spans: list[FieldSpan] = []
        message = decode_frame(programs, frame, "response", key, version, trace=spans.append, strict=True)
        if message.status != "ok":
            continue
        rank = _rank(frame, spans)
        known = best.get(key)
        if known is None or rank < known[0]:
            best[key] = (rank, [version])
        elif rank == known[0]:
            known[1].append(version)
    ranked = sorted((rank, key, versions) for key, (rank, versions) in best.items())
    return [Candidate(key, programs.api_names[key], tuple(sorted(versions)), rank[0]) for rank, key, versions in ranked]


def _rank(frame: bytes, spans: list[FieldSpan]) -> tuple[int, int, int]:
    """Doubts, opaque bytes, and text bytes as a negative number: the smaller, the likelier."""
    doubts = opaque = text = 0
    for span in spans:
        doubts += _is_doubtful(frame, span)
        size = span.end - span.content_start
        if span.type.endswith("bytes") or span.type == UNKNOWN_TAG:
            opaque += size
        elif span.type.endswith(("string", "records")):
            text += size
    return doubts, opaque, -text


def _is_doubtful(frame: bytes, span: FieldSpan) -> bool:
    if span.type.endswith("string"):
        return span.value is not None and not span.value.isprintable()
    if span.type.endswith("records"):
        batches = summarise(frame, span.content_start, span.end)
        return any(batch["status"] not in ("ok", "partial") for batch in batches)
    if span.type == "bool":
        return frame[span.start] > 1
    is_usual = _USUAL.get(span.path[-1])
    return span.type == UNKNOWN_TAG or (is_usual is not None and not is_usual(span.value))
