"""How are files with expected texts rewritten? Those that are not wanted any more go."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path


def write_anew(texts: Iterable[tuple[Path, str]], folder: Path) -> None:
    """Write files of a folder, and remove all others in it."""
    folder.mkdir(exist_ok=True)
    wanted = set()
    for file, text in texts:
        file.write_text(text, encoding="utf-8")
        wanted.add(file)
    for file in folder.iterdir():
        if file not in wanted:
            file.unlink()
