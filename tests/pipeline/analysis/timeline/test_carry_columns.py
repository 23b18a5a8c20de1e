"""The compiled pass gives what the plain one does, of any rows."""

from __future__ import annotations

import random
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pipeline.analysis.hours import HOUR_US, first_hour
from pipeline.analysis.timeline import rows as timeline_rows
from pipeline.analysis.timeline.carry import EVENT, KNOWN, MARKER, ORDER, PRODUCED, Pass
from pipeline.analysis.timeline.carry_columns import timelines
from pipeline.lake.arrow import arrow_type
from pipeline.tables import OFFSET_STATE, OFFSET_TIMELINE

LOOKBACK = timedelta(hours=2)
_EXTREMES = (0, 1, -1, 2**63 - 1, -(2**63), 2**62, -(2**62))
_KINDS = ("produced", "fetched", "committed", "txn_committed", "txn_applied", "txn_discarded", "listed")
_TYPES = {column.name: arrow_type(column.type) for column in OFFSET_TIMELINE.columns}
_TYPES |= {
    "at": pa.int64(),
    "until": pa.int64(),
    "seen_hour": pa.int64(),
    "what": pa.int32(),
    "event_ordinal": pa.int32(),
}
_MADE = ("lag", "lag_read_committed", "lag_seconds", "lost_to_retention", "ordinal", "last_stable_ts")


def some_rows(seed: int, *, offsets: tuple[int, ...] = (), count: int = 400) -> pa.Table:
    """Rows of a few partitions, groups and clients in the order in which the pass wants them."""
    chance = random.Random(seed)

    def offset() -> int:
        return chance.choice(offsets) if offsets else chance.randrange(30)

    found: list[dict[str, Any]] = []
    for number in range(count):
        ts = 50 * HOUR_US + chance.randrange(40) * HOUR_US // 8
        row: dict[str, Any] = {
            "cluster": chance.choice((None, "one", "two")), "topic": chance.choice("ab"),
            "partition": chance.randrange(2), "incarnation": chance.choice((0, 0, 0, 1)), "ts": ts,
            "what": chance.choices((PRODUCED, MARKER, KNOWN, EVENT), (3, 2, 1, 9))[0], "exchange_id": f"{number:04}",
        }  # fmt: skip
        if row["what"] == PRODUCED:
            row |= {"at": offset(), "until": offset()}
        elif row["what"] == MARKER:
            row |= {"at": offset(), "seen_hour": first_hour(ts)}
        else:
            row |= {
                "kind": chance.choice(_KINDS), "group_id": chance.choice(("", "g", "h")),
                "client_id": chance.choice((None, "c", "d")), "event_ordinal": chance.randrange(2),
            }  # fmt: skip
            row |= {name: offset() for name in OFFSET_STATE if chance.random() < 0.4}
        found.append(row)
    found.sort(key=lambda row: [(row.get(name) is not None, row.get(name)) for name in ORDER])
    names = dict.fromkeys((*_TYPES, *OFFSET_STATE))
    types = {name: pa.int64() if name == "last_stable_ts" else _TYPES[name] for name in names}
    return pa.table(
        {name: pa.array([row.get(name) for row in found], types[name]) for name in names if name not in _MADE[:5]}
    )


def both(rows: pa.Table) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    plain = Pass(LOOKBACK)
    shuffled = random.Random(rows.num_rows).sample(range(rows.num_rows), rows.num_rows)
    return values(plain.timeline(one) for one in rows.to_batches()), values(
        timelines(rows.take(pa.array(shuffled)), np.argsort(shuffled), LOOKBACK)
    )


def values(found: Iterable[pa.RecordBatch]) -> list[dict[str, Any]]:
    """Of each row, with a time as a number: it may be any."""
    rows = pa.Table.from_batches(list(found))
    place = rows.schema.get_field_index("last_stable_ts")
    found_rows: list[dict[str, Any]] = rows.set_column(
        place, "last_stable_ts", rows.column(place).cast(pa.int64())
    ).to_pylist()
    return found_rows


@pytest.mark.parametrize("seed", range(40))
def test_any_rows(seed: int) -> None:
    plain, compiled = both(some_rows(seed))
    assert sum(row["lag"] is not None for row in plain) > 20
    assert compiled == plain


@pytest.mark.parametrize("seed", range(40))
def test_offsets_are_any_64_bits(seed: int) -> None:
    plain, compiled = both(some_rows(seed, offsets=_EXTREMES))
    assert compiled == plain


def test_many_rows_take_the_compiled_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = some_rows(1, count=timeline_rows.COMPILING_AFTER)
    monkeypatch.setattr(timeline_rows, "Pass", None)
    compiled = values(timeline_rows.passed(rows, np.arange(rows.num_rows), LOOKBACK))
    assert compiled == both(rows)[0]
