"""Where and when each record of a ``records`` field is: columns instead of objects, ten million records a second.

Compiled with numba for format v2. Whatever is not exactly as it should be (a length that lies, a record too many, an
old format) the kernel leaves to the plain reader, decoder.kafka.records.iteration: it alone decides what is an error.
Importing this module compiles the kernel once for each checkout.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from decoder import limits
from decoder.errors import DecodeError
from decoder.kafka.records.batches import BatchSpan, batch_spans
from decoder.kafka.records.compression import Budget
from decoder.kafka.records.iteration import (
    MAX_SEQUENCE,
    BatchHeader,
    BatchProblem,
    Record,
    check_span,
    read_batch,
    read_header,
    records_section,
)
from decoder.kernel import types
from decoder.kernel.compiled import compiled

SMALLEST_RECORD = 7
"""Length, attributes, timestamp and offset delta, key and value length, number of headers: a byte each."""

_INT64_COLUMNS = ("offset", "timestamp")
_INT32_COLUMNS = (
    "sequence", "key_start", "key_size", "value_start", "value_size", "header_count",
    "header_key_start", "header_key_size", "header_value_start", "header_value_size", "buffer",
)  # fmt: skip
_BYTES = types.Array(types.uint8, 1, "C", readonly=True)
_INT32S, _INT64S = types.Array(types.int32, 2, "C"), types.Array(types.int64, 2, "C")
_NUMBER = types.UniTuple(types.int64, 2)
_FIRST_HEADER = _INT32_COLUMNS.index("header_key_start")
_BUFFER = _INT32_COLUMNS.index("buffer")
_NOT_MINE = -1


@dataclass(slots=True)
class RecordColumns:
    """The records of one records field, a row each, in the order of the bytes.

    Starts are positions in ``buffers[buffer[row]]``, sizes are in bytes, -1 is null; what is null has a start too.

    Attributes:
        offset, timestamp, sequence: as of :class:`~decoder.kafka.records.iteration.Record`.
        key_start, key_size, value_start, value_size: where key and value are.
        header_count: number of headers.
        header_key_start, header_key_size, header_value_start, header_value_size: the first header; zeros without one.
        buffer: which of the buffers.
        buffers: the frame, then what was decompressed or copied.
        problems: as of :class:`~decoder.kafka.records.iteration.RecordsResult`.
        fallbacks: batches that the plain reader read.
    """

    offset: NDArray[np.int64]
    timestamp: NDArray[np.int64]
    sequence: NDArray[np.int32]
    key_start: NDArray[np.int32]
    key_size: NDArray[np.int32]
    value_start: NDArray[np.int32]
    value_size: NDArray[np.int32]
    header_count: NDArray[np.int32]
    header_key_start: NDArray[np.int32]
    header_key_size: NDArray[np.int32]
    header_value_start: NDArray[np.int32]
    header_value_size: NDArray[np.int32]
    buffer: NDArray[np.int32]
    buffers: list[bytes] = field(repr=False)
    problems: list[BatchProblem] = field(default_factory=list)
    fallbacks: int = 0

    def __len__(self) -> int:
        return len(self.offset)

    def bytes_at(self, row: int, what: str) -> bytes | None:
        """The bytes of ``what`` (``key``, ``value``, ``header_key`` or ``header_value``) in a row; None is null."""
        start, size = int(getattr(self, f"{what}_start")[row]), int(getattr(self, f"{what}_size")[row])
        return None if size < 0 else self.buffers[self.buffer[row]][start : start + size]


def read_columns(
    data: bytes, start: int, end: int, *, removed: bool = False, budget: Budget | None = None
) -> RecordColumns:
    """All records of the records field ``data[start:end]``. Arguments as for ``record_iteration.read_records``.

    Never raises, whatever the bytes. The columns hold exactly the records, and the problems, that the plain reader
    finds. Memory: about 60 bytes a record beside the decompressed bytes.
    """
    reader = _ColumnReader(data, budget or Budget(), removed)
    for span in batch_spans(data, start, end):
        reader.read(span)
    return reader.finish()


class _ColumnReader:
    """Collects the columns of one field batch by batch."""

    def __init__(self, data: bytes, budget: Budget, removed: bool) -> None:
        self._data = data
        self._frame = np.frombuffer(data, np.uint8)
        self._budget = budget
        self._removed = removed
        self._buffers = [data]
        self._longs: list[NDArray[np.int64]] = []
        self._ints: list[NDArray[np.int32]] = []
        self._problems: list[BatchProblem] = []
        self._fallbacks = 0

    def read(self, span: BatchSpan) -> None:
        budget = self._budget.copy()
        if self._fast(span, budget):
            self._budget = budget
            return
        self._fallbacks += 1  # the plain reader decides again
        records: list[Record] = []
        problem = read_batch(self._data, span, self._budget, records, payload=True, removed=self._removed)
        if problem is not None:
            self._problems.append(problem)
        self._add_plain(records)

    def _fast(self, span: BatchSpan, budget: Budget) -> bool:
        """Read one batch with the kernel; False if it is not for it."""
        if span.magic != 2 or span.status != "ok":
            return span.status == "partial"
        try:
            check_span(self._data, span, removed=self._removed)
            header = read_header(self._data, span.start)
            content, start, end = records_section(self._data, span, header, budget)
        except DecodeError:
            return False
        if header.count > min(budget.records, (end - start) // SMALLEST_RECORD):
            return False
        longs = np.empty((len(_INT64_COLUMNS), header.count), np.int64)
        ints = np.empty((len(_INT32_COLUMNS), header.count), np.int32)
        source = self._frame if content is self._data else np.frombuffer(content, np.uint8)
        buffer = 0 if content is self._data else len(self._buffers)
        headers = run_kernel(source, start, end, header, buffer, budget.headers, longs, ints)
        if headers == _NOT_MINE:
            return False
        budget.records -= header.count
        budget.headers -= headers
        if buffer:
            self._buffers.append(content)
        self._longs.append(longs)
        self._ints.append(ints)
        return True

    def _add_plain(self, records: list[Record]) -> None:
        """Records as columns; their bytes get a buffer of their own."""
        if not records:
            return
        parts: list[bytes] = []
        at = 0
        rows: list[list[int]] = []
        for record in records:
            row = [record.sequence]
            name = record.header_keys[0].encode() if record.header_keys else None
            value = record.header_values[0] if record.header_keys else None
            header: list[int] = []
            for part, into in ((record.key, row), (record.value, row), (name, header), (value, header)):
                into += [at, -1 if part is None else len(part)]
                parts.append(part or b"")
                at += len(parts[-1])
            rows.append([*row, len(record.header_keys), *(header if record.header_keys else [0] * 4)])
        buffer = len(self._buffers)
        self._buffers.append(b"".join(parts))
        self._longs.append(np.array([[r.offset for r in records], [r.timestamp for r in records]], np.int64))
        self._ints.append(np.array([[*row, buffer] for row in rows], np.int32).T)

    def finish(self) -> RecordColumns:
        longs = _joined(self._longs, len(_INT64_COLUMNS), np.int64)
        ints = _joined(self._ints, len(_INT32_COLUMNS), np.int32)
        columns: dict[str, Any] = dict(zip(_INT64_COLUMNS, longs, strict=True))
        columns.update(zip(_INT32_COLUMNS, ints, strict=True))
        return RecordColumns(**columns, buffers=self._buffers, problems=self._problems, fallbacks=self._fallbacks)


def _joined(parts: list[Any], rows: int, type_: Any) -> Any:
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts, axis=1) if parts else np.empty((rows, 0), type_)


def run_kernel(
    source: NDArray[np.uint8],
    start: int,
    end: int,
    header: BatchHeader,
    buffer: int,
    most_headers: int,
    longs: NDArray[np.int64],
    ints: NDArray[np.int32],
) -> int:
    """Fill the columns of one batch.

    Args:
        source: the bytes, read-only.
        start, end: the records in it, decompressed.
        header: of the batch.
        buffer: what to write into the column ``buffer``.
        most_headers: headers that may be read.
        longs, ints: columns in rows, each of ``header.count`` values.

    Returns:
        The number of record headers, -1 if the plain reader has to decide.
    """
    timestamp = header.max_timestamp if header.has_log_append_time else header.base_timestamp
    return int(
        _fill(
            source, start, end, header.count, header.base_offset, timestamp, header.has_log_append_time,
            header.base_sequence, buffer, most_headers, longs, ints,
        )
    )  # fmt: skip


@compiled(_NUMBER, _BYTES, types.int64, types.int64)
def _varint(source, pos, end):  # type: ignore[no-untyped-def]
    """A zigzag 32-bit varint (Cursor.varint) and the position behind it; -1 if it is not one."""
    value = 0
    for shift in range(0, 7 * limits.MAX_VARINT_BYTES, 7):
        if pos < 0 or pos >= end:
            break
        byte = np.int64(source[pos])
        pos += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > 0xFFFFFFFF:
                break
            return (value >> 1) ^ -(value & 1), pos
    return 0, -1


@compiled(_NUMBER, _BYTES, types.int64, types.int64)
def _varlong(source, pos, end):  # type: ignore[no-untyped-def]
    """A zigzag 64-bit varint (Cursor.varlong) and the position behind it; -1 if it is not one."""
    value = 0
    for shift in range(0, 7 * limits.MAX_VARLONG_BYTES, 7):
        if pos < 0 or pos >= end:
            break
        byte = np.int64(source[pos])
        pos += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return ((value >> 1) & 0x7FFFFFFFFFFFFFFF) ^ -(value & 1), pos
    return 0, -1


@compiled(_NUMBER, _BYTES, types.int64, types.int64)
def _sized(source, pos, end):  # type: ignore[no-untyped-def]
    """The size of nullable bytes and where they begin; -1 if they do not fit."""
    size, pos = _varint(source, pos, end)
    if size < -1 or size > end - pos:
        return 0, -1
    return size, pos


@compiled(
    types.int64, _BYTES, types.int64, types.int64, types.int64, types.int64, types.int64, types.boolean, types.int64,
    types.int64, types.int64, _INT64S, _INT32S, is_entry=True,
)  # fmt: skip
def _fill(  # type: ignore[no-untyped-def]  # noqa: C901, PLR0911
    source,
    start,
    end,
    count,
    base_offset,
    base_timestamp,
    is_appended,
    base_sequence,
    buffer,
    most_headers,
    longs,
    ints,
):
    """See run_kernel. One long function: the compiler keeps what it needs in registers."""
    pos = start
    all_headers = 0
    for row in range(count):
        size, pos = _varint(source, pos, end)
        if pos < 0 or size < 0 or size > end - pos:
            return _NOT_MINE
        record_end = pos + size
        timestamp, pos = _varlong(source, pos + 1, record_end)  # behind the attributes
        delta, pos = _varint(source, pos, record_end)
        key_size, key_start = _sized(source, pos, record_end)
        if key_start < 0:
            return _NOT_MINE
        value_size, value_start = _sized(source, key_start + max(0, key_size), record_end)
        if value_start < 0:
            return _NOT_MINE
        headers, pos = _varint(source, value_start + max(0, value_size), record_end)
        if pos < 0 or headers < 0 or headers > record_end - pos:
            return _NOT_MINE
        for column in range(_FIRST_HEADER, _FIRST_HEADER + 4):
            ints[column, row] = 0
        for index in range(headers):
            name_size, name_start = _sized(source, pos, record_end)
            if name_start < 0 or name_size < 0:
                return _NOT_MINE
            header_size, header_start = _sized(source, name_start + name_size, record_end)
            if header_start < 0:
                return _NOT_MINE
            pos = header_start + max(0, header_size)
            if index == 0:
                ints[_FIRST_HEADER, row] = name_start
                ints[_FIRST_HEADER + 1, row] = name_size
                ints[_FIRST_HEADER + 2, row] = header_start
                ints[_FIRST_HEADER + 3, row] = header_size
        if pos != record_end:
            return _NOT_MINE
        all_headers += headers
        longs[0, row] = base_offset + delta
        longs[1, row] = base_timestamp if is_appended else base_timestamp + timestamp
        ints[0, row] = (base_sequence + delta) & MAX_SEQUENCE if base_sequence >= 0 else -1
        ints[1, row] = key_start
        ints[2, row] = key_size
        ints[3, row] = value_start
        ints[4, row] = value_size
        ints[5, row] = headers
        ints[_BUFFER, row] = buffer
    if pos != end or all_headers > most_headers:
        return _NOT_MINE
    return all_headers
