"""Sampled hours that are derived again are what is; rows that all tables have lost together are missed."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pipeline.analysis.fit import schema_of
from pipeline.quality.reconcile import asked_here
from pipeline.quality.rederive import READS, derived_again, sampled_hours
from pipeline.tables import DUPLICATE_FLOWS, Table
from tests.pipeline.quality.test_relations import base

Tables = Mapping[str, pa.Table]


def differing(tables: Tables) -> dict[str, tuple[int, int]]:
    whole = {
        table.full_name: tables.get(table.full_name, schema_of(table).empty_table())
        for table in (*READS, DUPLICATE_FLOWS)
    }
    with asked_here(whole) as ask:
        hours = sampled_hours(ask, "seed")
        found = [one for hour in hours for one in derived_again(ask, hour)]
    assert {one.table.full_name for one in found} == {table.full_name for table in READS} - {
        "silver.exchanges",
        "bronze.frames",
    }
    return {one.table.full_name: (one.expected, one.found) for one in found if one.expected != one.found}


def test_what_stands_follows_from_the_exchanges() -> None:
    assert differing(base()) == {}


def less(rows: pa.Table) -> pa.Table:
    return rows.slice(3)


def more(rows: pa.Table) -> pa.Table:
    return pa.concat_tables([rows, rows.slice(0, 3)])


@pytest.mark.parametrize("table", READS[2:], ids=lambda table: table.full_name)
@pytest.mark.parametrize("change", [less, more])
def test_rows_that_are_missing_or_too_many_are_counted(table: Table, change: Callable[[pa.Table], pa.Table]) -> None:
    found = differing({**base(), table.full_name: change(base()[table.full_name])})
    assert found.keys() == {table.full_name}
    expected, held = found[table.full_name]
    assert expected - held == 3


def test_commits_that_all_tables_have_lost_are_missed() -> None:
    """Each table agrees with the others; the bodies tell."""
    lost = {
        name: rows.filter(pc.not_equal(rows.column("kind"), "committed"))
        for name, rows in base().items()
        if name in ("silver.offset_events", "gold.offset_timeline")
    }
    assert differing({**base(), **lost}).keys() == {"silver.offset_events"}


def test_a_lake_without_exchanges_has_no_hour() -> None:
    with asked_here({table.full_name: schema_of(table).empty_table() for table in (*READS, DUPLICATE_FLOWS)}) as ask:
        assert sampled_hours(ask, "seed") == []
