"""The dashboard for Grafana over a lake, made from the panels; it asks through the DuckDB data source."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pipeline.bi.catalog import VIEWS
from pipeline.bi.panels import READERS, Panel, panels

_SOURCE = {"type": "motherduck-duckdb-datasource", "uid": "${datasource}"}
_WIDTH, _HALF = 24, 12
_HEIGHT = 9
_TIME_SERIES, _TABLE = 0, 1
"""Formats of an answer, as Grafana's SQL data sources number them."""


def grafana_file() -> str:
    """The dashboard as JSON."""
    return json.dumps(
        {
            "title": "Wirelake: the lake", "uid": "wirelake-lake", "tags": ["wirelake"], "timezone": "utc",
            "schemaVersion": 39, "version": 1, "editable": True, "time": {"from": "now-24h", "to": "now"},
            "templating": {
                "list": [
                    {
                        "name": "datasource", "label": "DuckDB", "type": "datasource", "query": _SOURCE["type"],
                        "current": {}, "hide": 0,
                    }
                ]
            },
            "annotations": {"list": []},
            "panels": _panels(),
        },
        indent=2,
    ) + "\n"  # fmt: skip


def _panels() -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    below = 0
    for reader in READERS:
        made.append(
            {
                "id": len(made) + 1, "type": "row", "title": f"For the {reader}", "collapsed": False, "panels": [],
                "gridPos": {"x": 0, "y": below, "w": _WIDTH, "h": 1},
            }
        )  # fmt: skip
        below += 1
        for row in _rows([one for one in panels() if one.reader == reader]):
            for at, one in enumerate(row):
                width = _WIDTH // len(row)
                made.append(_panel(one, len(made) + 1, {"x": at * width, "y": below, "w": width, "h": _HEIGHT}))
            below += _HEIGHT
    return made


def _rows(of_reader: Sequence[Panel]) -> list[list[Panel]]:
    plots = [one for one in of_reader if one.chart != "table"]
    return [[one] for one in of_reader if one.chart == "table"] + [plots[at : at + 2] for at in range(0, len(plots), 2)]


def _panel(one: Panel, number: int, place: dict[str, int]) -> dict[str, Any]:
    made: dict[str, Any] = {
        "id": number, "title": one.title, "description": one.question, "datasource": _SOURCE, "gridPos": place,
        "fieldConfig": {"defaults": {}, "overrides": []},
        "targets": [
            {
                "refId": "A", "datasource": _SOURCE, "editorMode": "code", "rawSql": _sql(one),
                "format": _TABLE if one.chart == "table" else _TIME_SERIES,
            }
        ],
    }  # fmt: skip
    if one.chart == "table":
        return {**made, "type": "table"}
    custom = {"drawStyle": "bars" if one.chart == "bar" else "line", "showPoints": "auto", "spanNulls": False}
    if one.chart == "bar":
        custom |= {"fillOpacity": 80, "stacking": {"mode": "normal", "group": "A"}}
    made["fieldConfig"]["defaults"] = {"custom": custom, "unit": f"suffix: {one.unit}", "min": 0}
    return {**made, "type": "timeseries"}


def _sql(one: Panel) -> str:
    """The panel's query; of a plot the time, what it is of, and the value, within the dashboard's time range."""
    sql = one.sql_with_views_in(VIEWS)
    if one.chart == "table":
        return sql
    columns = ", ".join(name for name in (one.x, one.series, one.y) if name)
    return f"SELECT {columns} FROM (\n{sql}\n) AS panel WHERE $__timeFilter({one.x}) ORDER BY {one.x}"  # noqa: S608
