from __future__ import annotations

import struct

import pytest

from decoder import limits
from decoder.errors import ErrorCode
from decoder.kafka.records.compression import Budget
from decoder.kafka.records.iteration import Record, read_records
from tests.decoder.kafka import batches
from tests.decoder.kafka.batches import batch, control, damaged, message, record, wrapper
from tests.decoder.kafka.compressed import CODECS, lz4_frame, raw_snappy, xerial
from tests.decoder.kafka.encode import varint
from tests.decoder.kafka.kernel.same_records import read_both

NOW = 1_700_000_000_000
COUNT_AT = 57


def records(data: bytes, **options) -> list[Record]:
    """Of a field without problems, as both readers find them."""
    result = read_both(data, **options)
    assert result.problems == []
    return result.records


def problem(data: bytes, code: ErrorCode, at: int, *, before: int = 0, **options) -> str:
    """The one problem of a field, with its place in the field and the number of records that stay."""
    result = read_both(data, **options)
    (found,) = result.problems
    assert (found.error_code, found.error_offset - 5, len(result.records)) == (code.value, at, before)
    return found.error_detail


def one(*parts: bytes, length: int | None = None) -> bytes:
    """A record of these bytes behind its length."""
    content = b"".join(parts)
    return varint(len(content) if length is None else length) + content


class TestVersion2:
    def test_every_field(self):
        headers = [(b"trace", b"x"), (b"trace", None), (b"", b"")]
        data = batch([record(b"key", b"value"), record(None, b"", 3, headers)], base_offset=40, producer=(1, 2, 17))
        assert records(data) == [
            Record(40, NOW, "CreateTime", 3, 5, sequence=17, key=b"key", value=b"value"),
            Record(
                43, NOW + 3, "CreateTime", None, 0, ("trace", "trace", ""), 20,
                value=b"", header_values=(b"x", None, b""),
            ),
        ]  # fmt: skip

    def test_bytes_only_when_asked_for(self):
        data = batch([record(b"key", b"value", 0, [(b"trace", b"x")])])
        (found,) = read_records(data, 0, len(data)).records
        assert (found.key_size, found.value_size, found.header_keys) == (3, 5, ("trace",))
        assert (found.key, found.value, found.header_values) == (None, None, ())

    @pytest.mark.parametrize("name", CODECS)
    def test_every_codec(self, name):
        codec, compress = CODECS[name]
        content = [record(b"k%d" % at, b"value" * at, at) for at in range(50)]
        found = records(batch(content, attributes=codec, compressed=compress(b"".join(content))))
        assert [(r.offset, r.key, r.value_size) for r in found] == [(at, b"k%d" % at, 5 * at) for at in range(50)]

    def test_log_append_time_is_one_for_all(self):
        data = batch([record(b"k", b"v", at) for at in range(2)], attributes=batches.LOG_APPEND_TIME, max_timestamp=99)
        assert [(r.timestamp, r.timestamp_type) for r in records(data)] == [(99, "LogAppendTime")] * 2

    def test_deltas_are_relative_to_a_delete_horizon_too(self):
        data = batch([record(b"k", None, 7)], attributes=0x40, base_timestamp=NOW + 1000)
        assert records(data)[0].timestamp == NOW + 1007

    def test_sequences_wrap_to_zero(self):
        data = batch([record(b"k", b"v", at) for at in range(3)], producer=(1, 0, 2**31 - 2))
        assert [r.sequence for r in records(data)] == [2**31 - 2, 2**31 - 1, 0]

    @pytest.mark.parametrize(("kind", "name"), [(0, "ABORT"), (1, "COMMIT")])
    def test_markers(self, kind, name):
        (found,) = records(control(kind, base_offset=9, coordinator_epoch=29))
        assert (found.offset, found.is_control, found.control_type, found.coordinator_epoch) == (9, True, name, 29)

    def test_a_marker_that_cannot_be_read(self):
        (found,) = records(batch([record(b"", b"")], attributes=batches.CONTROL))
        assert (found.is_control, found.control_type, found.coordinator_epoch) == (True, None, None)

    @pytest.mark.parametrize("codec", [0, 1, 4])
    def test_an_empty_batch(self, codec):
        assert records(batch([], count=0, last_delta=9, attributes=codec, compressed=b"")) == []

    def test_offsets_and_timestamps_wrap_as_in_java(self):
        data = batch([record(b"k", b"v", 1)], base_offset=2**63 - 1, base_timestamp=2**63 - 1)
        assert (records(data)[0].offset, records(data)[0].timestamp) == (-(2**63), -(2**63))

    def test_names_that_are_not_utf8_are_replaced_as_in_kafka(self):
        assert records(batch([record(b"k", b"v", 0, [(b"a\xff", b"")])]))[0].header_keys == ("a�",)

    def test_several_batches_and_a_partial_one(self):
        data = batch([record(b"a", b"v")]) + message(b"b", b"v") + batch([record(b"c", b"v")]) * 2
        assert [r.key for r in records(data[:-1])] == [b"a", b"b", b"c"]


