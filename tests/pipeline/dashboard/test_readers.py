"""A lake whose files DuckDB reads itself answers as one that it reads through Arrow."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from pipeline.dashboard.queries.scope import UnreadableError, ask
from pipeline.dashboard.sql import connect, query
from pipeline.lake.delta_reader import open_table
from pipeline.tables import EXCHANGES, FINDINGS, OFFSET_TIMELINE, TABLES, Table
from tests.pipeline.rows import T0, arrow, row, write

PLAIN, BY_ARROW = "lake", "a=b"
"""Folders: one of which DuckDB reads the files, one whose name it would take for the column of a partition."""


def _days(table: Table) -> list[dict[str, object]]:
    by_day = "date" in table.partition_by
    return [row(table, **({"date": date(2026, 3, day)} if by_day else {})) for day in (1, 2)]


@pytest.mark.parametrize("name", TABLES)
def test_both_ways_to_read_give_the_same_columns_and_rows(name: str, tmp_path: Path) -> None:
    table = TABLES[name]
    for folder in (PLAIN, BY_ARROW):
        write(tmp_path / folder, table, _days(table))
    plain, by_arrow = (open_table(str(tmp_path / folder), table) for folder in (PLAIN, BY_ARROW))
    assert plain is not None
    assert by_arrow is not None
    assert (plain.files is None, by_arrow.files is None) == (False, True)
    assert plain.schema.names == by_arrow.schema.names
    one, other = (query(tmp_path / folder, f"FROM {name} ORDER BY ALL") for folder in (PLAIN, BY_ARROW))
    assert one.schema == other.schema
    assert one.to_pylist() == other.to_pylist()
    assert one.num_rows == 2


@pytest.mark.parametrize("folder", ["a lake's", "a=b", "date=1999-01-01", "a*b?", "{a,b}", "ü 50%", 'a "b"', "$x"])
def test_a_lake_may_lie_in_any_folder(folder: str, tmp_path: Path) -> None:
    place = tmp_path / folder
    write(place, EXCHANGES, [row(EXCHANGES, exchange_id="1", ts=T0)])
    write(tmp_path / "x", EXCHANGES, [row(EXCHANGES, exchange_id="of another lake")])
    found = query(place, "SELECT exchange_id, date, ts FROM silver.exchanges WHERE date = '2026-03-01'")
    assert found.to_pylist() == [{"exchange_id": "1", "date": date(2026, 3, 1), "ts": T0}]


def test_files_from_before_a_column_was_added_have_none_in_it(tmp_path: Path) -> None:
    young, old = row(FINDINGS, finding_id="young", rule="a"), row(FINDINGS, finding_id="old", rule="b")
    whole = arrow(FINDINGS, [old])
    place = str(tmp_path / FINDINGS.path)
    write_deltalake(place, whole.drop_columns(["details", "incident_id"]))
    assert query(tmp_path, "SELECT finding_id, incident_id FROM gold.findings").to_pylist() == [
        {"finding_id": "old", "incident_id": None}
    ]
    write_deltalake(place, arrow(FINDINGS, [young | {"incident_id": "i"}]), mode="append", schema_mode="merge")
    found = query(tmp_path, "SELECT finding_id, rule, incident_id FROM gold.findings ORDER BY ALL").to_pylist()
    assert [tuple(one.values()) for one in found] == [("old", "b", None), ("young", "a", "i")]


def test_the_name_of_a_column_is_no_sql(tmp_path: Path) -> None:
    name = 'a" FROM (SELECT 1); --'
    rows = arrow(FINDINGS, [row(FINDINGS, finding_id="1")]).append_column(name, pa.array([7]))
    write_deltalake(str(tmp_path / FINDINGS.path), rows)
    found = query(tmp_path, "FROM gold.findings").to_pylist()
    assert [(one["finding_id"], one[name]) for one in found] == [("1", 7)]


def test_a_file_that_is_gone_is_an_error_of_the_query_that_reads_it(tmp_path: Path) -> None:
    write(tmp_path, FINDINGS, [row(FINDINGS)])
    write(tmp_path, OFFSET_TIMELINE, [row(OFFSET_TIMELINE)])
    connection = connect(tmp_path)
    (file,) = (tmp_path / FINDINGS.path).glob("*.parquet")
    file.unlink()
    assert connection.sql("FROM gold.offset_timeline").to_arrow_table().num_rows == 1
    with pytest.raises(UnreadableError, match=r"was rewritten meanwhile.*\(a file of it is gone\)"):
        ask(connection, "FROM gold.findings")


def test_a_day_is_told_by_the_log_not_by_chance(tmp_path: Path) -> None:
    """Rows of a day are in its folder; where the log says something else, Arrow goes by the log."""
    write(tmp_path, EXCHANGES, [row(EXCHANGES, date=date(2026, 3, 1) + timedelta(n)) for n in range(2)])
    log = next((tmp_path / EXCHANGES.path / "_delta_log").glob("*.json"))
    log.write_text(log.read_text().replace('"date":"2026-03-02"', '"date":"2026-03-09"'))
    found = query(tmp_path, "SELECT date FROM silver.exchanges ORDER BY ALL").column("date").to_pylist()
    assert found == [date(2026, 3, 1), date(2026, 3, 9)]


def test_a_file_whose_name_is_a_pattern_is_read_as_that_file(tmp_path: Path) -> None:
    write(tmp_path, FINDINGS, [row(FINDINGS, finding_id="ours")])
    (file,) = (tmp_path / FINDINGS.path).glob("*.parquet")
    log = next((tmp_path / FINDINGS.path / "_delta_log").glob("*.json"))
    log.write_text(log.read_text().replace(file.name, "part-[0].parquet"))
    file.rename(file.with_name("part-[0].parquet"))
    write(tmp_path / "other", FINDINGS, [row(FINDINGS, finding_id="no more")])
    (other,) = (tmp_path / "other" / FINDINGS.path).glob("*.parquet")
    other.rename(file.with_name("part-0.parquet"))
    assert query(tmp_path, "SELECT finding_id FROM gold.findings").to_pylist() == [{"finding_id": "ours"}]
