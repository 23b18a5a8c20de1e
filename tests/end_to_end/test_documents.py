"""Do documents show what is printed when their commands are typed in?"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import typer

from pipeline.cli import app
from tests.documents import Shown, differences, printed, shown_in
from tests.paths import ROOT

_TYPED = re.compile(r"^```(?:sh|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"(?:^|[|;&] *)(?:\$ )?wirelake ([a-z]+)([^|;&#\n]*)", re.MULTILINE)


@pytest.mark.slow
@pytest.mark.parametrize("document", ["README.md", "docs/tutorial.md"])
def test_commands_print_what_the_document_shows(document: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    shown = list(shown_in((ROOT / document).read_text(encoding="utf-8")))
    assert shown
    for one in shown:
        assert differences(one, printed(one.command, tmp_path)) == [], one.command


def test_what_differs() -> None:
    out = ["a", "b", "", "c"]
    assert differences(Shown("", ("a", "b", "", "c")), out) == []
    assert differences(Shown("", ("…", "b", "…")), out) == []
    assert differences(Shown("", ("a", "…", "c")), out) == []
    assert differences(Shown("", ("a", "c")), out) == ["c"]
    assert differences(Shown("", ("…", "b")), out) == ["", "c"]
    assert differences(Shown("", ("…", "c", "…", "a")), out) == ["a"]


def test_commands_and_options_of_all_documents_exist() -> None:
    root = typer.main.get_command(app)
    context = typer.Context(root, info_name="wirelake")
    unknown = []
    for document in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        for block in _TYPED.findall(document.read_text(encoding="utf-8")):
            for name, rest in _COMMAND.findall(block.replace("\\\n", " ")):
                command: Any = root.get_command(context, name)  # type: ignore[attr-defined]
                inner = getattr(command, "commands", {}) if command else {}
                command = inner.get(rest.split()[0], command) if inner and rest.split() else command
                known = {opt for one in getattr(command, "params", ()) for opt in (*one.opts, *one.secondary_opts)}
                given = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", re.sub(r"\"[^\"]*\"|'[^']*'", "", rest)))
                if command is None or not given <= known | {"--help"}:
                    unknown.append((document.name, name, sorted(given - known)))
    assert unknown == []