class TestLies:
    GOOD = record(b"k", b"v")

    @pytest.mark.parametrize("count", [-1, -(2**31)])
    def test_a_negative_count(self, count):
        problem(batch([self.GOOD], count=count), ErrorCode.RECORD_COUNT, COUNT_AT)

    @pytest.mark.parametrize("count", [3, 2**31 - 1])
    def test_a_count_that_is_too_large(self, count):
        data = batch([self.GOOD] * 2, count=count)
        assert "2 are there" in problem(data, ErrorCode.RECORD_COUNT, len(data), before=2)

    @pytest.mark.parametrize("count", [0, 1])
    def test_a_count_that_is_too_small(self, count):
        at = 61 + count * len(self.GOOD)
        problem(batch([self.GOOD] * 2, count=count), ErrorCode.RECORD_COUNT, at, before=count)

    @pytest.mark.parametrize(
        ("content", "code", "at"),
        [
            (one(bytes(6), length=-1), ErrorCode.NEGATIVE_LENGTH, 0),
            (one(bytes(6), length=-5), ErrorCode.NEGATIVE_LENGTH, 0),
            (one(bytes(6), length=7), ErrorCode.LENGTH_OVERRUN, 0),
            (one(bytes(6), length=2**31 - 1), ErrorCode.LENGTH_OVERRUN, 0),
            (one(bytes(5)), ErrorCode.BUFFER_UNDERFLOW, 6),
            (one(), ErrorCode.BUFFER_UNDERFLOW, 1),
            (one(bytes(7)), ErrorCode.RECORD_SIZE, 7),
            (one(bytes(3), varint(-2), bytes(2)), ErrorCode.NEGATIVE_LENGTH, 4),
            (one(bytes(3), varint(9), bytes(2)), ErrorCode.LENGTH_OVERRUN, 4),
            (one(bytes(5), varint(-1)), ErrorCode.NEGATIVE_LENGTH, 6),
            (one(bytes(5), varint(1)), ErrorCode.LENGTH_OVERRUN, 6),
            (one(bytes(5), varint(2**31 - 1)), ErrorCode.LENGTH_OVERRUN, 6),
            (one(bytes(5), varint(1), varint(-1), b"\0"), ErrorCode.UNEXPECTED_NULL, 7),
            (one(bytes(5), varint(1), varint(-2), b"\0"), ErrorCode.NEGATIVE_LENGTH, 7),
            (one(bytes(2), b"\x80" * 5 + b"\0", bytes(3)), ErrorCode.VARINT_TOO_LONG, 3),
            (one(bytes(2), b"\xff\xff\xff\xff\x7f", bytes(3)), ErrorCode.VARINT_TOO_LONG, 3),
            (one(b"\0", b"\x80" * 10 + b"\0", bytes(4)), ErrorCode.VARINT_TOO_LONG, 2),
        ],
    )
    def test_lengths(self, content, code, at):
        problem(batch([self.GOOD, content]), code, 61 + len(self.GOOD) + at, before=1)

    def test_in_compressed_records_the_place_is_named_in_words(self):
        data = batch([self.GOOD, one(bytes(7))], attributes=1)
        detail = problem(data, ErrorCode.RECORD_SIZE, 61, before=1)
        assert f"byte {len(self.GOOD) + 7} of the decompressed records" in detail

    def test_the_batches_behind_it_are_read(self):
        data = batch([self.GOOD], count=5) + batch([self.GOOD], attributes=1, compressed=b"?") + batch([self.GOOD])
        found = read_both(data)
        assert [p.error_code for p in found.problems] == ["record_count", "decompression_failed"]
        assert [p.batch_start for p in found.problems] == [5, 5 + 61 + len(self.GOOD)]
        assert len(found.records) == 2

    @pytest.mark.parametrize("codec", [5, 6, 7])
    def test_unknown_codecs(self, codec):
        problem(batch([self.GOOD], attributes=codec), ErrorCode.UNKNOWN_CODEC, 61)

    @pytest.mark.parametrize("magic", [3, -1])
    def test_unknown_formats(self, magic):
        problem(batch([self.GOOD], magic=magic), ErrorCode.UNKNOWN_MAGIC, 16)

    def test_a_batch_smaller_than_its_header(self):
        data = bytearray(batch([self.GOOD]))
        struct.pack_into(">i", data, 8, 20)
        problem(bytes(data), ErrorCode.BATCH_CORRUPT, 8)


