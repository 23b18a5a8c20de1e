from __future__ import annotations

import struct

import pytest

from decoder import limits
from decoder.kafka.records.batches import batch_spans, summarise
from decoder.kafka.records.compression import Budget
from tests.decoder.kafka import batches
from tests.decoder.kafka.batches import batch, control, damaged, message, record, wrapper

RECORDS = [record(b"k", b"v"), record(None, None, 1, [(b"h", b"x")])]


def read(data: bytes, *, before: int = 5) -> list[dict]:
    """Summaries of a field that lies somewhere in a frame, with other bytes around it."""
    return summarise(b"\xee" * before + data + b"\xee" * 9, before, before + len(data))


def statuses(data: bytes) -> list[str]:
    spans = list(batch_spans(data, 0, len(data)))
    assert [(s.start, s.end) for s in spans] == list(_joined(spans, len(data)))
    return [span.status for span in spans]


def _joined(spans: list, size: int):
    """Spans must lie one behind the other and fill the field."""
    at = 0
    for span in spans:
        yield at, span.end
        at = span.end
    assert at == size


class TestVersion2:
    def test_every_header_field(self):
        data = batch(RECORDS, base_offset=40, producer=(4711, 3, 17), attributes=batches.TRANSACTIONAL, leader_epoch=9)
        assert read(data) == [
            {
                "status": "ok",
                "baseOffset": 40,
                "lastOffset": 41,
                "batchLength": len(data) - 12,
                "sizeInBytes": len(data),
                "partitionLeaderEpoch": 9,
                "magic": 2,
                "crc": int.from_bytes(data[17:21], "big"),
                "crcValid": True,
                "compressionType": "none",
                "timestampType": "CreateTime",
                "isTransactional": True,
                "isControlBatch": False,
                "hasDeleteHorizonMs": False,
                "lastOffsetDelta": 1,
                "baseTimestamp": 1_700_000_000_000,
                "maxTimestamp": 1_700_000_000_005,
                "producerId": 4711,
                "producerEpoch": 3,
                "baseSequence": 17,
                "recordsCount": 2,
            }
        ]

    @pytest.mark.parametrize(
        ("code", "name"), [*enumerate(["none", "gzip", "snappy", "lz4", "zstd"]), (7, "unknown 7")]
    )
    def test_compression(self, code, name):
        assert read(batch(RECORDS, attributes=code))[0]["compressionType"] == name

    def test_log_append_time_and_delete_horizon(self):
        (summary,) = read(batch(RECORDS, attributes=batches.LOG_APPEND_TIME | 0x40, base_timestamp=-1))
        assert summary["timestampType"] == "LogAppendTime"
        assert summary["hasDeleteHorizonMs"]
        assert summary["baseTimestamp"] == -1

    @pytest.mark.parametrize("bit", range(16))
    def test_bits_that_no_release_uses_are_stated(self, bit):
        (summary,) = read(batch(RECORDS, attributes=1 << bit if bit < 15 else -(1 << 15)))
        assert summary.get("unknownAttributes", 0) == (1 << bit if bit > 6 else 0)

    def test_the_checksum_does_not_cover_what_brokers_assign(self):
        data = bytearray(batch(RECORDS))
        struct.pack_into(">q", data, 0, 123_456)  # the base offset
        struct.pack_into(">i", data, 12, 77)  # the leader epoch
        assert read(bytes(data))[0]["crcValid"] is True

    def test_a_wrong_checksum(self):
        (summary,) = read(damaged(batch(RECORDS)))
        assert (summary["status"], summary["crcValid"]) == ("ok", False)

    def test_an_empty_batch_keeps_the_offsets_that_compaction_removed(self):
        (summary,) = read(batch([], base_offset=100, last_delta=9, count=0, producer=(1, 0, 5)))
        assert (summary["baseOffset"], summary["lastOffset"], summary["recordsCount"]) == (100, 109, 0)
        assert summary["crcValid"] is True

    def test_extreme_numbers(self):
        data = batch([], base_offset=2**63 - 1, last_delta=-1, count=-1, producer=(2**63 - 1, 2**15 - 1, 2**31 - 1))
        (summary,) = read(data)
        assert summary["recordsCount"] == -1
        assert summary["lastOffset"] == 2**63 - 2
        assert summary["baseSequence"] == 2**31 - 1


