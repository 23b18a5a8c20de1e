"""The panels of the BI dashboards: one ``.sql`` file each, in the SQL that Spark and DuckDB understand alike.

The first line of a file is the question that the panel answers; lines ``-- name: value`` behind it state how it is
shown.
Dashboards for Superset and Grafana (in ``conf``) are made from these files, and the notebook ``panels`` asks them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal

from pipeline.dashboard.views import views
from pipeline.errors import UserError

READERS = ("on-call engineer", "platform owner", "capacity planner")
_FACT = re.compile(r"-- (title|reader|chart|x|y|series|unit): (.+)")


@dataclass(frozen=True, slots=True)
class Panel:
    """A panel.

    Attributes:
        name: its file without the ending.
        question: what it answers.
        sql: one query, without comments.
        reader: whose question it is, one of ``READERS``.
        chart: how it is shown.
        x, y, series: of a line or bar chart: the columns with the time, the value, and what each line or colour is of.
        unit: of ``y``.
    """

    name: str
    question: str
    sql: str
    title: str
    reader: str
    chart: Literal["table", "line", "bar"]
    x: str | None = None
    y: str | None = None
    series: str | None = None
    unit: str | None = None

    def sql_with_views_in(self, schema: str) -> str:
        """The query for a catalog that has the views in a schema of their own."""
        names = "|".join(view.name for view in views())
        return re.sub(rf"\b(FROM|JOIN) ({names})\b", rf"\1 {schema}.\2", self.sql)


@cache
def panels() -> tuple[Panel, ...]:
    """All panels, by reader and name."""
    found = [
        _read(file.name.removesuffix(".sql"), file.read_text(encoding="utf-8"))
        for file in files(__name__).iterdir()
        if file.name.endswith(".sql")
    ]
    return tuple(sorted(found, key=lambda one: (READERS.index(one.reader), one.name)))


def panel(name: str) -> Panel:
    """The panel of that name.

    Raises:
        UserError: there is none.
    """
    for one in panels():
        if one.name == name:
            return one
    raise UserError(f"there is no panel {name}: there are {', '.join(one.name for one in panels())}")


def _read(name: str, text: str) -> Panel:
    lines = text.splitlines()
    comments = [line for line in lines if line.startswith("--")]
    facts = {match[1]: match[2] for line in comments if (match := _FACT.fullmatch(line))}
    sql = "\n".join(line for line in lines if not line.startswith("--"))
    return Panel(name=name, question=comments[0].removeprefix("-- "), sql=sql.strip(), **facts)  # type: ignore[arg-type]
