"""The dashboard for Apache Superset, as the YAML files of its own export, made from the panels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import yaml

from pipeline.bi.catalog import VIEWS
from pipeline.bi.panels import READERS, Panel, panels

TITLE = "Wirelake"
_ADDRESS = f"hive://wirelake:XXXXXXXXXX@127.0.0.1:10000/{VIEWS}?auth=CUSTOM"
"""Superset asks for the password in the place of these X."""
_MADE = "2026-01-01T00:00:00+00:00"
_WIDTH = 12
_HEIGHT = 50
_TYPES = {"VARCHAR": "STRING", "TIMESTAMP WITH TIME ZONE": "TIMESTAMP", "INTEGER": "INT"}
Columns = Sequence[tuple[str, str]]


def superset_files(columns: Mapping[str, Columns]) -> dict[str, str]:
    """The text of each file, by its path.

    Args:
        columns: of each panel by its name: names and DuckDB's types.
    """
    files = {
        "metadata.yaml": {"version": "1.0.0", "type": "Dashboard", "timestamp": _MADE},
        f"databases/{TITLE}.yaml": _database(),
        f"dashboards/{TITLE}.yaml": _dashboard(),
    }
    for one in panels():
        files[f"datasets/{TITLE}/{one.name}.yaml"] = _dataset(one, columns[one.name])
        files[f"charts/{one.name}.yaml"] = _chart(one, columns[one.name])
    return {path: yaml.dump(content, Dumper=_Dumper, sort_keys=False, width=110) for path, content in files.items()}


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as they are."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def _uuid(kind: str, name: str = "") -> str:
    return str(uuid5(NAMESPACE_URL, f"wirelake/superset/{kind}/{name}"))


def _database() -> dict[str, Any]:
    return {
        "database_name": TITLE,
        "sqlalchemy_uri": _ADDRESS,
        "cache_timeout": None,
        "expose_in_sqllab": True,
        "allow_run_async": False,
        "allow_ctas": False,
        "allow_cvas": False,
        "allow_dml": False,
        "allow_file_upload": False,
        "extra": {"allows_virtual_table_explore": True},
        "uuid": _uuid("database"),
        "version": "1.0.0",
    }


def _dataset(one: Panel, columns: Columns) -> dict[str, Any]:
    return {
        "table_name": one.name,
        "main_dttm_col": one.x,
        "description": one.question,
        "default_endpoint": None,
        "offset": 0,
        "cache_timeout": None,
        "catalog": None,
        "schema": VIEWS,
        "sql": one.sql_with_views_in(VIEWS),
        "params": None,
        "template_params": None,
        "filter_select_enabled": True,
        "fetch_values_predicate": None,
        "extra": None,
        "normalize_columns": False,
        "always_filter_main_dttm": False,
        "uuid": _uuid("dataset", one.name),
        "metrics": [{"metric_name": "rows", "verbose_name": "Rows", "metric_type": "count", "expression": "COUNT(*)"}],
        "columns": [
            {
                "column_name": name,
                "verbose_name": name.replace("_", " "),
                "type": _TYPES.get(kind, kind),
                "is_dttm": kind.startswith("TIMESTAMP"),
                "is_active": True,
                "groupby": True,
                "filterable": True,
            }
            for name, kind in columns
        ],
        "version": "1.0.0",
        "database_uuid": _uuid("database"),
    }


def _chart(one: Panel, columns: Columns) -> dict[str, Any]:
    kind, params = _table(columns) if one.chart == "table" else _plot(one)
    return {
        "slice_name": one.title,
        "description": one.question,
        "certified_by": None,
        "certification_details": None,
        "viz_type": kind,
        "params": {"viz_type": kind, "adhoc_filters": [], **params},
        "query_context": None,
        "cache_timeout": None,
        "uuid": _uuid("chart", one.name),
        "version": "1.0.0",
        "dataset_uuid": _uuid("dataset", one.name),
    }


def _table(columns: Columns) -> tuple[str, dict[str, Any]]:
    return "table", {
        "query_mode": "raw",
        "all_columns": [name for name, _ in columns],
        "row_limit": 1000,
        "order_by_cols": [],
        "server_pagination": False,
        "include_search": True,
        "table_timestamp_format": "smart_date",
    }


def _plot(one: Panel) -> tuple[str, dict[str, Any]]:
    metric = {
        "expressionType": "SIMPLE",
        "column": {"column_name": one.y},
        "aggregate": "MAX",
        "label": one.y,
        "hasCustomLabel": True,
        "optionName": f"metric_{one.y}",
    }
    params = {
        "x_axis": one.x,
        "time_grain_sqla": None,
        "metrics": [metric],
        "groupby": [one.series] if one.series else [],
        "row_limit": 10000,
        "show_legend": True,
        "rich_tooltip": True,
        "x_axis_sort_asc": True,
        "y_axis_title": one.unit,
        "y_axis_title_margin": 40,
        "y_axis_title_position": "Left",
    }
    if one.chart == "bar":
        return "echarts_timeseries_bar", {**params, "stack": "Stack"}
    return "echarts_timeseries_line", {**params, "markerEnabled": True}


def _dashboard() -> dict[str, Any]:
    return {
        "dashboard_title": TITLE,
        "description": "What really happened on the wire, from a lake of Wirelake.",
        "css": "",
        "slug": "wirelake",
        "certified_by": None,
        "certification_details": None,
        "published": True,
        "uuid": _uuid("dashboard"),
        "position": _position(),
        "version": "1.0.0",
        "metadata": {"color_scheme": "supersetColors", "refresh_frequency": 0, "cross_filters_enabled": False},
    }


def _position() -> dict[str, Any]:
    """A heading for each reader, and below it a row for each table, plots two in a row."""
    made: dict[str, Any] = {
        "DASHBOARD_VERSION_KEY": "v2",
        "ROOT_ID": {"id": "ROOT_ID", "type": "ROOT", "children": ["GRID_ID"]},
        "HEADER_ID": {"id": "HEADER_ID", "type": "HEADER", "meta": {"text": TITLE}},
    }
    below: list[str] = []
    for number, reader in enumerate(READERS):
        heading = f"HEADER-{number}"
        made[heading] = _part(
            heading,
            "HEADER",
            {"text": f"For the {reader}", "headerSize": "MEDIUM_HEADER", "background": "BACKGROUND_TRANSPARENT"},
        )
        below.append(heading)
        for row in _rows([one for one in panels() if one.reader == reader]):
            name = f"ROW-{row[0].name}"
            charts = [f"CHART-{one.name}" for one in row]
            made[name] = {**_part(name, "ROW", {"background": "BACKGROUND_TRANSPARENT"}), "children": charts}
            below.append(name)
            for one, chart in zip(row, charts, strict=True):
                meta = {
                    "uuid": _uuid("chart", one.name),
                    "chartId": 0,
                    "sliceName": one.title,
                    "width": _WIDTH // len(row),
                    "height": _HEIGHT,
                }
                made[chart] = _part(chart, "CHART", meta, ["ROOT_ID", "GRID_ID", name])
    made["GRID_ID"] = {"id": "GRID_ID", "type": "GRID", "parents": ["ROOT_ID"], "children": below}
    return made


def _part(
    name: str, kind: str, meta: dict[str, Any], parents: Sequence[str] = ("ROOT_ID", "GRID_ID")
) -> dict[str, Any]:
    return {"id": name, "type": kind, "parents": [*parents], "children": [], "meta": meta}


def _rows(of_reader: Sequence[Panel]) -> list[list[Panel]]:
    plots = [one for one in of_reader if one.chart != "table"]
    return [[one] for one in of_reader if one.chart == "table"] + [plots[at : at + 2] for at in range(0, len(plots), 2)]
