"""Lines for a terminal, written many thousand times: escaped, cut to its width, coloured only where that is wanted."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterable

from rich.cells import cell_len, set_cell_size

from pipeline.terminal.console import Console, printable

Part = tuple[str, str]
"""A piece of a line, and its style: a key of STYLES."""
STYLES = {
    "": "", "bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34", "magenta": "35",
    "cyan": "36", "bold red": "1;31",
}  # fmt: skip
"""Names of styles and their codes (ECMA-48, SGR)."""
_UNCOMMON = re.compile("[^\x20-\x7e←→…]")
"""Characters that may take two columns, or none."""


def terminal_width() -> int:
    """Columns of the terminal, or as ``COLUMNS`` says; 0: the output goes to a file or a pipe, and is not cut."""
    return shutil.get_terminal_size((0, 0)).columns


def wants_colour() -> bool:
    """Whether standard output is a terminal that shows colours, and ``NO_COLOR`` is not set (no-color.org)."""
    console = Console()
    return console.color_system is not None and not console.no_color


def columns_of(text: str) -> int:
    """Columns that a text takes, escaped as it is printed."""
    return cell_len(text) if _UNCOMMON.search(text) else len(text)


def cut(text: str, columns: int) -> str:
    """A text of no more columns, with ``…`` in place of what does not fit."""
    if columns_of(text) <= columns:
        return text
    if columns <= 0:
        return ""
    return (set_cell_size(text, columns - 1) if _UNCOMMON.search(text) else text[: columns - 1]).rstrip() + "…"


class Lines:
    """Writes lines to standard output.

    Args:
        width: columns that a line has at most; 0: any number.
        colour: whether styles show.
    """

    def __init__(self, width: int | None = None, colour: bool | None = None) -> None:
        self.width = terminal_width() if width is None else width
        self._colour = wants_colour() if colour is None else colour

    def write(self, parts: Iterable[Part]) -> None:
        """Write one line; what is in its parts cannot steer the terminal."""
        sys.stdout.write(self.text(parts) + "\n")

    def text(self, parts: Iterable[Part]) -> str:
        """The line as it is written."""
        shown, left = [], self.width
        for raw, style in parts:
            text = printable(raw)
            if self.width:
                if left <= 0:
                    break
                text = cut(text, left)
                left = 0 if text.endswith("…") and not raw.endswith("…") else left - columns_of(text)
            shown.append((text, style))
        while shown and not (last := shown[-1][0].rstrip()):
            shown.pop()
        if shown:
            shown[-1] = last, shown[-1][1]
        if not self._colour:
            return "".join(text for text, _ in shown)
        return "".join(f"\x1b[{STYLES[style]}m{text}\x1b[0m" if style and text else text for text, style in shown)
