"""What happened on one connection around a moment? A small lake with a busy connection among others."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

from pipeline.dashboard.queries.traffic import exchanges
from pipeline.dashboard.queries.traffic.sequence import around, exchange_before
from pipeline.dashboard.sql import connect
from pipeline.tables import EXCHANGES, GAPS, PENDING_EXCHANGES, TOPICS
from tests.pipeline.dashboard.conftest import at
from tests.pipeline.rows import row, write


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    folder = tmp_path_factory.mktemp("connection")
    ours = [
        row(
            EXCHANGES,
            exchange_id=f"{n:02}",
            connection_id="ours",
            api_name=("Fetch", "Heartbeat")[n % 2],
            ts=at(n),
            request_ts=at(n),
            request_size=1,
            request_status="ok",
        )
        for n in range(40)
    ]
    others = [row(EXCHANGES, exchange_id=f"o{n}", connection_id="other", ts=at(n), api_name="Fetch") for n in range(40)]
    far = row(EXCHANGES, exchange_id="far", connection_id="ours", ts=at(7200), api_name="Fetch")
    write(folder, EXCHANGES, [*ours, *others, far])
    write(folder, GAPS, [row(GAPS, connection_id=name, ts=at(20.5)) for name in ("ours", "other")])
    waits = {"api_name": "Fetch", "size": 9, "decode_status": "ok"}
    write(
        folder, PENDING_EXCHANGES,
        [
            row(PENDING_EXCHANGES, exchange_id="w", connection_id=name, ts=at(39.5), **waits)
            for name in ("ours", "other")
        ],
    )  # fmt: skip
    write(folder, TOPICS, [])
    with connect(folder) as connection:
        yield connection


def test_what_is_around_a_moment_and_the_way_to_the_rest(lake: duckdb.DuckDBPyConnection) -> None:
    part = around(lake, "ours", at(20), most=8)
    assert [each["exchange_id"] for each in part.exchanges] == [f"{n}" for n in range(18, 26)]
    assert [loss["ts"] for loss in part.losses] == [at(20.5)]
    assert (part.earlier, part.later) == (at(18), at(25))


def test_all_is_reached_by_going_on(lake: duckdb.DuckDBPyConnection) -> None:
    seen: set[str] = set()
    moment = at(0)
    while True:
        part = around(lake, "ours", moment, most=8)
        seen |= {each["exchange_id"] for each in part.exchanges}
        if part.later is None:
            break
        moment = part.later
    assert seen == {*(f"{n:02}" for n in range(40)), "far", "w"}


def test_what_waits_still_stands_behind_the_last(lake: duckdb.DuckDBPyConnection) -> None:
    part = around(lake, "ours", at(7200))
    assert [(each["exchange_id"], each["status"]) for each in part.exchanges[-2:]] == [
        ("far", "paired"),
        ("w", "pending"),
    ]


def test_a_connection_that_is_not_there_is_empty(lake: duckdb.DuckDBPyConnection) -> None:
    assert around(lake, "nobody", at(0)).exchanges == []


def test_an_exchange_is_compared_with_the_one_of_its_api_before_it(lake: duckdb.DuckDBPyConnection) -> None:
    def before(name: str) -> str | None:
        found = exchanges.one(lake, name)
        assert found is not None
        return exchange_before(lake, found)

    assert (before("06"), before("05"), before("00"), before("far")) == ("04", "03", None, "38")
