"""An answer as JSON lines and as Markdown, on standard output."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

from pipeline.dashboard.answers import OPTIONS, cell, for_json
from pipeline.terminal.console import json_line, printable

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


def _marked(value: Any) -> str:
    return _MARKUP.sub(r"\\\1", printable(cell(value))).replace("\\<", "&lt;").replace("\\>", "&gt;")
