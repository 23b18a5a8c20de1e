"""``wirelake tables --lake`` counts what can be read, and says what cannot."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pipeline.cli import app
from pipeline.errors import UserError
from pipeline.tables import FINDINGS, GAPS
from tests.pipeline.harms import HARMS, garble_log
from tests.pipeline.rows import row, write


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    write(tmp_path, FINDINGS, [row(FINDINGS, finding_id=str(number)) for number in range(1234)])
    write(tmp_path, GAPS, [row(GAPS, connection_id="c")])
    return tmp_path


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
