"""The lake that the page is measured on is one that the page reads: ids of their own, times in their day."""

from __future__ import annotations

from pathlib import Path

from benchmarks.big_lake import Plan, make
from pipeline.dashboard.queries.scope import Scope, ask_rows, extent
from pipeline.dashboard.queries.traffic.exchange_search import Search, search
from pipeline.dashboard.sql import connect
from tests.pipeline.lakes import diagnosed_lake


def test_copies_have_ids_and_times_of_their_own_and_are_found_by_what_they_state(tmp_path: Path) -> None:
    small, large = tmp_path / "small", tmp_path / "large"
    diagnosed_lake(small, "version_negotiation")
    make(small, large, 500, most_a_day=3)
    with connect(small) as connection:
        rows = ask_rows(connection, "SELECT count(*) AS n FROM silver.exchanges")[0]["n"]
    with connect(large) as connection:
        (counted,) = ask_rows(
            connection,
            "SELECT count(*) AS n, count(DISTINCT exchange_id) AS ids, count(DISTINCT date) AS days, "
            "bool_and(date = ts::DATE) AS fits FROM silver.exchanges",
        )
        there = extent(connection)
        assert there is not None
        found = search(connection, Scope(there.first, there.last), Search(), seconds=60)
    plan = Plan.of(500, rows, 3)
    assert counted == {"n": counted["ids"], "ids": plan.days * plan.a_day * rows, "days": plan.days, "fits": True}
    assert plan.days > 1
    assert (found.is_all, found.counted) == (True, counted["n"])
