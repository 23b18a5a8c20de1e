"""What is shown cannot steer the terminal, whatever came over the wire."""

from __future__ import annotations

import io
import json
import logging
import sys
import unicodedata

import pytest
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from pipeline.terminal.console import Console, LogFormatter, json_line, printable, printable_lines

STEERING = [chr(c) for c in range(sys.maxunicode + 1) if unicodedata.category(chr(c)) in ("Cc", "Cf", "Zl", "Zp")]
ATTACKS = [
    "\x1b]0;title\x07",
    "\x1b[2J\x1b[H",
    "\x9b31m",
    "a\rb",
    "\x08\x08\x08",
    "\x7f",
    "user\u202egpj.exe",
    "\u2066isolate\u2069",
    "\u200fright",
    "\ufeffbom",
    "\U000e0041tag",
    "\x1b]8;;http://evil\x1b\\click\x1b]8;;\x1b\\",
]


def drawn(*renderables: object) -> str:
    file = io.StringIO()
    console = Console(file=file, width=200, color_system=None)
    for renderable in renderables:
        console.print(renderable)
    return file.getvalue()


@pytest.mark.parametrize("attack", ATTACKS)
def test_whatever_is_drawn_has_nothing_in_it_that_steers(attack: str) -> None:
    table = Table(attack)
    table.add_row(attack)
    table.add_row(Text(attack))
    shown = drawn(attack, Text(attack), table, Panel(attack, title=attack))
    assert shown.replace("\n", "").isprintable()


def test_styles_of_ours_stay() -> None:
    file = io.StringIO()
    Console(file=file, force_terminal=True, color_system="standard", width=80).print(Text("\x1b[2Jx", "bold red"))
    assert file.getvalue() == "\x1b[1;31m\\x1b[2Jx\x1b[0m\n"


def test_all_that_steers_is_escaped_and_all_else_is_not() -> None:
    assert all(not printable(c).strip("\\").startswith(c) and printable(c).isprintable() for c in STEERING)
    assert printable("größe 大 \U0001f600") == "größe 大 \U0001f600"
    assert printable_lines("a\n\tb\x1b") == "a\n\tb\\x1b"


def test_json_means_the_same_and_steers_nothing() -> None:
    text = "".join(STEERING) + "größe 大 \U0001f600 \\u202e"
    line = json_line({"name": text, text: 1})
    assert json.loads(line) == {"name": text, text: 1}
    shown = line.decode()
    assert shown.endswith("\n")
    left = {c for c in shown[:-1] if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp")}
    assert left <= {
        "\u0600",
        "\u0601",
        "\u0602",
        "\u0603",
        "\u0604",
        "\u0605",
        "\u06dd",
        "\u070f",
        "\u0890",
        "\u0891",
        "\u08e2",
        "\U000110bd",
        "\U000110cd",
    }  # visible marks of scripts that are before numbers
    assert "größe 大 \U0001f600" in shown
    assert json_line({"a": 1}) == b'{"a":1}\n'


def test_a_log_line_is_escaped() -> None:
    record = logging.LogRecord("x", logging.WARNING, "", 0, "topic %s", ("\x1b[2Ja\u202e",), None)
    assert LogFormatter("%(message)s").format(record) == "topic \\x1b[2Ja\\u202e"


def test_a_file_gets_no_columns_that_are_only_filled() -> None:
    file = io.StringIO()
    console = Console(file=file, width=20)
    grid = Table.grid(padding=(0, 2))
    grid.add_row("a", "two words  ")
    grid.add_row("bcd", "")
    console.print(grid)
    console.print(Text("  inner  kept  "))
    console.print("x ", end="")
    assert file.getvalue() == "a    two words\nbcd\n  inner  kept\nx "


def test_brackets_and_colons_are_printed_as_they_stand() -> None:
    table = Table("[bold]head[/]")
    table.add_row("pip install '.[spark]' :warning:")
    text = drawn("lake[red]x[/] :smile:", table)
    assert "lake[red]x[/] :smile:" in text
    assert "pip install '.[spark]' :warning:" in text
    assert "[bold]head[/]" in text
