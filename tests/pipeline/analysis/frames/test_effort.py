"""The compiled kernel is loaded where it pays: by bytes that say something, and by frames."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from pipeline.analysis.frames import effort
from pipeline.analysis.frames.effort import (
    COMPILING_AFTER,
    COMPILING_AFTER_BYTES,
    KERNEL_AFTER,
    KERNEL_AFTER_BYTES,
    Effort,
    _is_kernel_compiled,
    bytes_to_walk,
    pays_for_kernel,
)
from pipeline.embedded import diagnosis
from pipeline.lake.arrow import arrow_schema
from pipeline.tables import FRAMES, LANDING_COLUMNS
from tests.decoder.kafka.encode import response
from tests.pipeline.rows import row


def landed(*frames: bytes, **given: Any) -> pa.Table:
    usual = {"protocol": "kafka", "direction": "response", "api_key": 3, "api_version": 8, "flags": 0}
    rows = [row(FRAMES, frame=frame, seq=seq, **{**usual, **given}) for seq, frame in enumerate(frames)]
    return pa.Table.from_pylist(rows, arrow_schema(LANDING_COLUMNS))


@pytest.fixture(autouse=True)
def is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel's machine code is there."""
    monkeypatch.setattr(effort, "_is_kernel_compiled", lambda: True)


def test_what_must_be_compiled_first_pays_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(effort, "_is_kernel_compiled", lambda: False)
    assert not Effort(COMPILING_AFTER - 1, COMPILING_AFTER_BYTES - 1).pays()
    assert Effort(COMPILING_AFTER, 0).pays()
    assert Effort(0, COMPILING_AFTER_BYTES).pays()


def test_what_was_compiled_is_found_where_it_was_kept() -> None:
    import decoder.kafka.kernel.bodies  # noqa: PLC0415 - compiles
    import decoder.mongodb.kernel.messages  # noqa: F401, PLC0415

    _is_kernel_compiled.cache_clear()
    assert _is_kernel_compiled()


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
    given = Effort()
    for _ in range(3):
        given.add(landed(b"\x01" * 10))
    assert (given.frames, given.bytes_to_walk) == (3, 30)
    assert given.reaches(3, 31)
    assert given.reaches(4, 30)
    assert not given.reaches(4, 31)


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
