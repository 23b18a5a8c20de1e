"""The page of data quality shows the last check, since when each expectation fails, and how many failed in each run."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from pipeline.dashboard.queries import quality
from pipeline.dashboard.sql import connect
from pipeline.dashboard.web.pictures.quality_picture import in_words, quality_picture
from pipeline.tables import QUALITY_RESULTS
from tests.pipeline.dashboard.web.apps import frames, text_of
from tests.pipeline.rows import T0, row, write

RUNS = (
    {"never_null": "critical", "mostly": "warning"},
    {"mostly": "warning"},
    {},
    {"never_null": "critical", "mostly": "warning"},
    {"never_null": "critical"},
)
"""What fails in each of five daily runs; ``never_null`` is about two columns, one of which always holds."""


def results() -> Iterable[dict[str, Any]]:
    for number, failing in enumerate(RUNS):
        for name, column in (("never_null", "a"), ("never_null", "b"), ("mostly", None)):
            fails = name in failing and column != "b"
            at = T0 + timedelta(days=number)
            yield row(
                QUALITY_RESULTS, run_id=f"{at:%Y%m%dT}", run_time=at, table_name="bronze.frames", name=name,
                column_name=column, severity="warning" if name == "mostly" else "critical", success=not fails,
                rows_checked=10, rows_failed=int(fails), message=f"{name} of {column}",
            )  # fmt: skip


@pytest.fixture
def lake(hand_made_lake: Path, tmp_path: Path) -> Path:
    """One that was never checked."""
    return Path(shutil.copytree(hand_made_lake, tmp_path / "lake", ignore=shutil.ignore_patterns(QUALITY_RESULTS.name)))


@pytest.fixture
def checked(lake: Path) -> Path:
    write(lake, QUALITY_RESULTS, list(results()))
    return lake


def test_each_run_has_its_counts_the_oldest_first(checked: Path) -> None:
    with connect(checked) as connection:
        runs = quality.runs(connection)
    assert [(one.critical, one.warnings, one.expectations) for one in runs] == [
        (1, 1, 3), (0, 1, 3), (0, 0, 3), (1, 1, 3), (1, 0, 3),
    ]  # fmt: skip
    assert [one.run_time for one in runs] == [T0 + timedelta(days=number) for number in range(len(RUNS))]


def test_what_fails_states_since_when(checked: Path) -> None:
    """It held in the third run, so the first one does not count."""
    with connect(checked) as connection:
        (failed,) = quality.failed(connection)
    assert (failed["name"], failed["column_name"], failed["runs"]) == ("never_null", "a", 2)
    assert failed["failed_since"] == T0 + timedelta(days=3)


def test_what_never_held_fails_since_the_first_run(lake: Path) -> None:
    write(lake, QUALITY_RESULTS, [one | {"success": False} for one in results()])
    with connect(lake) as connection:
        failed = quality.failed(connection)
    assert {(one["runs"], one["failed_since"]) for one in failed} == {(5, T0)}


def test_the_picture_has_a_bar_for_what_failed_and_a_point_for_a_sound_run(checked: Path) -> None:
    with connect(checked) as connection:
        runs = quality.runs(connection)
    for dark in (False, True):
        spec = json.loads(quality_picture(runs, dark=dark).to_json())
        assert [layer["mark"]["type"] for layer in spec["layer"]] == ["bar", "point"]
        (rows,) = spec["datasets"].values()
        assert sorted((one["kind"], one["count"]) for one in rows) == [
            ("critical", 1), ("critical", 1), ("critical", 1), ("none failed", 0),
            ("warning", 1), ("warning", 1), ("warning", 1),
        ]  # fmt: skip
    assert in_words(runs) == "5 runs: critical expectations failed in 3, only others in 1."


def test_the_page_shows_both(use: Any, checked: Path) -> None:
    app = use(checked, "quality")
    text = text_of(app)
    assert "3 expectations of 1 table" in text
    assert "critical expectations failed in 3, only others in 1" in text
    assert len(app.get("vega_lite_chart")) == 1
    assert frames(app)[0][0]["runs in which it did"] == 2


def test_one_run_is_no_trend(use: Any, lake: Path) -> None:
    write(lake, QUALITY_RESULTS, list(results())[:3])
    assert len(use(lake, "quality").get("vega_lite_chart")) == 0
