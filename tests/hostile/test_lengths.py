"""Lengths that are: every length of a frame of every api replaced by the extremes; bombs made of many small values."""

from __future__ import annotations

import struct
import tracemalloc
from collections.abc import Iterator

import pytest

from decoder.errors import ErrorCode
from decoder.kafka.codec.program import WIDTH, Op, compile_programs
from tests.decoder.kafka.encode import encode, find_layout, request, unsigned_varint
from tests.hostile.invariants import CODEC, decode
from tests.hostile.lengths import length_places, spans_of
from tests.hostile.samples import Sample, made

PROGRAMS = compile_programs()


def with_lying_lengths(sample: Sample) -> Iterator[bytes]:
    """The frame with each of its lengths and counts, one at a time, replaced by each hostile one."""
    for start, end, lies in length_places(sample):
        for lie in lies:
            yield sample.data[:start] + lie + sample.data[end:]


@pytest.mark.parametrize("sample", made(), ids=str)
def test_each_length_of_every_api(sample):
    for data in with_lying_lengths(sample):
        decode(data, sample.direction, sample.api_key, sample.api_version)


@pytest.mark.parametrize(
    ("lie", "code", "offset"),
    [
        (unsigned_varint(2**31), ErrorCode.LENGTH_OVERRUN, 0),
        (unsigned_varint(2**32 - 1), ErrorCode.LENGTH_OVERRUN, 0),
        (b"\xff\xff\xff\xff\x7f", ErrorCode.VARINT_TOO_LONG, 0),
        (b"\x80" * 6 + b"\0", ErrorCode.VARINT_TOO_LONG, 0),
        (b"\x80\x80", ErrorCode.BUFFER_UNDERFLOW, 2),
    ],
)
@pytest.mark.parametrize("what", ["string", "array", "tagged fields"])
def test_the_code_shows_what_is_wrong_with_a_compact_length(what, lie, code, offset):
    header = struct.pack(">hhihb", 13, 4, 7, -1, 0)  # LeaveGroup v4: group id, members, tags
    body = {"string": b"", "array": b"\2g", "tagged fields": b"\2g\1"}[what]
    message = decode(header + body + lie, "request", None, None)
    assert (message.error_code, message.error_offset) == (code, len(header + body) + offset)


def flexible_sorts() -> list[tuple[str, int, int]]:
    found = [("request", *sort) for sort, entry in PROGRAMS.requests.items() if entry.flexible]
    return found + [("response", *sort) for sort, entry in PROGRAMS.responses.items() if entry.flexible]


def test_a_tagged_section_may_not_repeat_a_tag_nor_count_more_than_there_is():
    for kind, key, version in flexible_sorts():
        layout, _ = find_layout(kind, key, version)
        raw = request(key, version, {}) if kind == "request" else b"\0\0\0\7" + b"\0" * (key != 18) + encode(layout, {})
        assert raw[-1] == 0  # an empty tagged section ends every flexible message
        if key == 18 and kind == "response":
            continue  # might be read as v0
        many = decode(raw[:-1] + unsigned_varint(2**31), kind, key, version)
        assert many.error_code == ErrorCode.LENGTH_OVERRUN
        twice = decode(
            raw[:-1] + b"\2" + unsigned_varint(9000) + b"\0" + unsigned_varint(9000) + b"\0", kind, key, version
        )
        assert twice.error_code == ErrorCode.TAG_ORDER


def smallest_size(start: int) -> int:
    """Bytes that a struct or element takes at least."""
    size = 0
    while (op := PROGRAMS.code[start]) not in (Op.END, Op.TAGS):
        nullable, target = PROGRAMS.code[start + 2 : start + 4]
        fixed = {Op.INT16: 2, Op.UINT16: 2, Op.INT32: 4, Op.UINT32: 4, Op.INT64: 8, Op.FLOAT64: 8, Op.UUID: 16}
        long_ = {Op.STRING: 2, Op.BYTES: 4, Op.RECORDS: 4, Op.ARRAY: 4}
        is_struct = op == Op.STRUCT and not nullable
        size += smallest_size(target) if is_struct else {**fixed, **long_}.get(op, 1)
        start += WIDTH
    return size + (op == Op.TAGS)


def test_no_array_has_elements_without_bytes():
    """So the product of nested arrays is bounded by the bytes of the frame: checking each count is enough."""
    code = PROGRAMS.code
    arrays = [at for at in range(0, len(code), WIDTH) if code[at] in (Op.ARRAY, Op.C_ARRAY)]
    targets = {code[at + 3] for at in arrays}
    assert len(targets) > 100
    assert min(map(smallest_size, targets)) >= 1


@pytest.mark.parametrize("filler", [b"\x00", b"\x01", b"\x02", b"\x0a", b"\x7f", b"\xff", b"\x02\x00", b"\0\0\0\1"])
def test_a_body_of_one_byte_over_and_over(filler):
    """Every count, length and number is the same: nested arrays of 10 x 10 x 10 … among them."""
    for kind, key, version in [(s.direction, s.api_key, s.api_version) for s in made()]:
        header = struct.pack(">hhihb", key, version, 7, -1, 0) if kind == "request" else b"\0\0\0\7\0"
        decode(header + filler * (1000 // len(filler)), kind, key, version)


BYTES = 2_000
PEAK_PER_BYTE = 200
"""The dearest byte is half an element: a dict of one field and one tagged section, in a list."""


def bombs() -> Iterator[tuple[str, int, int, bytes]]:
    """Frames with one array that has as many elements as bytes follow, all zero; once for each name of an array."""
    seen = set()
    for sample in made():
        for span in spans_of(sample):
            name = (span.type, next(part for part in reversed(span.path) if isinstance(part, str)))
            if span.type.endswith("array") and name not in seen:
                seen.add(name)
                count = unsigned_varint(BYTES) if span.type == "compact array" else struct.pack(">i", BYTES)
                data = sample.data[: span.start] + count + bytes(BYTES)
                yield sample.direction, sample.api_key, sample.api_version, data


@pytest.mark.slow
def test_memory_is_bounded_by_the_size_of_the_frame():
    dearest = []
    frames = list(bombs())
    assert len(frames) > 100
    tracemalloc.start()
    try:
        for kind, key, version, data in frames:
            before = tracemalloc.get_traced_memory()[0]
            tracemalloc.reset_peak()
            CODEC.decode(data, direction=kind, api_key=key, api_version=version)
            dearest.append((tracemalloc.get_traced_memory()[1] - before) / len(data))
    finally:
        tracemalloc.stop()
    assert 10 < max(dearest) <= PEAK_PER_BYTE
