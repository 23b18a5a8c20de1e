"""Do the plain reader and the kernel find the same in a records field? What both tests and oracle compare."""

from __future__ import annotations

from decoder.kafka.kernel.records import RecordColumns, read_columns
from decoder.kafka.records.compression import Budget
from decoder.kafka.records.iteration import RecordsResult, read_records
from decoder.kafka.records.text import java_text


def column_facts(columns: RecordColumns) -> list[tuple]:
    """Each row, with the bytes that it points to."""
    facts = []
    for row in range(len(columns)):
        count = int(columns.header_count[row])
        first = (columns.bytes_at(row, "header_key"), columns.bytes_at(row, "header_value")) if count else None
        facts.append((
            int(columns.offset[row]), int(columns.timestamp[row]), int(columns.sequence[row]),
            columns.bytes_at(row, "key"), columns.bytes_at(row, "value"), count, first,
        ))  # fmt: skip
    return facts


def plain_facts(result: RecordsResult) -> list[tuple]:
    """The same of the plain reader's records; a header key as it would be if it were replaced."""
    return [
        (
            record.offset, record.timestamp, record.sequence, record.key, record.value, len(record.header_keys),
            (record.header_keys[0].encode(), record.header_values[0]) if record.header_keys else None,
        )
        for record in result.records
    ]  # fmt: skip


def read_both(field: bytes, *, budget: Budget | None = None, removed: bool = False) -> RecordsResult:
    """Read a field that lies somewhere in a frame with both readers, check that they agree, and return one's result."""
    frame = b"\xee" * 5 + field + b"\xee" * 9
    mine, yours = (budget.copy(), budget.copy()) if budget else (None, None)
    result = read_records(frame, 5, 5 + len(field), payload=True, budget=mine, removed=removed)
    columns = read_columns(frame, 5, 5 + len(field), budget=yours, removed=removed)
    assert columns.problems == result.problems
    facts = [(*row[:6], row[6] and (java_text(row[6][0]).encode(), row[6][1])) for row in column_facts(columns)]
    assert facts == plain_facts(result)
    for row, record in enumerate(result.records):
        assert (columns.key_size[row], columns.value_size[row]) == (
            -1 if record.key_size is None else record.key_size,
            -1 if record.value_size is None else record.value_size,
        )
    return result
