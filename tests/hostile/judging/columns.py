"""Rows whose columns state what no agent would write: ends of each type, null, names, times that go backwards."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from random import Random
from typing import Any

import pyarrow as pa

from pipeline.lake.arrow import arrow_array, arrow_type
from pipeline.tables import Column
from tests.hostile.judging.bodies import EXTREMES, NAMES

_DAYS = ("1970-01-01", "1972-02-29", "2000-02-29T23:59:59", "2026-03-29T01:30:00", "2038-01-19T03:14:08",
         "2100-03-01", "2199-12-31T23:59:59")  # fmt: skip
TIMES = tuple(int(datetime.fromisoformat(day).replace(tzinfo=timezone.utc).timestamp()) * 1_000_000 for day in _DAYS)
"""Times (µs) at the ends of what the agent lets pass (1970 to 2199), leap days and jumps of clocks."""
_INT32 = (0, 1, -1, 2, 2**31 - 1, -(2**31), 65_535, 9092)
_BODIES = frozenset({"header", "body", "embedded", "record_batches", "request_body", "response_body",
                     "request_embedded", "response_embedded", "request_header", "response_header"})  # fmt: skip
"""Texts of JSON are changed by tests.hostile.judging.bodies."""
_FIXED = frozenset({"date", "frame", "protocol", "direction", "status", "decode_status", "codec_version",
                    "payload_policy", "error_codes", "error_names"})  # fmt: skip
"""What CHECK constraints or the reader of landing files hold to."""


def _values(column: Column, own: Sequence[Any]) -> Sequence[Any]:
    if column.type == "timestamp":
        return TIMES
    if column.type == "bigint":
        return [one for one in EXTREMES if one >= 0] if column.name in ("latency_us", "service_us") else EXTREMES
    if column.type == "int":
        return _INT32
    return (*NAMES[:-1], *own[:3]) if column.type == "string" else ()


def mutated(
    source: Random, rows: pa.Table, columns: Sequence[Column], rate: float, *, is_landed: bool = False
) -> pa.Table:
    """Rows in which some columns have other values: one value everywhere, one of all, or null where that may be.

    Args:
        source: of chance.
        rows: with these columns.
        columns: their registry.
        rate: part of the rows that are changed.
        is_landed: whether columns keep their identity, as the reader of landing files sees to it.
    """
    kept = {"connection_id", "seq", "exchange_id"} if is_landed else set()
    candidates = [one for one in columns if one.name not in _BODIES | _FIXED | kept and one.name in rows.column_names]
    for column in source.sample(candidates, source.choice((1, 1, 2, 4))):
        kind = arrow_type(column.type)
        is_time = column.type == "timestamp"
        held = rows.column(column.name)
        own = (held.cast(pa.int64()) if is_time else held).to_pylist()
        values = list(_values(column, own))
        if column.nullable:
            values.append(None)
        if not values:
            continue
        one = source.choice(values)
        is_one = source.random() < 0.5
        changed = [(one if is_one else source.choice(values)) if source.random() < rate else value for value in own]
        if is_time and source.random() < 0.4:
            changed = [
                None if value is None else max(0, min(value + source.choice((-1, 0, 1)) * 3_600_000_000, TIMES[-1]))
                for value in own
            ]
        index = rows.schema.get_field_index(column.name)
        rows = rows.set_column(index, rows.schema.field(index), arrow_array(changed, kind))
    return rows