class TestControlBatches:
    @pytest.mark.parametrize(("kind", "name"), [(0, "ABORT"), (1, "COMMIT")])
    def test_the_end_of_a_transaction(self, kind, name):
        (summary,) = read(control(kind, base_offset=7, coordinator_epoch=29))
        assert summary["isControlBatch"]
        assert summary["isTransactional"]
        assert (summary["controlType"], summary["coordinatorEpoch"]) == (name, 29)

    @pytest.mark.parametrize(("kind", "name"), [(2, "LEADER_CHANGE"), (5, "KRAFT_VERSION"), (99, "99")])
    def test_other_types_have_no_coordinator(self, kind, name):
        marker = record(struct.pack(">hh", 0, kind), b"\0\0")
        (summary,) = read(batch([marker], attributes=batches.CONTROL))
        assert summary["controlType"] == name
        assert "coordinatorEpoch" not in summary

    @pytest.mark.parametrize("content", [b"", b"\x80" * 40, record(b"", b"")])
    def test_a_marker_that_cannot_be_read_has_no_type(self, content):
        (summary,) = read(batch([content], attributes=batches.CONTROL))
        assert summary["controlType"] is None
        assert summary["crcValid"] is True


class TestOldMessages:
    @pytest.mark.parametrize(
        ("magic", "timestamp", "type_"), [(0, -1, "NoTimestampType"), (1, 1_700_000_000_000, "CreateTime")]
    )
    def test_every_header_field(self, magic, timestamp, type_):
        data = message(b"key", b"value", magic=magic, offset=12)
        assert read(data) == [
            {
                "status": "ok",
                "baseOffset": 12,
                "lastOffset": 12,
                "batchLength": len(data) - 12,
                "sizeInBytes": len(data),
                "magic": magic,
                "crc": int.from_bytes(data[12:16], "big"),
                "crcValid": True,
                "compressionType": "none",
                "timestampType": type_,
                "isTransactional": False,
                "isControlBatch": False,
                "baseTimestamp": timestamp,
                "maxTimestamp": timestamp,
                "producerId": -1,
                "producerEpoch": -1,
                "baseSequence": -1,
                "recordsCount": 1,
            }
        ]

    def test_a_message_set_is_one_summary_a_message(self):
        data = b"".join(message(None, b"v", offset=offset) for offset in (5, 6, 9))
        assert [summary["lastOffset"] for summary in read(data)] == [5, 6, 9]

    @pytest.mark.parametrize(("magic", "offset", "first"), [(0, 42, 0), (1, 42, 40), (1, 0, 0)])
    def test_the_content_of_a_compressed_wrapper_shows_how_many_messages_it_holds(self, magic, offset, first):
        inner = [message(b"k", b"v", magic=magic, offset=at) for at in range(3)]
        (summary,) = read(wrapper(inner, magic=magic, offset=offset))
        assert summary["compressionType"] == "gzip"
        assert (summary["recordsCount"], summary["baseOffset"], summary["lastOffset"]) == (3, first, offset)

    @pytest.mark.parametrize(
        "inner",
        [
            [],
            [message(b"k", b"v")[:-1]],
            [message(b"k", b"v", offset=50)],
            [wrapper([message(b"k", b"v")])],
            [b"\0" * 40],
        ],
    )
    def test_a_wrapper_whose_content_cannot_be_read_does_not_show_it(self, inner):
        (summary,) = read(wrapper(inner, offset=42))
        assert (summary["recordsCount"], summary["baseOffset"], summary["lastOffset"]) == (None, None, 42)

    @pytest.mark.parametrize(("magic", "offset", "first"), [(0, 42, 0), (1, 42, 41), (1, 0, 0)])
    def test_a_partial_message_at_its_end_does_not_count(self, magic, offset, first):
        inner = [message(b"k", b"v", magic=magic, offset=at) for at in range(3)]
        (summary,) = read(wrapper([*inner[:2], inner[2][:-1]], magic=magic, offset=offset))
        assert (summary["recordsCount"], summary["baseOffset"], summary["lastOffset"]) == (2, first, offset)

    def test_a_wrapper_that_fails_its_checksum_is_not_opened(self):
        (summary,) = read(damaged(wrapper([message(b"k", b"v")], offset=42)))
        assert (summary["recordsCount"], summary["baseOffset"], summary["crcValid"]) == (None, None, False)

    def test_wrappers_share_what_a_frame_may_cost(self):
        one = wrapper([message(b"k", bytes(1000))] * 10)
        data = one * 3
        found = summarise(data, 0, len(data), Budget(size=25_000))
        assert [summary["recordsCount"] for summary in found] == [10, 10, None]

    @pytest.mark.parametrize(("magic", "unused"), [(0, range(3, 8)), (1, range(4, 8))])
    def test_bits_that_no_release_uses_are_stated(self, magic, unused):
        for bit in range(3, 8):
            (summary,) = read(message(b"k", b"v", magic=magic, attributes=1 << bit if bit < 7 else -(1 << 7)))
            assert summary.get("unknownAttributes", 0) == (1 << bit if bit in unused else 0)

    def test_log_append_time_of_v1(self):
        (summary,) = read(message(b"k", b"v", attributes=batches.LOG_APPEND_TIME))
        assert summary["timestampType"] == "LogAppendTime"

    @pytest.mark.parametrize("magic", [0, 1])
    def test_a_wrong_checksum(self, magic):
        assert read(damaged(message(b"k", b"v", magic=magic)))[0]["crcValid"] is False


