"""``wirelake migrate``: what it says of lakes of earlier layouts, and that it does it."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from typer.testing import CliRunner, Result

from pipeline.cli import app
from pipeline.dashboard.sql import query
from pipeline.lake.migration import migrations
from pipeline.streaming.operations.migration import migrate
from pipeline.tables import EXCHANGES, FRAMES, LAYOUT, LAYOUT_PROPERTY, TABLES
from tests.paths import ROOT
from tests.pipeline.lake.test_layout import with_layout
from tests.pipeline.rows import write

FORMER = ROOT / "tests" / "pipeline" / "streaming" / "storage"


def former_lake(folder: Path, layout: int) -> Path:
    shutil.unpack_archive(FORMER / f"layout_{layout}.zip", folder / "lake")
    return folder / "lake"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["migrate", *arguments], env={"COLUMNS": "200"})


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_of_layout_2_it_says_what_becomes_of_exchanges(tmp_path: Path) -> None:
    lake = former_lake(tmp_path, 2)
    before = content(lake)
    done = run("--lake", str(lake), "--dry-run")
    assert done.exit_code == 0, done.output
    assert done.output.splitlines() == [
        "silver.exchanges is rewritten without bodies (146 rows), which stay in bronze.frames.",
        f"2 tables of layout 2 will state layout {LAYOUT}.",
        "Nothing was changed. An earlier release refuses the lake afterwards; to go back, copy it first: "
        f"cp -a {lake} {lake}.before",
    ]
    assert content(lake) == before


def test_of_layout_1_it_says_which_tables_move(tmp_path: Path) -> None:
    done = run("--lake", str(former_lake(tmp_path, 1)), "--dry-run")
    assert done.exit_code == 0, done.output
    assert "ops.change_log moves from ops/news." in done.output
    assert "gold.incidents is rewritten with the names of today for 6 columns and for its states." in done.output
    assert f"6 tables of layout 1 will state layout {LAYOUT}." in done.output


def test_columns_that_are_missing_are_named(tmp_path: Path) -> None:
    write(tmp_path, replace(FRAMES, columns=tuple(one for one in FRAMES.columns if one.name != "idle_us")), [])
    with_layout(tmp_path, FRAMES, str(LAYOUT))
    (found,) = migrations(str(tmp_path))
    assert found.steps == ("gets 1 column that it lacks: idle_us",)


def test_a_lake_of_a_later_release_is_refused(tmp_path: Path) -> None:
    lake = former_lake(tmp_path, 2)
    with_layout(lake, FRAMES, str(LAYOUT + 1))
    done = run("--lake", str(lake), "--dry-run")
    assert done.exit_code != 0
    assert "was written by a later release" in str(done.exception)


@pytest.mark.spark
@pytest.mark.parametrize("layout", [1, 2])
def test_it_is_done(spark: SparkSession, tmp_path: Path, layout: int) -> None:
    lake = former_lake(tmp_path, layout)
    said: list[str] = []
    migrate(spark, str(lake), said.append)
    first, *others = said
    assert first == f"carrying {lake} over"
    assert ["silver.exchanges is rewritten" in one for one in others] == [True] * (layout - 1)
    assert migrations(str(lake)) == []
    assert {TABLES[name].path for name in TABLES} == {
        str(path.parent.relative_to(lake)) for path in lake.rglob("_delta_log") if path.is_dir()
    }
    assert query(lake, "SELECT count(request_body) AS n FROM exchanges_with_bodies").to_pylist() == [
        {"n": 143 if layout == 2 else 0}
    ]
    done = run("--lake", str(lake))
    assert done.output == f"{lake} has layout {LAYOUT} already: there is nothing to do.\n"
    assert DeltaTable(str(lake / EXCHANGES.path)).metadata().configuration[LAYOUT_PROPERTY] == str(LAYOUT)
