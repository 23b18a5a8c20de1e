"""A lake that is damaged, of an older layout, empty or being written: a sentence, and what can still be seen."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from tests.pipeline.dashboard.web.apps import PAGES, text_of
from tests.pipeline.harms import HARMS, cut_files, garble_log, lose_files
from tests.pipeline.lakes import diagnosed_lake

pytestmark = pytest.mark.slow

_HEADLINE = "sets group billing back to offset 24 of payments"
_EXCHANGES, _TIMELINE, _FINDINGS = "silver/exchanges", "gold/offset_timeline", "gold/findings"


@pytest.fixture(scope="module")
def whole_lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return diagnosed_lake(tmp_path_factory.mktemp("diagnosed") / "lake", "stuck_commit")


@pytest.fixture
def lake(whole_lake: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole_lake, tmp_path / "lake"))


@pytest.mark.parametrize("harm", HARMS, ids=lambda harm: harm.__name__.strip("_"))
def test_exchanges_that_cannot_be_read_leave_the_incident(use: Any, lake: Path, harm: Callable[[Path], None]) -> None:
    harm(lake / _EXCHANGES)
    home = text_of(use(lake, "home"))
    assert _HEADLINE in home.replace("\\", "")
    said = text_of(use(lake, "exchanges")).replace("\\", "")
    assert any(words in said for words in ("cannot be read", "damaged", "lacks a table")), said


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("table", [_EXCHANGES, _TIMELINE, _FINDINGS, "gold/incidents", "silver/transactions"])
def test_no_page_breaks_where_a_table_is_damaged(use: Any, lake: Path, table: str, page: str) -> None:
    cut_files(lake / table)
    garble_log(lake / "bronze" / "gaps")
    text = text_of(use(lake, page)).replace("\\", "")
    assert "This lake is damaged: `bronze.gaps` cannot be read. What the others know is shown." in text


def test_what_is_lost_is_not_called_nothing_where_gaps_cannot_be_read(use: Any, lake: Path) -> None:
    garble_log(lake / "bronze" / "gaps")
    text = text_of(use(lake, "home"))
    assert "what was lost is not known" in text
    assert "no packets missing" not in text


def test_incidents_that_cannot_be_read_are_not_called_none(use: Any, lake: Path) -> None:
    cut_files(lake / "gold" / "incidents")
    app = use(lake, "home")
    assert not app.success
    assert "damaged" in text_of(app)


@pytest.mark.parametrize("page", PAGES)
def test_a_lake_of_which_nothing_can_be_read(use: Any, lake: Path, page: str) -> None:
    for log in lake.rglob("_delta_log"):
        garble_log(log.parent)
    assert any("cannot read" in error.value.replace("\\", "") for error in use(lake, page).error)


@pytest.mark.parametrize(
    ("made", "pages"),
    [(Path.mkdir, PAGES), (Path.touch, PAGES[:1]), (lambda _: None, PAGES[:1])],
    ids=["empty", "file", "missing"],
)
def test_what_is_no_lake(use: Any, tmp_path: Path, made: Callable[[Path], None], pages: Sequence[str]) -> None:
    """What a lake lacks is found out before a page knows what it looks for: one stands for all."""
    made(tmp_path / "none")
    for page in pages:
        (error,) = use(tmp_path / "none", page).error
        assert "there is no lake at" in error.value.replace("\\", "")


def _rewrite(table: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    rows = pa.table(DeltaTable(str(table)).to_pyarrow_table())
    partitions = DeltaTable(str(table)).metadata().partition_columns
    shutil.rmtree(table)
    write_deltalake(str(table), change(rows), partition_by=partitions or None)


@pytest.mark.parametrize("page", PAGES)
def test_a_lake_of_an_older_layout_lacks_columns(use: Any, lake: Path, page: str) -> None:
    _rewrite(lake / _EXCHANGES, lambda rows: rows.drop_columns(["agent_id", "request_seq", "response_flags"]))
    _rewrite(lake / _TIMELINE, lambda rows: rows.drop_columns(["isolation_level", "incarnation", "pending_offset"]))
    _rewrite(lake / _FINDINGS, lambda rows: rows.drop_columns(["incident_id", "state"]))
    app = use(lake, page)
    text = text_of(app).replace("\\", "")
    assert "another layout" not in text
    assert "lacks" not in text
    if page == "home":
        assert _HEADLINE in text


@pytest.mark.parametrize("page", PAGES)
def test_a_column_of_another_type_is_told(use: Any, lake: Path, page: str) -> None:
    _rewrite(lake / _EXCHANGES, lambda rows: rows.set_column(rows.column_names.index("ts"), "ts", _texts(rows)))
    app = use(lake, page)
    assert "This lake is damaged: `silver.exchanges` cannot be read." in text_of(app).replace("\\", "")
    assert "its column ts is string, not timestamp" in text_of(app)


def _texts(rows: pa.Table) -> pa.Array:
    return pa.array([str(value) for value in rows["ts"].to_pylist()])


def test_a_lake_that_is_written_meanwhile(use: Any, lake: Path) -> None:
    app = use(lake, "home")
    (lake / _EXCHANGES / "part-half.parquet.tmp").write_bytes(b"PAR1 half")
    (lake / _EXCHANGES / "_delta_log" / "_commit_x.json.tmp").write_bytes(b"{")
    rows = DeltaTable(str(lake / _EXCHANGES)).to_pyarrow_table()
    write_deltalake(str(lake / _EXCHANGES), rows.slice(0, 1), mode="append")
    before = f"{len(rows):,} exchanges"
    assert before in text_of(app.run())  # a session's numbers agree, whatever is written
    next(button for button in app.button if button.label == "Refresh now").click().run()
    assert f"{len(rows) + 1:,} exchanges" in text_of(app)


def test_files_that_go_away_under_a_session(use: Any, lake: Path) -> None:
    app = use(lake, "exchanges")
    lose_files(lake / _EXCHANGES)
    app.run()
    assert not app.exception
    assert "damaged" in text_of(app)
