"""Panels have rows over a real lake, and the dashboards made of them ask for what is there."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from pipeline.bi.panels import READERS, Panel, panel, panels
from pipeline.dashboard.sql import query
from pipeline.errors import UserError
from tests.paths import ROOT
from website.bi_dashboards import CONF, dashboards

GRAFANA: list[dict[str, Any]] = json.loads((CONF / "grafana" / "wirelake-lake.json").read_text())["panels"]
_TIME_FILTER = re.compile(r"\$__timeFilter\((\w+)\)")


def superset(kind: str, name: str) -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load((CONF / "superset" / kind / f"{name}.yaml").read_text())
    return content


def test_each_reader_has_panels() -> None:
    assert len(panels()) == 10
    assert {one.reader for one in panels()} == set(READERS)
    assert panel("lag_of_groups") in panels()
    with pytest.raises(UserError, match="there is no panel lag: there are "):
        panel("lag")


@pytest.mark.parametrize("one", panels(), ids=lambda one: one.name)
def test_a_panel_has_rows_and_the_columns_that_it_shows(one: Panel, samples: Path) -> None:
    found = query(samples, one.sql)
    assert found.num_rows
    if one.chart != "table":
        assert {one.x, one.y, one.series} <= set(found.schema.names)
        key = found.select([one.x, one.series]).to_pylist()
        assert len({tuple(row.values()) for row in key}) == len(key), "a plot has one value at a time of each series"


def test_dashboards_are_up_to_date() -> None:
    made = dashboards()
    for path, text in made.items():
        assert path.read_text(encoding="utf-8") == text, "python -m website.reference writes it anew"
    assert set((CONF / "superset").rglob("*.yaml")) <= set(made)


@pytest.mark.parametrize("one", panels(), ids=lambda one: one.name)
def test_a_chart_of_superset_names_its_dataset_and_columns(one: Panel) -> None:
    dataset, chart = superset("datasets/Wirelake", one.name), superset("charts", one.name)
    assert chart["dataset_uuid"] == dataset["uuid"]
    assert dataset["database_uuid"] == superset("databases", "Wirelake")["uuid"]
    columns = {column["column_name"] for column in dataset["columns"]}
    params = chart["params"]
    asked = params.get("all_columns") or [
        params["x_axis"], *params["groupby"], *(metric["column"]["column_name"] for metric in params["metrics"])
    ]  # fmt: skip
    assert set(asked) <= columns
    assert dataset["main_dttm_col"] in {*columns, None}
    placed = superset("dashboards", "Wirelake")["position"]
    assert placed[f"CHART-{one.name}"]["meta"]["uuid"] == chart["uuid"]


@pytest.mark.parametrize("one", [one for one in GRAFANA if one["type"] != "row"], ids=lambda one: one["title"])
def test_a_panel_of_grafana_has_rows_within_its_time_range(one: dict[str, Any], samples: Path) -> None:
    (target,) = one["targets"]
    sql = target["rawSql"].replace("views.", "")
    of_range = _TIME_FILTER.sub(r"\1 >= '2026-11-21T00:00:00Z' AND \1 <= '2026-11-22T00:00:00Z'", sql)
    assert query(samples, of_range).num_rows
    assert (target["format"] == 1) is (one["type"] == "table")
    if one["type"] != "table":
        before = _TIME_FILTER.sub(r"\1 <= '2026-01-01T00:00:00Z'", sql)
        assert query(samples, before).num_rows == 0


def test_panels_of_grafana_do_not_overlap() -> None:
    places = [
        (x, y)
        for one in GRAFANA
        for x in range(one["gridPos"]["x"], one["gridPos"]["x"] + one["gridPos"]["w"])
        for y in range(one["gridPos"]["y"], one["gridPos"]["y"] + one["gridPos"]["h"])
    ]
    assert len(places) == len(set(places))
    assert len({one["id"] for one in GRAFANA}) == len(GRAFANA)


def test_the_guide_names_each_panel() -> None:
    guide = (ROOT / "docs" / "howto" / "bi.md").read_text(encoding="utf-8").lower()
    for one in panels():
        words = one.title.lower().replace("service time, 99th percentile", "service time (99th percentile)")
        assert words in guide, one.title
