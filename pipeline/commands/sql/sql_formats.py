"""An answer as JSON lines, as Markdown and as a line a column, on standard output."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

from pipeline.dashboard.answers import OPTIONS, cell, for_json
from pipeline.terminal.console import json_line, printable
from pipeline.terminal.lines import columns_of

_MARKUP = re.compile(r"([\\`*\[\]|<>~]|(?<!\w)[_#]|_(?!\w))")
"""What Markdown or the HTML in it would not show as it is."""


def write_json(row: dict[str, Any]) -> None:
    """Write an object as a line, at once."""
    sys.stdout.buffer.write(json_line(row, for_json, OPTIONS))
    sys.stdout.buffer.flush()


def write_markdown(names: Sequence[str], rows: Iterable[tuple[Any, ...]]) -> None:
    """Write a table of GitHub's Markdown; texts are shown as they are."""
    for number, row in enumerate(chain([tuple(names)], rows)):
        sys.stdout.write(f"| {' | '.join(_marked(value) for value in row)} |\n")
        if number == 0:
            sys.stdout.write(f"|{'---|' * len(names)}\n")
    sys.stdout.flush()


def write_lines(names: Sequence[str], rows: Iterable[tuple[Any, ...]]) -> None:
    """Write each row as lines, one a column: its name and its value, whole; a line with the row's number before."""
    heads = [printable(name) for name in names]
    width = max(map(columns_of, heads), default=0)
    for number, row in enumerate(rows, 1):
        sys.stdout.write(f"-- row {number:,}\n")
        for head, value in zip(heads, row, strict=True):
            sys.stdout.write(f"{head}{' ' * (width - columns_of(head))}  {shown(value)}\n".rstrip(" "))
    sys.stdout.flush()


def shown(value: Any) -> str:
    """A value as a terminal shows it; times without the letters of ISO 8601, UTC."""
    if value is None:
        return "NULL"
    text = cell(value)
    return printable(text.replace("T", " ", 1).removesuffix("Z") if hasattr(value, "hour") else text)


def _marked(value: Any) -> str:
    return _MARKUP.sub(r"\\\1", printable(cell(value))).replace("\\<", "&lt;").replace("\\>", "&gt;")
