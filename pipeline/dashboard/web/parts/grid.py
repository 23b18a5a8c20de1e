"""Draws a table of rows: one column a :class:`Column`; what comes from the wire is text and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa
import streamlit as st

from pipeline.commands.top.amounts import rate, trend
from pipeline.dashboard.web.zone import zone_name, zoned
from pipeline.humanize import duration, size
from pipeline.terminal.console import printable

Kind = Literal["text", "time", "number", "ms", "duration", "size", "yes", "rate", "trend"]
"""``ms``: microseconds, shown as milliseconds; ``duration``: seconds; ``size``: bytes; ``yes``: a mark where true;
``rate``, ``trend``: how often in a second, by how much something grows in a second."""
_NOTHING = "-"
_ROW = 35
_SCROLL_BAR = 14
"""Pixels of a row, and of what is below the last one where the table is wider than the page."""
_ROWS = 12
"""Rows that are seen without scrolling."""


def _text(value: Any) -> str:
    if isinstance(value, list):
        return printable(", ".join("" if one is None else str(one) for one in value))
    return printable(str(value))


_WRITTEN: dict[Kind, Callable[[Any], Any]] = {
    "text": _text,
    "time": lambda value: value,
    "number": int,
    "ms": lambda value: value / 1000,
    "duration": duration,
    "size": size,
    "rate": rate,
    "trend": trend,
    "yes": lambda value: "yes" if value else "",
}


def text_of_value(value: Any, kind: Kind = "text") -> str:
    """A value as text, for a kind that is no time and no number."""
    return str(_WRITTEN[kind](value))


_TYPES = {"time": pa.timestamp("us", "UTC"), "number": pa.int64(), "ms": pa.float64()}


@dataclass(frozen=True, slots=True)
class Column:
    """A column: which field it shows, its title, how, and what a pointer over the title explains.

    ``at_first``: whether it is shown before somebody chooses columns.
    """

    field: str
    title: str
    kind: Kind = "text"
    help: str | None = None
    width: Literal["small", "medium", "large"] | None = None
    at_first: bool = True


def grid(rows: Sequence[dict[str, Any]], columns: Sequence[Column], *, key: str) -> None:
    """Draw rows as a canvas that scrolls, for answers of any size; :mod:`.table` draws what people read and follow.

    Args:
        rows: what it shows.
        columns: how.
        key: of the table.
    """
    data = pa.table({column.title: _values(rows, column) for column in columns})
    shown = {column.title: _config(column) for column in columns}
    height = _ROW * (min(len(rows), _ROWS) + 1) + _SCROLL_BAR
    st.dataframe(data, hide_index=True, column_config=shown, key=key, placeholder=_NOTHING, height=height)


def _values(rows: Sequence[dict[str, Any]], column: Column) -> pa.Array:
    written = _WRITTEN[column.kind]
    values = (row[column.field] for row in rows)
    return pa.array(
        [None if value is None else written(value) for value in values], _TYPES.get(column.kind, pa.string())
    )


def _config(column: Column) -> Any:
    configs = st.column_config
    match column.kind:
        case "time":
            help_text = f"{column.help or ''} {zoned('Times')}.".strip()
            return configs.DatetimeColumn(format="YYYY-MM-DD HH:mm:ss.SSS z", timezone=zone_name(), help=help_text)
        case "number":
            return configs.NumberColumn(format="localized", help=column.help)
        case "ms":
            return configs.NumberColumn(format="%.1f", help=column.help)
        case _:
            return configs.TextColumn(help=column.help, width=column.width)
