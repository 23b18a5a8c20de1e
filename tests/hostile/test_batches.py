"""Record batches that lie about themselves: sizes, counts, formats, and too many of them."""

from __future__ import annotations

import random
import struct

import pytest

from decoder import limits
from decoder.kafka.records.batches import V2_HEADER, summarise
from tests.decoder.kafka.batches import batch, message, record, wrapper
from tests.decoder.kafka.encode import request, response
from tests.hostile.invariants import decode

PRODUCE, FETCH = 0, 1
GOOD = batch([record(b"key", b"value")] * 2, producer=(4711, 3, 0))
OLD = message(b"key", b"value")
COUNT_AT, LAST_DELTA_AT, SIZE_AT = 57, 23, 8


def in_a_fetch(records: bytes):
    partitions = [{"partitionIndex": 0, "records": records}, {"partitionIndex": 1, "records": GOOD}]
    raw = response(FETCH, 12, {"responses": [{"topic": "t", "partitions": partitions}]})
    return decode(raw, "response", FETCH, 12)


def changed(data: bytes, at: int, format_: str, value: int) -> bytes:
    copy = bytearray(data)
    struct.pack_into(format_, copy, at, value)
    return bytes(copy)


@pytest.mark.parametrize("good", [GOOD, OLD, wrapper([OLD])])
def test_any_byte_of_the_header_wrong(good):
    for at in range(min(len(good), V2_HEADER)):
        for value in (0, 1, 2, 3, 0x7F, 0x80, 0xFF, good[at] ^ 1):
            found = in_a_fetch(changed(good, at, "B", value))
            assert found.status == "ok"
            assert found.record_batches[-1]["partition"] == 1  # the neighbour is still read
            assert found.record_batches[-1]["crcValid"] is True


@pytest.mark.parametrize("size", [2**31 - 1, len(GOOD) - 11, 0, -1, -(2**31), 13])
def test_a_batch_length_beyond_or_before_its_end(size):
    found = in_a_fetch(changed(GOOD, SIZE_AT, ">i", size))
    assert found.status == "ok"
    assert found.record_batches[0]["status"] == ("partial" if size > 0 and size > len(GOOD) - 12 else "corrupt")


@pytest.mark.parametrize("count", [2**31 - 1, -1, -(2**31), 3])
def test_a_wrong_count_is_found_by_the_checksum(count):
    found = in_a_fetch(changed(GOOD, COUNT_AT, ">i", count))
    assert found.record_batches[0]["recordsCount"] == count
    assert found.record_batches[0]["crcValid"] is False


@pytest.mark.parametrize("delta", [2**31 - 1, -1, -(2**31)])
def test_a_wrong_last_offset_is_found_by_the_checksum(delta):
    found = in_a_fetch(changed(GOOD, LAST_DELTA_AT, ">i", delta))
    assert found.record_batches[0]["lastOffset"] == delta
    assert found.record_batches[0]["crcValid"] is False


def test_a_wrapper_within_a_wrapper_is_not_opened():
    nested = wrapper([OLD])
    for _ in range(50):
        nested = wrapper([nested])
    (found, _) = in_a_fetch(nested).record_batches
    assert (found["compressionType"], found["recordsCount"]) == ("gzip", None)


def test_compressed_bytes_are_not_inflated():
    bomb = batch([b"\0" * 2_000_000], attributes=1)
    assert len(bomb) < 4000
    message_ = decode(
        request(PRODUCE, 9, {"topicData": [{"name": "t", "partitionData": [{"index": 0, "records": bomb}]}]}),
        "request", None, None,
    )  # fmt: skip
    assert message_.record_batches[0]["crcValid"] is True


def test_zeros_are_one_corrupt_batch_not_many():
    assert summarise(bytes(1_000_000), 0, 1_000_000) == [{"status": "corrupt", "magic": 0, "sizeInBytes": 1_000_000}]


def test_no_more_summaries_than_the_limit():
    tiny = struct.pack(">qiIbb", 0, 14, 0, 0, 0) + b"\xff" * 8
    count = limits.MAX_BATCHES_PER_FIELD
    found = summarise(tiny * (count + 2), 0, len(tiny) * (count + 2))
    assert len(found) == count + 1
    assert found[-1] == {"status": "skipped", "magic": None, "sizeInBytes": 2 * len(tiny)}


def test_random_bytes_as_records():
    for seed in range(500):
        junk = random.Random(seed).randbytes(seed)
        found = in_a_fetch(junk)
        assert found.status == "ok"
        assert found.record_batches[-1]["crcValid"] is True
