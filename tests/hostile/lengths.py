"""Finds the lengths and counts of a frame, and the lies that they can tell."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from decoder.kafka.codec.bodies import TAGGED_SECTION, FieldSpan
from tests.decoder.kafka.encode import unsigned_varint
from tests.hostile.invariants import CODEC
from tests.hostile.samples import Sample

INT16 = [struct.pack(">h", value) for value in (2**15 - 1, -1, -2, -(2**15), 0)]
INT32 = [struct.pack(">i", value) for value in (2**31 - 1, -1, -2, -(2**31), 0, 2**24)]
COMPACT = [
    *map(unsigned_varint, (0, 1, 2**31 - 1, 2**31, 2**32 - 1)),
    b"\x80\x80\x80\x80\x00",  # a needlessly long zero, which is null
    b"\x80\x80\x80\x80\x80\x00",  # 6 bytes
    b"\x80" * 11,
    b"\xff\xff\xff\xff\x7f",  # 35 bits: 2^32 and more
]

Place = tuple[int, int, list[bytes]]
"""Start and end of a length, and what may be there instead."""


def spans_of(sample: Sample) -> list[FieldSpan]:
    spans: list[FieldSpan] = []
    CODEC.decode(
        sample.data,
        direction=sample.direction,
        api_key=sample.api_key,
        api_version=sample.api_version,
        trace=spans.append,
    )
    return spans


def length_places(sample: Sample) -> Iterator[Place]:
    for span in spans_of(sample):
        if span.type == TAGGED_SECTION:
            yield span.start, span.end, COMPACT
        elif span.type.startswith("compact"):
            yield span.start, span.content_start, COMPACT
        elif span.type == "string":
            yield span.start, span.content_start, INT16
        elif span.type in ("bytes", "array", "records"):
            yield span.start, span.content_start, INT32
