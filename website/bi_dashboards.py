"""Dashboards of BI tools in ``conf``, made from ``pipeline/bi/panels``; ``python -m website.reference`` writes them."""

from __future__ import annotations

from pathlib import Path

from pipeline.bi.panels import panels
from pipeline.dashboard.sql import connect_tables
from website.grafana_file import grafana_file
from website.superset_files import superset_files

CONF = Path(__file__).resolve().parents[1] / "conf"


def dashboards() -> dict[Path, str]:
    """The text of each file, by its place."""
    made = {CONF / "superset" / path: text for path, text in superset_files(_columns()).items()}
    return {**made, CONF / "grafana" / "wirelake-lake.json": grafana_file()}


def write() -> None:
    """Write them, and remove what is none of them from the folder for Superset."""
    made = dashboards()
    for path, text in made.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for path in (CONF / "superset").rglob("*.yaml"):
        if path not in made:
            path.unlink()


def _columns() -> dict[str, list[tuple[str, str]]]:
    """Columns of each panel and DuckDB's types of them, as over a lake without rows."""
    with connect_tables({}) as connection:
        return {
            one.name: [(name, kind) for name, kind, *_ in connection.execute(f"DESCRIBE {one.sql}").fetchall()]
            for one in panels()
        }
