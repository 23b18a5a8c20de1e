from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decoder.errors import DecodeError, ErrorCode
from decoder.reader import Cursor
from tests.decoder.kafka.encode import unsigned_varint, varint


@pytest.mark.parametrize(
    ("method", "format_", "values"),
    [
        ("int8", ">b", [0, -1, 127, -128]),
        ("int16", ">h", [0, -1, 2**15 - 1, -(2**15)]),
        ("uint16", ">H", [0, 2**16 - 1]),
        ("int32", ">i", [0, -1, 2**31 - 1, -(2**31)]),
        ("uint32", ">I", [0, 2**32 - 1]),
        ("int64", ">q", [0, -1, 2**63 - 1, -(2**63)]),
        ("float64", ">d", [0.0, -1.5, 1.7976931348623157e308, 5e-324]),
    ],
)
def test_fixed_sizes(method, format_, values):
    for value in values:
        raw = struct.pack(format_, value)
        cursor = Cursor(b"\xee" + raw + b"\xee", 1)
        assert getattr(cursor, method)() == value
        assert cursor.pos == 1 + len(raw)
        for left in range(len(raw)):
            short = Cursor(raw, 0, left)
            with pytest.raises(DecodeError) as caught:
                getattr(short, method)()
            assert (caught.value.code, caught.value.offset) == (ErrorCode.BUFFER_UNDERFLOW, 0)


@given(st.integers(0, 2**32 - 1))
def test_unsigned_varints(value):
    raw = unsigned_varint(value)
    cursor = Cursor(raw)
    assert cursor.unsigned_varint() == value
    assert cursor.remaining == 0


@given(st.integers(-(2**63), 2**63 - 1))
def test_varlongs(value):
    raw = varint(value)
    cursor = Cursor(raw)
    assert cursor.varlong() == value
    assert cursor.remaining == 0


@given(st.integers(-(2**31), 2**31 - 1))
def test_varints(value):
    cursor = Cursor(varint(value))
    assert (cursor.varint(), cursor.remaining) == (value, 0)


@pytest.mark.parametrize("raw", [b"\xff\xff\xff\xff\x10", b"\x80\x80\x80\x80\x80\x00"])
def test_a_varint_of_more_than_32_bits(raw):
    with pytest.raises(DecodeError) as caught:
        Cursor(raw).varint()
    assert (caught.value.code, caught.value.offset) == (ErrorCode.VARINT_TOO_LONG, 0)


def test_a_varint_with_needless_zeros_is_read_as_kafka_reads_it():
    assert Cursor(b"\x87\x80\x00").unsigned_varint() == 7
    assert Cursor(b"\x80\x80\x80\x80\x00").unsigned_varint() == 0


@pytest.mark.parametrize("raw", [b"\x80" * 5 + b"\0", b"\xff" * 6, b"\xff\xff\xff\xff\x10", b"\xff\xff\xff\xff\x7f"])
def test_an_unsigned_varint_of_more_than_32_bits(raw):
    with pytest.raises(DecodeError) as caught:
        Cursor(b"\0" + raw, 1).unsigned_varint()
    assert (caught.value.code, caught.value.offset) == (ErrorCode.VARINT_TOO_LONG, 1)


def test_a_varlong_of_more_than_10_bytes():
    with pytest.raises(DecodeError) as caught:
        Cursor(b"\x80" * 11).varlong()
    assert (caught.value.code, caught.value.offset) == (ErrorCode.VARINT_TOO_LONG, 0)


@pytest.mark.parametrize("method", ["unsigned_varint", "varlong"])
def test_a_varint_cut_off(method):
    with pytest.raises(DecodeError) as caught:
        getattr(Cursor(b"\x80\x80"), method)()
    assert (caught.value.code, caught.value.offset) == (ErrorCode.BUFFER_UNDERFLOW, 2)


def test_a_length_is_checked_against_what_remains():
    cursor = Cursor(bytes(10), 4)
    assert cursor.length(6, 2, "string") == 6
    with pytest.raises(DecodeError) as caught:
        cursor.length(7, 2, "string")
    assert (caught.value.code, caught.value.offset) == (ErrorCode.LENGTH_OVERRUN, 2)
    assert "string declares a length of 7, 6 bytes are left" in str(caught.value)
