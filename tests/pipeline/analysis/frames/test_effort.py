"""The compiled kernel is loaded where it pays: by bytes that say something, and by frames."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from pipeline.analysis.frames.effort import KERNEL_AFTER, KERNEL_AFTER_BYTES, Effort, bytes_to_walk, pays_for_kernel
from pipeline.arrow import arrow_schema
from pipeline.embedded import diagnosis
from pipeline.tables import FRAMES, LANDING_COLUMNS
from tests.decoder.kafka.encode import response
from tests.pipeline.rows import row


def landed(*frames: bytes, **given: Any) -> pa.Table:
    usual = {"protocol": "kafka", "direction": "response", "api_key": 3, "api_version": 8, "flags": 0}
    rows = [row(FRAMES, frame=frame, seq=seq, **{**usual, **given}) for seq, frame in enumerate(frames)]
    return pa.Table.from_pylist(rows, arrow_schema(LANDING_COLUMNS))


def test_a_few_large_frames_are_as_much_work_as_many_small_ones() -> None:
    large = b"\x01" * (KERNEL_AFTER_BYTES // 4)
    assert not pays_for_kernel(landed(large, large, large))
    assert pays_for_kernel(landed(large, large, large, large))
    assert pays_for_kernel(landed(*[b"\x01"] * KERNEL_AFTER))
    assert not pays_for_kernel(landed(*[b"\x01"] * (KERNEL_AFTER - 1)))


def test_records_that_were_overwritten_are_no_work() -> None:
    assert not pays_for_kernel(landed(bytes(2 * KERNEL_AFTER_BYTES)))


def test_numbers_that_are_zero_are_work() -> None:
    assert pays_for_kernel(landed((bytes(15) + b"\x01") * (KERNEL_AFTER_BYTES // 16)))


@pytest.mark.parametrize("begin", [0, 1, 2])
def test_only_the_rows_of_a_slice_count(begin: int) -> None:
    rows = landed(b"a", b"bb" + bytes(16), b"ccc")
    assert bytes_to_walk(rows.slice(begin)) == sum((1, 2, 3)[begin:])
    assert bytes_to_walk(rows.slice(3)) == 0
    assert bytes_to_walk(pa.concat_tables([rows, rows.slice(begin)])) == 6 + sum((1, 2, 3)[begin:])


def test_a_reader_adds_up_what_it_was_given() -> None:
    effort = Effort()
    for _ in range(3):
        effort.add(landed(b"\x01" * 10))
    assert (effort.frames, effort.bytes_to_walk) == (3, 30)
    assert effort.pays(after_frames=3)
    assert effort.pays(after_frames=4, after_bytes=30)
    assert not effort.pays(after_frames=4, after_bytes=31)


def test_six_large_metadata_responses_are_read_by_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    partitions = [{"partitionIndex": number, "leaderId": 1, "replicaNodes": [1, 2, 3]} for number in range(24)]
    topics = [{"name": f"topic-{number:04}-of-many", "partitions": partitions} for number in range(1_500)]
    rows = landed(*[response(3, 8, {"topics": topics})] * 6)
    chosen: list[bool] = []
    plainly = diagnosis.decode_batch

    def decode(codec: Any, batch: pa.RecordBatch, *, by_kernel: bool) -> Any:
        chosen.append(by_kernel)
        return plainly(codec, batch.slice(0, 1), by_kernel=False)

    monkeypatch.setattr(diagnosis, "decode_batch", decode)
    assert diagnosis.decoded(rows).column("decode_status").to_pylist() == ["ok"]
    assert chosen == [bytes_to_walk(rows) >= KERNEL_AFTER_BYTES] == [True]
