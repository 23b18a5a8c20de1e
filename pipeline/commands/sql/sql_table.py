"""An answer as a table for a terminal: names with types, as many columns and rows as there is room for, and counts."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import islice
from typing import Any

import pyarrow as pa

from pipeline.commands.sql.sql_formats import shown as shown_value
from pipeline.humanize import pluralize
from pipeline.terminal.console import printable
from pipeline.terminal.lines import Lines, columns_of, cut

_NARROW = 20
"""Columns of the terminal that a column keeps when others need room, unless it is narrower by itself."""
_WIDEST = 60
"""Columns that a column has at most, where there is room for all."""
_FEWEST = 2
"""Columns that are shown in any case."""
_HIDDEN = "…"
_EMPTY = frozenset({"NULL", "", "[]", "{}"})
_LESSER = ("timestamp", "date", "blob", "struct")
"""Types of columns that give way to names and numbers, and so do"""
_FIRST = frozenset(
    {
        *("ts", "first_ts", "minute", "hour", "client_id", "application", "client", "client_ip", "api_name", "command"),
        *("group_id", "topic", "collection", "partition", "error_name", "error_names", "severity", "headline", "rule"),
        *("summary", "lag", "latency_us"),
    }
)
"""Columns that people look for: when, who, what was asked, of what, what went wrong, and how far behind or slow."""
_ID = re.compile(r"[0-9a-f]{16}[0-9a-f-]*|NULL")
_TYPES = {
    "string": "varchar", "large_string": "varchar", "int8": "tinyint", "int16": "smallint", "int32": "integer",
    "int64": "bigint", "uint8": "utinyint", "uint16": "usmallint", "uint32": "uinteger", "uint64": "ubigint",
    "bool": "boolean", "binary": "blob", "large_binary": "blob", "date32[day]": "date", "float": "float",
    "halffloat": "float", "null": "null",
}  # fmt: skip


def sql_type(kind: Any) -> str:
    """An Arrow type as DuckDB calls it."""
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return f"{sql_type(kind.value_type)}[]"
    if pa.types.is_timestamp(kind):
        return "timestamptz" if kind.tz else "timestamp"
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_struct(kind):
        return "struct"
    return _TYPES.get(str(kind), str(kind))


def show_table(
    lines: Lines, names: Sequence[str], types: Sequence[str], rows: Iterable[tuple[Any, ...]], most: int
) -> None:
    """Print an answer.

    Args:
        lines: where to; its width decides how many columns there are.
        names, types: of the columns.
        rows: all of them; they are counted.
        most: rows that are shown: the first and the last ones.
    """
    source = iter(rows)
    first = list(islice(source, most - most // 2))
    last: deque[tuple[Any, ...]] = deque(maxlen=max(most // 2, 0))
    behind = 0
    for row in source:
        last.append(row)
        behind += 1
    shown = [[shown_value(value) for value in row] for row in (*first, *last)]
    total = len(first) + behind
    hidden_rows = behind - len(last)
    is_number = [
        bool(shown) and all(row[at] is None or isinstance(row[at], (int, float, Decimal)) for row in (*first, *last))
        for at in range(len(names))
    ]
    heads = [printable(name) for name in names]
    widest = _WIDEST if lines.width else 1 << 30
    widths = [
        min(widest, max(map(columns_of, (heads[at], types[at], *(row[at] for row in shown)))))
        for at in range(len(names))
    ]
    worth = [_worth(names[at], types[at], [row[at] for row in shown]) for at in range(len(names))]
    kept = _fit(widths, lines.width, worth)
    _draw(lines, kept, widths, heads, types, shown, is_number, len(first) if hidden_rows else None)
    for text in _counts(total, len(shown), kept, heads):
        lines.write([(text, "dim")])


def _fit(widths: list[int], width: int, worth: Sequence[int]) -> list[int | None]:
    """Which columns are shown, None at the end standing for those that are not; narrows ``widths``.

    Of columns that are worth the least the last one goes first; what is left is as wide as there is room for.
    """
    kept: list[int | None] = list(range(len(widths)))
    if not width or _taken(kept, widths) <= width:
        return kept
    wanted = list(widths)
    widths[:] = [min(one, _NARROW) for one in widths]
    left = list(range(len(widths)))
    while len(left) > _FEWEST and _taken(kept, widths) > width:
        left.remove(min(left, key=lambda at: (worth[at], -at)))
        kept = [*left, None]
    growing = [at for at in left if widths[at] < wanted[at]]
    while growing and _taken(kept, widths) < width:
        least = min(growing, key=lambda at: widths[at])
        widths[least] += 1
        growing = [at for at in growing if widths[at] < wanted[at]]
    return kept


def _worth(name: str, kind: str, cells: Sequence[str]) -> int:
    """How much a column is worth: least if it is empty, then if it says the same in all rows, then by name and type."""
    if all(cell in _EMPTY for cell in cells):
        return 0
    if len(cells) > 1 and len(set(cells)) == 1:
        return 1
    if name in _FIRST:
        return 4
    is_lesser = kind.startswith(_LESSER) or kind.endswith("[]") or all(map(_ID.fullmatch, cells))
    return 2 if is_lesser else 3


def _counts(total: int, rows: int, kept: list[int | None], heads: Sequence[str]) -> Iterator[str]:
    """What is below a table: how much there is of it, and how to see what is not shown."""
    text = pluralize(total, "row")
    if rows < total:
        text += f" ({rows:,} shown: --rows N, or --format csv for all)"
    hidden = [head for at, head in enumerate(heads) if at not in kept]
    if not hidden:
        yield text
        return
    columns = f"{pluralize(len(heads), 'column')} ({len(heads) - len(hidden)} shown"
    if rows < total:  # how to see all is there already
        yield f"{text}, {columns})"
    else:
        yield f"{text}, {columns}: name those you want, or --format line for all)"
    yield f"not shown: {', '.join(hidden)}"


def _taken(kept: list[int | None], widths: list[int]) -> int:
    return sum(3 + (1 if at is None else widths[at]) for at in kept) + 1


def _draw(
    lines: Lines,
    kept: list[int | None],
    widths: list[int],
    heads: Sequence[str],
    types: Sequence[str],
    rows: list[list[str]],
    is_number: list[bool],
    cut_behind: int | None,
) -> None:
    def rule(left: str, middle: str, right: str) -> None:
        bars = middle.join("─" * (2 + (1 if at is None else widths[at])) for at in kept)
        lines.write([(f"{left}{bars}{right}", "dim")])

    def row(cells: Sequence[str], style: str, *, is_head: bool = False) -> None:
        parts = [("│", "dim")]
        for at in kept:
            if at is None:
                parts.append((f" {_HIDDEN} ", "dim"))
            else:
                text = cut(cells[at], widths[at])
                gap = " " * (widths[at] - columns_of(text))
                dim = "dim" if text == "NULL" else style
                parts.append((f" {gap}{text} " if is_number[at] and not is_head else f" {text}{gap} ", dim))
            parts.append(("│", "dim"))
        lines.write(parts)

    rule("┌", "┬", "┐")
    row(heads, "bold", is_head=True)
    row(types, "dim", is_head=True)
    rule("├", "┼", "┤")
    for number, cells in enumerate(rows):
        if number == cut_behind:
            row(["·" for _ in heads], "dim")
        row(cells, "")
    rule("└", "┴", "┘")
