"""Reads from documents the commands that they show, and what they say is printed.

A block of ``console`` holds lines ``$ wirelake …`` with what they print below, at 80 columns; ``…`` stands for lines
left out, and a command continues behind a backslash. All commands of a document run in order in one folder, in which
`tests/captures` is that of the checkout. ``python -m tests.documents`` (`make consoles`) records the blocks again; read
`git diff` before you commit what it wrote.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.paths import ROOT

COLUMNS = 80
LEFT_OUT = "…"
_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PROMPT = "$ wirelake "


@dataclass(frozen=True, slots=True)
class Shown:
    """A command of a document, without ``wirelake``, and the lines below it."""

    command: str
    lines: tuple[str, ...]


def shown_in(text: str) -> Iterator[Shown]:
    """All commands of a document."""
    for block in _BLOCK.findall(text):
        yield from _shown_in_block(block)


def _shown_in_block(block: str) -> Iterator[Shown]:
    for part in re.split(rf"^{re.escape(_PROMPT)}", block, flags=re.MULTILINE)[1:]:
        lines = part.rstrip("\n").split("\n")
        last = next(number for number, line in enumerate(lines) if not line.endswith("\\"))
        yield Shown("\n".join(lines[: last + 1]), tuple(lines[last + 1 :]))


def documents_with_consoles() -> list[Path]:
    """All documents that show what commands print."""
    documents = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [path for path in documents if _BLOCK.search(path.read_text(encoding="utf-8"))]


def printed(command: str, folder: Path) -> list[str]:
    """What a command prints, line by line, without blanks at their ends.

    Raises:
        ValueError: it ends neither well nor with the exit code of critical findings, or complains.
    """
    shell = f'wirelake() {{ "$WIRELAKE_PYTHON" -m pipeline.cli "$@"; }}; wirelake {command}'
    environment = {**os.environ, "COLUMNS": str(COLUMNS), "WIRELAKE_PYTHON": sys.executable}
    done = subprocess.run(
        ["bash", "-c", shell], capture_output=True, text=True, check=False, cwd=folder, env=environment
    )
    if done.returncode not in (0, 1) or done.stderr:
        raise ValueError(f"wirelake {command} ended with {done.returncode}: {done.stderr}")
    return [line.rstrip() for line in done.stdout.splitlines()]


def differences(shown: Shown, out: list[str]) -> list[str]:
    """Lines that a document shows and the command does not print there, or prints and the document does not show."""
    at, may_skip, wrong = 0, False, []
    for line in shown.lines:
        if line == LEFT_OUT:
            may_skip = True
            continue
        found = next((n for n in range(at, len(out)) if out[n] == line), None) if may_skip else at
        if found is None or found >= len(out) or out[found] != line:
            wrong.append(line)
        else:
            at = found + 1
            may_skip = False
    return wrong + ([] if may_skip else out[at:] if not wrong else [])


def recorded(shown: Shown, out: Sequence[str]) -> list[str]:
    """Lines to show of what a command prints now: the parts that were shown before, as alike as can be found."""
    lines: list[str] = []
    at = 0
    parts = list(_parts(shown.lines))
    for number, (is_left_out, part) in enumerate(parts):
        if is_left_out:
            lines.append(LEFT_OUT)
            continue
        first = _most_alike(part[0], out, at) if number else 0
        last = _most_alike(part[-1], out, first) if number + 1 < len(parts) else len(out) - 1
        lines += out[first : last + 1]
        at = last + 1
    return lines


def _parts(lines: Sequence[str]) -> Iterator[tuple[bool, list[str]]]:
    part: list[str] = []
    for line in lines:
        if line != LEFT_OUT:
            part.append(line)
            continue
        if part:
            yield False, part
        yield True, []
        part = []
    if part:
        yield False, part


def _most_alike(line: str, out: Sequence[str], at: int) -> int:
    words = line.split()
    return max(range(at, len(out)), key=lambda n: SequenceMatcher(None, words, out[n].split(), autojunk=False).ratio())


def record(text: str, folder: Path) -> str:
    """A document whose blocks show what its commands print now."""

    def block(found: re.Match[str]) -> str:
        shown = [(one, recorded(one, printed(one.command, folder))) for one in _shown_in_block(found[1])]
        lines = [line for one, out in shown for line in (f"{_PROMPT}{one.command}", *out)]
        return "\n".join(("```console", *lines, "```"))

    return _BLOCK.sub(block, text)


if __name__ == "__main__":
    os.environ["PYTHONPATH"] = str(ROOT)
    for document in documents_with_consoles():
        with TemporaryDirectory() as place:
            Path(place, "tests").symlink_to(ROOT / "tests")
            document.write_text(record(document.read_text(encoding="utf-8"), Path(place)), encoding="utf-8")
