"""Each recording is told as its golden file has it, in words that can be acted on."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.pipeline.analysis.incidents.golden import FOLDER, captures, told_of

_FAULTS = re.compile(r"\bNone\b|\bnan\b|\?\?|^[A-Z]+ .*\ba client\b(?! without)|\{|\}| \(\)", re.MULTILINE)
"""What a text has where a name is missing; braces are allowed in commands of MongoDB's shell."""
_SHELL = re.compile(r"`[^`]*`")


@pytest.mark.parametrize("capture", captures(), ids=lambda path: path.stem)
def test_it_is_told_as_it_was_read(capture: Path) -> None:
    golden = (FOLDER / f"{capture.stem}.txt").read_text(encoding="utf-8")
    assert told_of(capture) == golden


def test_no_text_lacks_a_name() -> None:
    for file in sorted(FOLDER.glob("*.txt")):
        text = _SHELL.sub("x", file.read_text(encoding="utf-8"))
        assert _FAULTS.findall(text) == [], file.name
    assert {file.stem for file in FOLDER.glob("*.txt")} == {capture.stem for capture in captures()}


def test_a_trouble_alone_fits_a_screen() -> None:
    for name in ("stuck_commit", "stalled_lso"):
        assert len((FOLDER / f"{name}.txt").read_text(encoding="utf-8").splitlines()) <= 24
