"""Views over rows that hold the ends of each type, null and strange names: no error, whatever is in the lake."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from pipeline.analysis.fit import fit, schema_of
from pipeline.analysis.tables import Tables
from pipeline.dashboard.sql import connect, query
from pipeline.dashboard.views import views
from pipeline.embedded.lake import write_lake
from pipeline.lake.arrow import arrow_array
from pipeline.tables import FETCH_SESSIONS, HOWS, OFFSET_TIMELINE, TABLES, Table
from tests.hostile.judging.bodies import EXTREMES, NAMES
from tests.hostile.judging.tally import Tally
from tests.hostile.page_questions import ask_everything
from tests.pipeline.rows import row, write

ROWS = 300
_LEAP_DAY = 1_835_481_600_000_000
TIMES = tuple(_LEAP_DAY + minute * 60_000_000 for minute in (0, 1, 1, 5, 30, 1439, 1440))
"""2028-02-29 and the midnight after it, µs; with rows of many years a view of each minute has millions of rows."""
_INT32 = (0, 1, -1, 2**31 - 1, -(2**31))
_KNOWN: dict[str, tuple[str, ...]] = {
    "direction": ("request", "response"), "protocol": ("kafka", "mongodb"), "severity": ("critical", "warning", "info"),
    "kind": ("committed", "fetched", "high_watermark", "appended", "assigned", "software", "ended", "begun"),
    "status": ("paired", "unanswered", "pending", "orphan_response"), "state": ("ongoing", "resolved", "unknown"),
    "decode_status": ("ok", "partial"), "links": ("[]",), "how": HOWS,
}  # fmt: skip
"""Texts that programs of ours write, by column."""


def value(source: Random, name: str, kind: str) -> Any:
    if kind.startswith("array<"):
        inner = kind.removeprefix("array<").removesuffix(">")
        return [value(source, name, inner) for _ in range(source.choice((0, 1, 3)))]
    choices: dict[str, tuple[Any, ...]] = {
        "bigint": (*EXTREMES, 5, 24), "int": (*_INT32, 0, 3), "timestamp": TIMES, "boolean": (True, False),
        "date": tuple(one // 86_400_000_000 for one in TIMES), "binary": (b"", b"\xff"),
        "double": (0.0, -1e308, 1e308, float("nan"), float("inf")), "string": (*NAMES[:-1], "orders", "billing", "c1"),
    }  # fmt: skip
    return source.choice(_KNOWN.get(name, choices[kind]))


def extreme(source: Random, table: Table) -> pa.Table:
    """Rows of a table, each column by itself, that its CHECK constraints let pass."""
    schema = schema_of(table)
    columns = {
        column.name: arrow_array(
            [
                None if column.nullable and source.random() < 0.2 else value(source, column.name, column.type)
                for _ in range(ROWS)
            ],
            schema.field(column.name).type,
        )
        for column in table.columns
    }
    tables = Tables({"rows": pa.table(columns, schema=schema)})
    try:
        checks = " AND ".join(f"(({check}) IS NOT FALSE)" for check in table.checks.values()) or "true"
        return fit(tables.table(f"SELECT * FROM rows WHERE {checks}"), table)
    finally:
        tables.close()


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source, root = Random(1), tmp_path_factory.mktemp("extreme") / "lake"
    write_lake(root, {name: extreme(source, table) for name, table in TABLES.items() if not name.startswith("ops.")})
    return root


@pytest.mark.parametrize("view", [view.name for view in views()])
def test_a_view_answers(lake: Path, view: str) -> None:
    with connect(lake) as connection:
        assert connection.sql(f"SELECT * FROM {view}").to_arrow_table().num_rows >= 0


def test_the_page_answers(lake: Path) -> None:
    tally = Tally()
    ask_everything(lake, lambda: tally.guarded("page"))
    assert not tally.sites, tally.first


def test_minutes_are_filled_for_a_week_at_most(tmp_path: Path) -> None:
    """A clock that was wrong: years are between two statements, and each minute of them would be a row."""
    stated = [
        row(OFFSET_TIMELINE, cluster="c", topic="orders", partition=0, high_watermark=5, ts=ts, exchange_id=str(ts))
        for ts in (datetime(1970, 1, 1, tzinfo=timezone.utc), datetime(2199, 12, 31, tzinfo=timezone.utc))
    ]
    write(tmp_path / "lake", OFFSET_TIMELINE, stated)
    write(tmp_path / "lake", FETCH_SESSIONS, [])
    (found,) = query(tmp_path / "lake", "SELECT count(*) AS n FROM timeline_by_minute").to_pylist()
    assert found["n"] == 7 * 24 * 60 + 1 + 1
