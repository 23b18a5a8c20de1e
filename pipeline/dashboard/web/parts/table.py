"""Draws rows as a table of HTML: rows are links, text can be selected and found, columns are as wide as what they hold.

What comes from the wire is escaped. ``scripts/tables.js`` sorts, narrows, chooses columns, and follows a row without
loading the page; it keeps in the address what somebody chose.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timezone
from html import escape
from typing import Any
from urllib.parse import urlencode

import streamlit as st

from pipeline.dashboard.web.page_context import kept
from pipeline.dashboard.web.parts.grid import Column, text_of_value
from pipeline.dashboard.web.pictures.colours import DARK, LIGHT
from pipeline.dashboard.web.scripts.own import TABLES, run_script
from pipeline.dashboard.web.zone import in_zone, short_zone, zone_name
from pipeline.humanize import number
from pipeline.terminal.console import printable

Address = tuple[str, Mapping[str, str | int | None]]
"""The page, as its address names it, and parameters; those that are None are left out."""
_NUMBERS = ("number", "ms", "duration", "size", "rate", "trend")
_NARROWED = 40
"""Characters of a value up to which rows can be narrowed by it."""
_ESCAPES = "\\"
"""In what is shown in place of a name that is not printable, which the lake would not know again."""
_FEW = 4
"""A table with this many columns or fewer has no choice of columns."""
_STYLE = """
.rows-box { overflow: auto; max-height: 34rem; max-width: 100%;
  --edge: color-mix(in srgb, currentColor 40%, transparent);
  --right: inset 0 0 0 0 transparent; --below: inset 0 0 0 0 transparent;
  box-shadow: var(--right), var(--below); }
.rows-box[data-more~=right] { --right: inset -12px 0 9px -9px var(--edge); }
.rows-box[data-more~=below] { --below: inset 0 -12px 9px -9px var(--edge); }
@media (min-width: 640px) { [data-testid=stMainBlockContainer] { padding-inline: 2.5rem; } }
.rows-tools { display: flex; flex-wrap: wrap; align-items: baseline; gap: .2rem .8rem; font-size: .85rem; }
.rows-tools button { margin: 0 .5rem .4rem 0; padding: .1rem .6rem; border: 1px solid; border-radius: 1rem;
  font-size: .85rem; background: none; color: inherit; cursor: pointer; }
.rows-tools details { margin: 0 0 .4rem auto; text-align: right; }
.rows-tools summary { cursor: pointer; }
.rows-tools fieldset { border: 0; margin: 0; padding: .3rem 0; display: flex; flex-wrap: wrap; gap: .2rem 1rem; }
.rows-tools label { display: inline-flex; align-items: center; gap: .35rem; white-space: nowrap; }
.rows-tools input { accent-color: currentColor; }
table.rows { border-collapse: collapse; font-size: .875rem; font-variant-numeric: tabular-nums; }
table.rows th { position: sticky; top: 0; z-index: 1; background: Canvas; background: light-dark({LIGHT}, {DARK});
  text-align: left; white-space: nowrap; padding: .25rem .7rem; vertical-align: bottom; }
table.rows th button { all: unset; cursor: pointer; font-weight: 600; }
table.rows th button:focus-visible, table.rows [data-narrow]:focus-visible { outline: 2px solid; outline-offset: 2px; }
table.rows th[aria-sort=ascending] button::after { content: " ▲"; }
table.rows th[aria-sort=descending] button::after { content: " ▼"; }
table.rows td { padding: .2rem .7rem; white-space: nowrap; vertical-align: top; max-width: 26rem; overflow: hidden;
  text-overflow: ellipsis; border-top: 1px solid color-mix(in srgb, currentColor 15%, transparent); }
