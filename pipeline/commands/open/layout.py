"""From a view to lines of a terminal, at any width: the one place where texts of the wire are made printable."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from pipeline.commands.open.view import Block, Column, Row, View
from pipeline.terminal.console import Console, printable
from pipeline.terminal.lines import cut

_MARK, _NO_MARK = "▸ ", "  "
"""What a row that opens begins with, and any other."""
_GAP = 2
_WIDEST = 2
"""Columns of a terminal that one character takes at most."""
_LEAST_LAST, _LEAST = 20, 6
"""Columns of a terminal that the last column gets if possible, and any other at least."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """A line or some lines of a screen that belong together; ``row`` is None of headings."""

    text: Text
    row: Row | None = None


def drawn(view: View, width: int, wanted: str = "") -> list[Drawn]:
    """The lines of a view.

    Args:
        view: what is shown.
        width: columns of the terminal.
        wanted: words that a row must have to be shown, in any case and order; empty: all are shown.
    """
    words = wanted.casefold().split()
    found: list[Drawn] = []
    for block in view.blocks:
        rows = [row for row in block.rows if _has(row, words)]
        if rows or not (block.rows or words):
            found += _block(block, rows, width, is_first=not found)
    if not found:
        found.append(Drawn(Text(printable(f"No line has {wanted!r}. Esc shows all lines."), "yellow")))
    return found


def _has(row: Row, words: Sequence[str]) -> bool:
    text = printable(" ".join(row.cells)).casefold()
    return all(word in text for word in words)


def _block(block: Block, rows: Sequence[Row], width: int, *, is_first: bool) -> Iterator[Drawn]:
    if not is_first:
        yield Drawn(Text())
    if block.title:
        yield Drawn(Text(cut(printable(block.title), width), "bold underline"))
    shown = [at for at, column in enumerate(block.columns) if width >= column.from_width]
    columns = [block.columns[at] for at in shown]
    texts = [[printable(row.cells[at]) for at in shown] for row in rows]
    heads = [column.head for column in columns]
    sizes = _sizes(columns, [heads, *texts], width)
    if any(heads):
        yield Drawn(_line(heads, columns, sizes, width, _NO_MARK, "dim", is_cut=True))
    for row, cells in zip(rows, texts, strict=True):
        mark = _NO_MARK if row.opens is None else _MARK
        yield Drawn(_line(cells, columns, sizes, width, mark, row.style, is_cut=block.is_cut), row)


def _sizes(columns: Sequence[Column], lines: Sequence[Sequence[str]], width: int) -> list[int]:
    """Of all columns but the last, which gives way to none of them."""
    wide = [max(map(cell_len, cells)) for cells in zip(*lines, strict=True)][:-1]
    sizes = [min(size, column.most or width // 4) for size, column in zip(wide, columns, strict=False)]
    room = width - len(_MARK) - _LEAST_LAST - _GAP * len(wide)
    while sizes and sum(sizes) > room and max(sizes) > _LEAST:
        sizes[sizes.index(max(sizes))] -= 1
    return sizes


def _line(
    cells: Sequence[str],
    columns: Sequence[Column],
    sizes: Sequence[int],
    width: int,
    mark: str,
    style: str,
    *,
    is_cut: bool,
) -> Text:
    text = Text(mark, style)
    for cell, column, size in zip(cells, columns, sizes, strict=False):
        held = cut(cell, size)
        pad = " " * (size - cell_len(held))
        text.append(f"{pad}{held}" if column.is_right else f"{held}{pad}", column.style if not style else "")
        text.append(" " * _GAP)
    indent = cell_len(text.plain)
    room = width - indent
    if room < 1:  # of so narrow a terminal the last column has nothing
        text.truncate(width)
        return text
    last = cut(cells[-1], room) if is_cut or room < _WIDEST else _wrapped(cells[-1], room, indent)
    text.append(last, columns[-1].style if not style else "")
    text.rstrip()
    return text


def _wrapped(text: str, room: int, indent: int) -> str:
    """A text in lines of no more than ``room`` columns, each but the first after ``indent`` blanks."""
    console = Console(file=io.StringIO(), width=room)
    lines = Text(text).wrap(console, room, overflow="fold")
    return f"\n{' ' * indent}".join(line.plain.rstrip() for line in lines)


def fitted(parts: Sequence[str], width: int) -> str:
    """The names of a way in one line, the last of them in full as far as there is room, those before it cut first."""
    names = [printable(part) for part in parts]
    text = " ▸ ".join(names)
    while cell_len(text) > width and len(names) > 1:
        names.pop(0)
        text = f"… ▸ {' ▸ '.join(names)}"
    return set_cell_size(cut(text, width), width)
