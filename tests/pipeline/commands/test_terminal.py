"""What commands print into a terminal: as kept in golden files, no wider than it, plain where it must be."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pipeline.cli import app
from pipeline.commands.on_demand import MODULES
from pipeline.tables import TABLES
from pipeline.terminal.lines import Lines, columns_of, cut
from tests.paths import CAPTURES, ROOT
from tests.pipeline.commands.golden import FOLDER, PRINTED, WIDTHS, file_of, make_places, printed

STUCK = str(CAPTURES / "stuck_commit.pcap")
SMALL = str(CAPTURES / "version_negotiation.pcap")
_NOT_CUT = re.compile(r"decode_records|diagnose|findings|sql_(markdown|csv|json|no_)|describe_view")
"""What goes to programs and documents, or is broken by the terminal."""


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return make_places(tmp_path_factory.mktemp("places"))


@pytest.mark.parametrize("columns", WIDTHS)
@pytest.mark.parametrize("name", PRINTED)
def test_as_kept(name: str, columns: int, places: dict[str, Path]) -> None:
    kept = file_of(name, columns).read_text(encoding="utf-8")
    assert printed(PRINTED[name], columns, places) == kept, "python -m tests.pipeline.commands.golden writes it again"


def test_no_kept_line_is_wider_than_its_terminal_and_none_steers_it() -> None:
    files = sorted(FOLDER.iterdir())
    assert {file.name for file in files} == {file_of(name, width).name for name in PRINTED for width in WIDTHS}
    for file in files:
        width = int(file.suffixes[-2][1:])
        for line in file.read_text(encoding="utf-8").splitlines():
            # CSV in a file is as it was asked for; on a terminal: test_csv_steers_no_terminal
            assert line.isprintable() or file.name.startswith("sql_csv"), file
            assert _NOT_CUT.match(file.name) or columns_of(line) <= width, (file, line)


@pytest.mark.parametrize("columns", [40, 60, 100])
def test_tables_and_columns_fit_any_terminal(columns: int) -> None:
    for arguments in (["tables"], *(["describe", name] for name in TABLES)):
        out = CliRunner().invoke(app, arguments, env={"COLUMNS": str(columns)}).stdout
        lines = out.splitlines()
        longest = max(len(word) for word in re.split(r"\s+", out))
        assert lines
        assert max(map(len, lines[3:])) <= max(columns, 20 + 2 * longest)
    assert all(name in CliRunner().invoke(app, ["tables"]).stdout for name in TABLES)


@pytest.mark.parametrize(
    ("asked", "meant"),
    [("gold.findigs", "gold.findings"), ("findings", None), ("exchange", "silver.exchanges"), ("lag", "consumer_lag")],
)
def test_describe_knows_which_table_was_meant(asked: str, meant: str | None) -> None:
    done = CliRunner().invoke(app, ["describe", asked])
    assert (done.exit_code == 0) == (meant is None)
    assert meant is None or f"did you mean {meant}?" in str(done.exception)


def test_a_line_is_cut_by_columns_not_characters() -> None:
    lines = Lines(width=10, colour=False)
    assert lines.text([("12345", ""), ("678901", "red")]) == "123456789…"
    assert lines.text([("日本語日本語", "")]) == "日本語日…"
    assert columns_of(lines.text([("ab日本語日本語", "")])) <= 10
    assert lines.text([("a\x1b[31m", ""), ("b", "")]) == "a\\x1b[31mb"
    assert cut("abc", 3) == "abc"
    assert Lines(width=0, colour=False).text([("x" * 500, "")]) == "x" * 500
    assert Lines(width=0, colour=True).text([("x", "red"), ("", "dim"), ("y", "")]) == "\x1b[31mx\x1b[0my"


def test_into_a_file_lines_go_whole_and_plain() -> None:
    done = CliRunner().invoke(app, ["decode", SMALL], env={"COLUMNS": None})
    assert "…" not in done.stdout
    assert "\x1b" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) > 200


def in_terminal(*arguments: str, seconds: float = 30, **environment: str) -> str:
    """What a program writes to a terminal of 24 lines and 100 columns."""
    ours, theirs = pty.openpty()
    import fcntl  # noqa: PLC0415
    import struct  # noqa: PLC0415
    import termios  # noqa: PLC0415

    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
    inherited = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR", "PAGER")}
    process = subprocess.Popen(
        [sys.executable, "-m", "pipeline.cli", *arguments],
        stdin=theirs, stdout=theirs, stderr=theirs, cwd=ROOT,
        env={**inherited, "TERM": "xterm-256color", **environment},
    )  # fmt: skip
    os.close(theirs)
    found, until = b"", time.monotonic() + seconds
    while time.monotonic() < until:
        if not select.select([ours], [], [], 0.1)[0]:
            continue
        try:
            some = os.read(ours, 65536)
        except OSError:
            break
        found += some
    process.kill()
    process.wait()
    os.close(ours)
    return found.decode()


@pytest.mark.slow
class TestTerminal:
    def test_colours_width_and_no_colour(self) -> None:
        shown = in_terminal("decode", SMALL, "--api", "OffsetCommit", PAGER="cat")
        assert "\x1b[1mOffsetCommit" in shown
        plain = re.sub(r"\x1b\[[0-9;]*m", "", shown).split("\r\n")
        assert len(plain) > 1
        assert max(map(len, plain)) <= 100
        assert "\x1b" not in in_terminal("decode", SMALL, "--api", "OffsetCommit", PAGER="cat", NO_COLOR="1")

    def test_a_pager_gets_all_of_it_with_colours(self, tmp_path: Path) -> None:
        pager = tmp_path / "pager"
        kept = tmp_path / "kept"
        pager.write_text(f'#!/bin/sh\necho "LESS=$LESS" > {kept}\ncat >> {kept}\n', encoding="utf-8")
        pager.chmod(0o755)
        shown = in_terminal("decode", SMALL, PAGER=str(pager))
        text = kept.read_text(encoding="utf-8")
        assert re.sub(r"\x1b\[[0-9;]*m", "", shown) == ""
        assert text.startswith("LESS=FRX\n")
        assert "\x1b[1mOffsetCommit" in text
        assert max(len(re.sub(r"\x1b\[[0-9;]*m", "", line)) for line in text.splitlines()) <= 100

    def test_csv_steers_no_terminal_and_is_as_it_is_in_a_file(self, lake: Path) -> None:
        text = "'a' || chr(27) || ']0;owned' || chr(7) || chr(155) || chr(13) || chr(8238) || 'ß' || chr(10) || 'b'"
        query = ("sql", f'SELECT {text} AS "x\u202e", 1 AS n', "--lake", str(lake), "--csv")
        shown = in_terminal(*query).removesuffix("\r\n").split("\r\n")
        assert shown == ["x\\u202e,n", "a\\x1b]0;owned\\x07\\x9b\\r\\u202eß\\nb,1"]
        kept = subprocess.run([sys.executable, "-m", "pipeline.cli", *query], capture_output=True, cwd=ROOT, check=True)
        assert kept.stdout.decode() == 'x\u202e,n\n"a\x1b]0;owned\x07\x9b\r\u202eß\nb",1\n'

    def test_a_pager_that_ends_early_ends_the_command(self, tmp_path: Path) -> None:
        assert "error" not in in_terminal("decode", STUCK, PAGER="head -2").lower()


def test_commands_of_the_catalog_are_commands() -> None:
    assert {"tables", "describe"} <= MODULES.keys()
