"""Documents show what their commands print."""

from __future__ import annotations

import gzip
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from pipeline.cli import app
from tests.documents import COLUMNS, Shown, differences, documents_with_consoles, printed, recorded, shown_in
from tests.paths import CAPTURES, ROOT
from tests.pipeline.lakes import diagnosed_lake

_TYPED = re.compile(r"^```(?:sh|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"(?:^|[|;&] *)(?:\$ )?wirelake ([a-z]+)([^|;&#\n]*)", re.MULTILINE)


@pytest.mark.slow
@pytest.mark.parametrize("document", documents_with_consoles(), ids=lambda path: path.name)
def test_commands_print_what_the_document_shows(
    document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    shown = list(shown_in(document.read_text(encoding="utf-8")))
    assert shown
    assert [line for one in shown for line in (*one.command.split("\n"), *one.lines) if len(line) > COLUMNS] == []
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


def test_a_command_goes_on_behind_a_backslash() -> None:
    text = "```console\n$ wirelake sql \\\n    x\nrow\n$ wirelake top\n```\n"
    assert list(shown_in(text)) == [Shown("sql \\\n    x", ("row",)), Shown("top", ())]


def test_what_is_recorded_anew() -> None:
    out = ["head", "a 1 new", "b", "c 2 new", "end"]
    assert recorded(Shown("", ("head", "a 1", "c 2", "end")), out) == out
    assert recorded(Shown("", ("head", "…", "c 2", "…")), out) == ["head", "…", "c 2 new", "…"]
    assert recorded(Shown("", ("…", "a 1", "b", "c 2", "…", "end")), out) == ["…", *out[1:4], "…", "end"]


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


_ELSEWHERE = re.compile(
    r"s3://|/var/|/etc/|\$|\bkeys\b|with-keys|message\.bin| -(?: |$)|--follow |--follow$|--open$|--conf"
    r"|\bops\.|^top (?!.*--once)"
)
"""What a command needs that is not in the folder: stores, rings, keys, programs, a browser, a job's tables, an end."""
_RUN = ("diagnose", "top", "decode", "explain", "capture read", "sql", "findings", "tables", "describe")
"""Commands that end by themselves and need neither Java nor a privilege; others have tests of their own."""


def _typed_in(document: Path) -> Iterator[str]:
    for block in _TYPED.findall(document.read_text(encoding="utf-8")):
        for line in block.replace("\\\n", " ").splitlines():
            for part in re.split(r" (?:\||\|\||&&|>>?|#) ", f"{line.removeprefix('$ ')} # "):
                command = part.strip().removeprefix("wirelake ")
                if part.strip() != command and command.startswith(_RUN) and not _ELSEWHERE.search(command):
                    yield command


@pytest.mark.slow
def test_commands_of_all_documents_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(CAPTURES / "stuck_commit.pcap", "incident.pcap")
    shutil.copy(CAPTURES / "mongodb" / "plain.pcap", "shop.pcap")
    Path("incident.pcapng.gz").write_bytes(gzip.compress(Path("incident.pcap").read_bytes()))
    Path("payload.key").write_text("0" * 64)
    Path("tests").symlink_to(ROOT / "tests")
    for lake in ("lake", "demo-lake"):
        diagnosed_lake(tmp_path / lake, "stuck_commit", "mongodb/troubled_mongodb")
    documents = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    commands = dict.fromkeys(command for document in documents for command in _typed_in(document))
    assert len(commands) >= 45
    for command in commands:
        done = CliRunner().invoke(app, shlex.split(command))
        assert done.exception is None or isinstance(done.exception, SystemExit), (command, done.exception)
        assert done.exit_code in (0, 1), command