class TestOldMessages:
    def test_plain_ones(self):
        found = records(message(b"k", None, offset=7) + message(None, b"", magic=0, offset=9))
        assert found == [
            Record(7, NOW, "CreateTime", 1, None, key=b"k"),
            Record(9, -1, "NoTimestampType", None, 0, value=b""),
        ]

    def test_relative_offsets_count_from_the_last(self):
        inner = [message(b"k", b"v", offset=at) for at in (0, 2, 5)]
        assert [r.offset for r in records(wrapper(inner, offset=105))] == [100, 102, 105]

    def test_a_wrapper_at_0_has_no_base(self):
        inner = [message(b"k", b"v", offset=at) for at in range(3)]
        assert [r.offset for r in records(wrapper(inner, offset=0))] == [0, 1, 2]

    def test_offsets_of_format_0_are_absolute(self):
        inner = [message(b"k", b"v", magic=0, offset=at) for at in (100, 105)]
        assert [r.offset for r in records(wrapper(inner, magic=0, offset=105))] == [100, 105]

    def test_log_append_time_of_the_wrapper_goes_before_that_of_the_messages(self):
        inner = [message(b"k", b"v", timestamp=5, offset=at) for at in range(2)]
        found = records(wrapper(inner, offset=1, attributes=batches.LOG_APPEND_TIME))
        assert [(r.timestamp, r.timestamp_type) for r in found] == [(NOW, "LogAppendTime")] * 2
        assert [(r.timestamp, r.timestamp_type) for r in records(wrapper(inner))] == [(5, "CreateTime")] * 2

    @pytest.mark.parametrize("compress", [raw_snappy, xerial])
    def test_both_kinds_of_snappy(self, compress):
        value = compress(message(b"k", b"v"))
        assert records(message(None, value, attributes=2))[0].key == b"k"

    def test_the_lz4_of_format_0_has_a_wrong_header_checksum(self):
        value = lz4_frame(message(b"k", b"v", magic=0), header_checksum=0x77)
        assert records(message(None, value, magic=0, attributes=3))[0].key == b"k"
        at = 18 + 8 + 4 + 4
        problem(message(None, value, magic=1, attributes=3), ErrorCode.DECOMPRESSION_FAILED, at)

    def test_no_zstd(self):
        value = CODECS["zstd"][1](message(b"k", b"v"))
        problem(message(None, value, attributes=4), ErrorCode.UNKNOWN_CODEC, 34)

    def test_a_wrapper_within_a_wrapper(self):
        nested = [message(b"k", b"v", magic=0), wrapper([message(b"k", b"v")])]
        problem(wrapper(nested, magic=0), ErrorCode.NESTED_COMPRESSION, 26, before=1)

    @pytest.mark.parametrize(
        ("inner", "code"),
        [
            ([], ErrorCode.RECORD_COUNT),
            ([batch([record(b"k", b"v")])], ErrorCode.UNKNOWN_MAGIC),
            ([message(b"k", b"v")[:-1]], ErrorCode.RECORD_COUNT),
            ([message(b"k", b"v")[:10]], ErrorCode.RECORD_COUNT),
            ([bytes(11) + b"\x05" + bytes(6)], ErrorCode.BATCH_CORRUPT),
            ([message(b"k", b"v", offset=50)], ErrorCode.BATCH_CORRUPT),
        ],
    )
    def test_content_that_lies(self, inner, code):
        problem(wrapper(inner, offset=42), code, 34)

    @pytest.mark.parametrize("magic", [0, 1])
    @pytest.mark.parametrize("offset", [0, 42])
    def test_a_partial_message_at_the_end_of_a_wrapper_ends_it_as_in_kafka(self, magic, offset):
        """Kafka 3.9.2 and 4.4.0 read the same offsets, and report nothing of the rest."""
        inner = [message(b"k", b"v", magic=magic, offset=at) for at in range(3)]
        first = offset - 1 if magic == 1 and offset else 0
        for cut in range(1, len(inner[2])):
            data = wrapper([*inner[:2], inner[2][:-cut]], magic=magic, offset=offset)
            found = read_both(data)
            assert [r.offset for r in found.records] == [first, first + 1]
            assert [p.error_code for p in found.problems] == [ErrorCode.BUFFER_UNDERFLOW]
            assert f"{len(inner[2]) - cut} bytes of a partial message" in found.problems[0].error_detail

    def test_a_message_that_lies_hides_the_offsets_of_a_wrapper(self):
        inner = [message(b"k", b"v", offset=0), bytes(16) + b"\x01" + bytes(17)]
        problem(wrapper(inner, offset=42), ErrorCode.BATCH_CORRUPT, 34, before=0)
        problem(wrapper(inner, offset=0), ErrorCode.BATCH_CORRUPT, 34, before=1)

    def test_a_compressed_message_without_a_value(self):
        problem(message(b"k", None, attributes=1), ErrorCode.UNEXPECTED_NULL, 35)

    @pytest.mark.parametrize(("size", "code"), [(-2, ErrorCode.NEGATIVE_LENGTH), (9, ErrorCode.LENGTH_OVERRUN)])
    def test_key_lengths_that_lie(self, size, code):
        data = bytearray(message(b"k", b"v"))
        struct.pack_into(">i", data, 26, size)
        problem(bytes(data), code, 26)

    def test_bytes_behind_the_value(self):
        data = bytearray(message(b"k", b"vv"))
        struct.pack_into(">i", data, 31, 1)
        problem(bytes(data), ErrorCode.RECORD_SIZE, len(data) - 1)


