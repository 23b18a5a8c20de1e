"""A planted fault in a query of the page costs the part that asks it; what else there is, is drawn."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.analysis.safety.guard import noting
from pipeline.dashboard.queries.overview import incidents, trends
from pipeline.dashboard.queries.scope import Scope, extent
from pipeline.dashboard.sql import connect
from tests.pipeline.analysis.safety.test_guard import CANARY, fails
from tests.pipeline.dashboard.web.apps import open_page, text_of
from tests.pipeline.lakes import diagnosed_lake
from tests.requirements import require_streamlit


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return diagnosed_lake(tmp_path_factory.mktemp("planted") / "lake", "stuck_commit")


def test_a_trend_that_fails_costs_itself(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with connect(lake) as connection:
        found = extent(connection)
        assert found is not None
        rows = incidents.incidents(connection, Scope(found.first, found.last))
        whole = dict(trends.trends(connection, rows))
        monkeypatch.setattr(trends, "_of_offsets", fails)
        with noting() as noted:
            rest = dict(trends.trends(connection, rows))
    assert whole
    assert {error.step for error in noted.errors} == {"trend of an incident"}
    assert rest.keys() <= {row["incident_id"] for row in rows}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "place", "kept"),
    [
        ("home", "overview.trends._of_offsets", "Healthy"),
        ("home", "overview.names.counted", "Captured"),
        ("home", "overview.health.health", "Healthy"),
        ("latency", "latency.over_time", "All apis and commands"),
        ("latency", "latency.errors", "All apis and commands"),
        ("group", "progress.groups.rhythm", "Rebalances"),
        ("transactions", "progress.transactions.held_partitions", "Ended"),
    ],
)
def test_a_part_of_a_page_that_fails_costs_itself(
    lake: Path, page: str, place: str, kept: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_streamlit()
    monkeypatch.setenv("WIRELAKE_LAKE", str(lake))
    monkeypatch.setattr(f"pipeline.dashboard.queries.{place}", fails)
    shown = text_of(open_page(page, may_fail=True)).replace("\\", "")
    assert "internal error: PlantedError at" in shown
    assert kept in shown
    assert CANARY not in shown
