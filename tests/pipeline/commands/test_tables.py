"""``wirelake tables --lake`` counts what can be read, and says what cannot."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pipeline.cli import app
from pipeline.dashboard.sql import query
from pipeline.dashboard.view_columns import view_columns
from pipeline.dashboard.views import View, views
from pipeline.errors import UserError
from pipeline.tables import FINDINGS, GAPS, TABLES
from tests.pipeline.harms import HARMS, garble_log
from tests.pipeline.rows import row, write

KNOWN_TYPES = {column.type for table in TABLES.values() for column in table.columns}


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    write(tmp_path, FINDINGS, [row(FINDINGS, finding_id=str(number)) for number in range(1234)])
    write(tmp_path, GAPS, [row(GAPS, connection_id="c")])
    return tmp_path


@pytest.mark.parametrize("view", views(), ids=lambda view: view.name)
def test_a_view_is_described_by_its_columns(view: View) -> None:
    (found,) = map(json.loads, CliRunner().invoke(app, ["describe", view.name, "--json"]).stdout.splitlines())
    assert found["sql"] == view.sql
    assert {column["type"] for column in found["columns"]} <= {*KNOWN_TYPES}
    lines = CliRunner().invoke(app, ["describe", view.name], env={"COLUMNS": "200"}).stdout.splitlines()
    shown = [line.split()[:2] for line in lines[4:] if not line.startswith(" ")]
    assert shown == [[column["name"], column["type"]] for column in found["columns"]]
    assert "SELECT" not in "".join(lines)
    assert CliRunner().invoke(app, ["describe", view.name, "--sql"]).stdout.rstrip() == view.sql.rstrip()


def test_the_columns_of_a_view_are_those_of_its_answer(tmp_path: Path) -> None:
    for table in TABLES.values():
        write(tmp_path, table, [])
    for view in views():
        answer = query(tmp_path, f"FROM {view.name}")
        assert answer.column_names == [column.name for column in view_columns(view)]


def test_a_table_has_no_query() -> None:
    assert "--sql shows the query of a view" in str(CliRunner().invoke(app, ["describe", "gaps", "--sql"]).exception)


@pytest.mark.parametrize("asked", ["SELEC 1", "SELECT date_foo(1)"])
def test_an_error_of_sql_does_not_list_the_whole_lake(lake: Path, asked: str) -> None:
    error = str(CliRunner().invoke(app, ["sql", asked, "--lake", str(lake)]).exception)
    assert error.endswith("\n\n`wirelake tables` lists tables and views")
    assert max(map(len, error.splitlines())) < 80


@pytest.mark.parametrize("harm", HARMS, ids=lambda harm: harm.__name__)
def test_the_others_are_counted_where_one_is_damaged(lake: Path, harm: Callable[[Path], None]) -> None:
    harm(lake / GAPS.path)
    done = CliRunner().invoke(app, ["tables", "--lake", str(lake)])
    rows = {line.split()[0]: line.split()[1] for line in done.stdout.splitlines() if "." in line.split("  ")[0]}
    assert rows[FINDINGS.full_name] == "1,234"
    if rows[GAPS.full_name] == "damaged":
        assert done.exit_code == 2
        assert "warning: " in done.stderr
        assert "bronze" in done.stderr
    else:  # Delta knows of rows without their files
        assert rows[GAPS.full_name] in ("-", "1")
        assert done.exit_code == 0


def test_what_is_damaged_has_no_rows_as_json(lake: Path) -> None:
    garble_log(lake / GAPS.path)
    done = CliRunner().invoke(app, ["tables", "--lake", str(lake), "--json"])
    rows = {one["name"]: one["rows"] for one in map(json.loads, done.stdout.splitlines())}
    assert (rows[FINDINGS.full_name], rows[GAPS.full_name], done.exit_code) == (1234, None, 2)


def test_where_nothing_can_be_read(lake: Path) -> None:
    for table in (FINDINGS, GAPS):
        garble_log(lake / table.path)
    done = CliRunner().invoke(app, ["tables", "--lake", str(lake)])
    assert isinstance(done.exception, UserError)
    assert "cannot read" in str(done.exception)
