"""What applications ask of MongoDB, and what becomes of their cursors; asked of hand-made rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

from pipeline.dashboard.queries import mongodb
from pipeline.dashboard.queries.scope import Scope
from pipeline.dashboard.sql import connect
from pipeline.tables import DUPLICATE_FLOWS, MONGO_COMMANDS
from tests.pipeline.dashboard.conftest import at
from tests.pipeline.rows import row, write

DAY = Scope(at(0), at(100))


def asked(seconds: float, command: str, **values: Any) -> dict[str, Any]:
    usual = {
        "application": "shop", "server": "s:1", "database": "d", "collection": "c", "ok": True, "latency_us": 1000,
        "driver": "PyMongo|x", "driver_version": "4|",
    }  # fmt: skip
    return row(
        MONGO_COMMANDS, exchange_id=f"{command}{seconds}", ts=at(seconds), command=command, **{**usual, **values}
    )


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    folder = tmp_path_factory.mktemp("mongodb")
    write(folder, MONGO_COMMANDS, [
        asked(1, "find", cursor_left=7), asked(2, "getMore", cursor_id=7, cursor_left=7),
        asked(3, "getMore", cursor_id=7, cursor_left=0),
        asked(4, "find", cursor_left=8), asked(5, "killCursors", cursors_killed=[8]),
        asked(6, "find", cursor_left=9, application="reports"),
        asked(7, "getMore", cursor_id=9, cursor_left=9, application="reports", is_awaiting=True, latency_us=9_000_000),
        asked(8, "getMore", cursor_id=10, cursor_left=10, application=None),
        asked(9, "find", cursor_left=11), asked(10, "getMore", cursor_id=11, ok=False, error_code=43,
              error_name="CursorNotFound"),
        asked(11, "find", cursor_left=0, latency_us=500_000),
        asked(12, "find", cursor_left=7, server="other:1"),
        asked(13, "insert", write_errors=2, error_code=11000, error_name="DuplicateKey", documents_in=3),
        asked(14, "find", cursor_left=99, connection_id="copy"),
    ])  # fmt: skip
    write(folder, DUPLICATE_FLOWS, [row(DUPLICATE_FLOWS, connection_id="copy", hour=at(0).replace(minute=0))])
    with connect(folder) as connection:
        yield connection


def test_a_cursor_is_read_to_its_end_killed_failed_or_open(lake: duckdb.DuckDBPyConnection) -> None:
    names = ("application", "opened", "exhausted", "killed", "failed", "open", "opened_before", "longest_open")
    assert [tuple(r[name] for name in names) for r in mongodb.cursors(lake, DAY)] == [
        ("shop", 4, 1, 1, 1, 1, 0, 88.0),
        ("reports", 1, 0, 0, 0, 1, 0, 94.0),
        (mongodb.UNKNOWN, 0, 0, 0, 0, 1, 1, None),
    ]
    assert [(r["cursor"], r["server"], r["reads"]) for r in mongodb.open_cursors(lake, DAY)] == [
        ("10", "s:1", 1), ("9", "s:1", 1), ("7", "other:1", 0),
    ]  # fmt: skip


def test_applications_and_commands_are_counted_once(lake: duckdb.DuckDBPyConnection) -> None:
    shop, reports, unknown = mongodb.applications(lake, DAY)
    assert (shop["application"], shop["commands"], shop["errors"], shop["drivers"]) == ("shop", 10, 2, ["PyMongo|x 4"])
    assert (reports["commands"], unknown["application"]) == (2, mongodb.UNKNOWN)
    found = {(r["application"], r["command"]): r for r in mongodb.commands(lake, DAY)}
    assert (found["shop", "find"]["commands"], found["shop", "find"]["max_us"]) == (5, 500_000)
    assert found["reports", "getMore"]["max_us"] is None  # it waits by design
    assert sum(r["commands"] for r in found.values()) == sum(r["commands"] for r in (shop, reports, unknown))


def test_slow_ones_do_not_wait_by_design_and_errors_have_their_names(lake: duckdb.DuckDBPyConnection) -> None:
    assert mongodb.slow(lake, DAY, 1)[0]["exchange_id"] == "find11"
    assert [(r["command"], r["error_name"], r["commands"], r["write_errors"]) for r in mongodb.errors(lake, DAY)] == [
        ("getMore", "CursorNotFound", 1, 0),
        ("insert", "DuplicateKey", 1, 2),
    ]