class TestLimits:
    MANY = batch([record(b"k", b"v", at) for at in range(10)])

    @pytest.mark.parametrize("data", [MANY, message(b"k", b"v") * 10])
    def test_records_of_a_frame(self, data, monkeypatch):
        monkeypatch.setattr(limits, "MAX_RECORDS_PER_FRAME", 7)
        found = read_both(data)
        assert len(found.records) == 7
        assert {p.error_code for p in found.problems} == {"too_many_records"}

    def test_the_fields_of_a_frame_share_them(self):
        budget = Budget()
        budget.records = 15
        first, second = (read_records(self.MANY, 0, len(self.MANY), budget=budget) for _ in range(2))
        assert (len(first.records), len(second.records)) == (10, 5)

    def test_headers_of_a_frame(self, monkeypatch):
        monkeypatch.setattr(limits, "MAX_VALUES_PER_FRAME", 7)
        data = batch([record(b"k", b"v", at, [(b"a", b"")] * 3) for at in range(4)])
        found = read_both(data)
        assert (len(found.records), [p.error_code for p in found.problems]) == (2, ["too_many_records"])

    def test_batches_of_a_field(self, monkeypatch):
        monkeypatch.setattr(limits, "MAX_BATCHES_PER_FIELD", 3)
        found = read_both(message(b"k", b"v") * 5)
        assert (len(found.records), [p.error_code for p in found.problems]) == (3, ["too_many_records"])


def test_what_the_policy_removed_is_not_read_as_records():
    data = damaged(batch([record(b"k", b"v")])) + control(1) + damaged(message(b"k", b"v")) + message(b"", b"")
    found = read_both(data, removed=True)
    assert [p.error_code for p in found.problems] == ["payload_removed"] * 2
    assert [r.control_type for r in found.records] == ["COMMIT", None]  # those are as they were on the wire


@pytest.mark.parametrize(("removed", "code"), [(True, "payload_removed"), (False, "unknown_magic")])
def test_a_batch_of_which_the_policy_left_only_the_format(removed, code):
    data = bytes(16) + b"\x05" + bytes(60)
    assert [p.error_code for p in read_both(data, removed=removed).problems] == [code]