table.rows td.wide { white-space: normal; min-width: 22rem; max-width: 46rem; overflow-wrap: anywhere; }
table.rows td.right, table.rows th.right { text-align: right; }
table.rows tr:has(a):hover td { background: color-mix(in srgb, currentColor 7%, transparent); cursor: pointer; }
table.rows a { color: inherit; text-decoration: underline; text-underline-offset: 2px; }
table.rows [data-narrow] { all: unset; cursor: pointer; opacity: 0; padding: 0 .2rem; font-weight: 700; }
table.rows td:hover [data-narrow], table.rows [data-narrow]:focus-visible { opacity: 1; }
table.rows tr.muted td { opacity: .62; }
"""


def prepare_tables() -> None:
    """Have the browser know how tables look and what clicks do, once for a page."""
    style = _STYLE.replace("{LIGHT}", LIGHT.background).replace("{DARK}", DARK.background)
    st.html(f"<style>{style}</style>")


def run_tables() -> None:
    """Have the browser follow clicks in tables; at the end of a page, where its element takes no room."""
    run_script(TABLES)


def table(
    rows: Sequence[dict[str, Any]], columns: Sequence[Column], *, name: str,
    key: str | None = None, to: Callable[[dict[str, Any]], Address | None] | None = None,
    muted: Callable[[dict[str, Any]], bool] | None = None, served: Collection[str] | None = None,
) -> None:  # fmt: skip
    """Draw rows, some hundred at most.

    Args:
        rows: what it shows.
        columns: how; those that are empty in all rows are left out.
        name: what it lists, for those who do not see it.
        key: before the names of its choices in the address: of a page's main table it is empty; None: the name.
        to: where a row leads; None: nowhere.
        muted: which rows are what one would expect, and are shown fainter.
        served: the fields that rows are narrowed by before they come here, as there are more than these rows; None:
            these are all, and the browser narrows them.
    """
    shown = [column for column in columns if any(row[column.field] not in (None, "", []) for row in rows)] or columns
    days = {column.field: _day(rows, column) for column in shown if column.kind == "time"}
    head = "".join(_heading(column, days.get(column.field)) for column in shown)
    body = "".join(_line(row, shown, days, to, muted, served) for row in rows)
    of = escape(_key_of(name) if key is None else key, quote=True)
    st.html(
        f'<div data-rows="{of}"{"" if served is None else " data-served"}><div class="rows-tools">'
        f'<span data-chips></span><span data-count role="status"></span>{_choice(shown, name)}</div>'
        f'<div class="rows-box" tabindex="0" role="region" aria-label="{escape(name, quote=True)}">'
        f'<table class="rows"><caption hidden>{escape(name)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div></div>"
    )


def _key_of(name: str) -> str:
    return name.lower().replace(" ", "-")


def _choice(columns: Sequence[Column], name: str) -> str:
    """Which columns are shown; the first one always is."""
    if len(columns) <= _FEW:
        return ""
    boxes = "".join(
        f'<label><input type="checkbox" data-column="{column.field}" data-first="{int(column.at_first)}"'
        f"{' checked' if column.at_first else ''}>{escape(column.title)}</label>"
        for column in columns[1:]
    )
    of = escape(f"Columns of {name}", quote=True)
    return (
        f'<details><summary aria-label="{of}">Columns</summary><fieldset aria-label="{of}">{boxes}</fieldset></details>'
    )


def href(page: str, parameters: Mapping[str, str | int | None]) -> str:
    """The address of a page, below this one's root, that keeps the time range."""
    given = {name: str(value) for name, value in parameters.items() if value is not None}
    return f"/{'' if page == 'home' else page}?{urlencode({**kept(), **given}, errors='backslashreplace')}"


def _day(rows: Sequence[dict[str, Any]], column: Column) -> str | None:
    """The date, if all times of a column are of one, which then is in its heading alone."""
    found = {f"{in_zone(row[column.field]):%Y-%m-%d}" for row in rows if row[column.field] is not None}
    return found.pop() if len(found) == 1 else None


def _heading(column: Column, day: str | None) -> str:
    title = column.title
    if column.kind == "time":
        title = f"{title}, {f'{day} ' if day else ''}{zone_name()}"
    more = f' title="{escape(column.help, quote=True)}"' if column.help else ""
    side = ' class="right"' if column.kind in _NUMBERS else ""
    return (
        f'<th scope="col"{side}{more} data-kind="{column.kind}" data-field="{column.field}" '
        f'data-title="{escape(column.title, quote=True)}"><button type="button">{escape(title)}</button></th>'
    )


def _line(
    row: dict[str, Any], columns: Sequence[Column], days: Mapping[str, str | None],
    to: Callable[[dict[str, Any]], Address | None] | None, muted: Callable[[dict[str, Any]], bool] | None,
    served: Collection[str] | None,
) -> str:  # fmt: skip
    address = to(row) if to else None
    cells: list[str] = []
    for column in columns:
        text = _text(row[column.field], column, days.get(column.field))
        inner = escape(text) or "-"
        if address is not None and not cells:
            inner = f'<a href="{escape(href(*address), quote=True)}">{inner}</a>'
        is_known = served is None or (column.field in served and _ESCAPES not in text)
        can_narrow = is_known and column.kind == "text" and len(text) <= _NARROWED
        cells.append(_cell(inner, text, row[column.field], column, can_narrow=can_narrow))
    return f"<tr{' class=muted' if muted and muted(row) else ''}>{''.join(cells)}</tr>"


def _cell(inner: str, text: str, value: Any, column: Column, *, can_narrow: bool) -> str:
    kinds = [name for name, holds in (("right", column.kind in _NUMBERS), ("wide", column.width == "large")) if holds]
    of = f' class="{" ".join(kinds)}"' if kinds else ""
    marks = ""
    if can_narrow:
        what = escape(f"{column.title}: {text or 'empty'}", quote=True)
        marks = "".join(
            f'<button type="button" data-narrow="{word.lower()}" tabindex="-1" title="{word} this" '
            f'aria-label="{word} {what}">{sign}</button>'
            for word, sign in (("Only", "="), ("Not", "≠"))
        )
    return f'<td{of} data-v="{escape(_key(value), quote=True)}" data-t="{escape(text, quote=True)}">{inner}{marks}</td>'


def _key(value: Any) -> str:
    """By what a column is sorted."""
    if isinstance(value, datetime):
        aware = value if value.tzinfo else value.replace(tzinfo=timezone.utc)
        return str(round(aware.timestamp() * 1e6))
    if isinstance(value, bool) or value is None:
        return "1" if value else ""
    return json.dumps(value) if isinstance(value, int | float) else text_of_value(value)


def _text(value: Any, column: Column, day: str | None) -> str:
    if value is None:
        return ""
    match column.kind:
        case "time":
            local = in_zone(value)
            clock = f"{local:%H:%M:%S}.{local.microsecond // 1000:03}"
            return clock if day else f"{local:%Y-%m-%d} {clock} {short_zone(value)}"
        case "number":
            return number(int(value))
        case "ms":
            return f"{value / 1000:,.1f}"
        case _:
            return printable(text_of_value(value, column.kind))