class TestTheEndOfAFetch:
    """Brokers fill the fetch size to the last byte: the last batch may be cut off anywhere, which is legal."""

    WHOLE = batch(RECORDS, base_offset=1)
    NEXT = batch(RECORDS, base_offset=3, producer=(4711, 3, 17))

    @pytest.mark.parametrize("next_", [NEXT, message(b"k" * 30, b"v" * 30), wrapper([message(b"k", b"v")] * 2)])
    def test_a_batch_cut_off_at_any_byte_is_partial(self, next_):
        for cut in range(1, len(next_)):
            assert statuses(self.WHOLE + next_[:cut]) == ["ok", "partial"]

    def test_a_partial_batch_gives_what_its_header_states(self):
        partial = read(self.WHOLE + self.NEXT[:61])[1]
        assert (partial["status"], partial["baseOffset"], partial["producerId"]) == ("partial", 3, 4711)
        assert partial["sizeInBytes"] == len(self.NEXT)
        assert partial["crcValid"] is None

    def test_less_than_a_header_gives_only_its_size(self):
        assert read(self.NEXT[:60]) == [{"status": "partial", "magic": 2, "sizeInBytes": 60}]
        assert read(self.NEXT[:16]) == [{"status": "partial", "magic": None, "sizeInBytes": 16}]

    def test_a_partial_control_batch_has_no_type(self):
        (summary,) = read(control(1)[:-1])
        assert summary["isControlBatch"]
        assert "controlType" not in summary


class TestCorrupt:
    @pytest.mark.parametrize("size", [0, -1, -(2**31), 13, 48])
    def test_a_size_too_small_for_a_header(self, size):
        data = bytearray(batch(RECORDS))
        struct.pack_into(">i", data, 8, size)
        assert read(bytes(data)) == [{"status": "corrupt", "magic": 2, "sizeInBytes": len(data)}]

    @pytest.mark.parametrize(("magic", "size"), [(0, 13), (1, 21)])
    def test_a_size_too_small_for_an_old_message(self, magic, size):
        data = bytearray(message(b"k", b"v", magic=magic))
        struct.pack_into(">i", data, 8, size)
        assert statuses(bytes(data)) == ["corrupt"]

    @pytest.mark.parametrize("magic", [3, -1, 127])
    def test_an_unknown_magic(self, magic):
        data = batch(RECORDS, magic=magic)
        assert read(data) == [{"status": "corrupt", "magic": magic, "sizeInBytes": len(data)}]

    def test_a_size_beyond_the_field_is_a_partial_batch(self):
        data = bytearray(batch(RECORDS))
        struct.pack_into(">i", data, 8, 2**31 - 1)
        assert statuses(bytes(data)) == ["partial"]

    def test_what_stood_before_it_stays(self):
        data = batch(RECORDS) + batch(RECORDS, magic=5) + batch(RECORDS)
        assert statuses(data) == ["ok", "corrupt"]


def test_an_empty_field_has_no_batches():
    assert read(b"") == []


def test_mixed_formats_in_one_field():
    data = message(b"k", b"v", magic=0) + message(b"k", b"v") + batch(RECORDS)
    assert [summary["magic"] for summary in read(data)] == [0, 1, 2]


def test_more_batches_than_the_limit_end_in_one_span_for_the_rest(monkeypatch):
    monkeypatch.setattr(limits, "MAX_BATCHES_PER_FIELD", 3)
    one = message(b"k", b"v")
    assert statuses(one * 3) == ["ok"] * 3
    assert statuses(one * 5) == ["ok"] * 3 + ["skipped"]
    assert read(one * 5)[-1] == {"status": "skipped", "magic": None, "sizeInBytes": 2 * len(one)}
