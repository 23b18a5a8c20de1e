"""Pieces of Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence


def code(text: str) -> str:
    """Text as code; a bar in it would end a table's cell."""
    return f"`{text}`".replace("|", "\\|")


def cell(text: str) -> str:
    """Prose for a cell of a table."""
    words = re.sub(r"\s+", " ", text).strip()
    parts = re.split(r"(`+[^`]*`+)", words)
    shown = (
        part if part.startswith("`") else re.sub(r"([<*\[\]]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9]))", r"\\\1", part)
        for part in parts
    )
    return "".join(shown).replace("|", "\\|")


def table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table, whose cells are Markdown."""
    lines = [titles, ["---"] * len(titles), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
