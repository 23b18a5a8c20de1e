"""Reads from documents the commands that they show, and what they say is printed.

A block of ``console`` holds lines ``$ wirelake …`` with what they print below; ``…`` stands for lines left out. All
commands of a document run in order in one folder, in which `tests/captures` is that of the checkout.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

COLUMNS = 120
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
        for part in re.split(rf"^{re.escape(_PROMPT)}", block, flags=re.MULTILINE)[1:]:
            command, *lines = part.rstrip("\n").split("\n")
            yield Shown(command, tuple(lines))


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
