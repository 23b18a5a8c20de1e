"""Lines of a screen at any width: aligned, wrapped or cut, and with nothing in them that steers a terminal."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from pipeline.commands.open.layout import drawn, fitted
from pipeline.commands.open.view import Block, Column, Connections, Row, View, prose, sentence
from tests.pipeline.terminal.test_console import ATTACKS

TABLE = Block(
    "Things", (Column("name"), Column("count", is_right=True), Column("wide", from_width=60), Column("what")),
    [
        Row(("a", "1", "x", "one two three four five six seven eight nine ten"), Connections()),
        Row(("beta", "1,000", "y", "short")),
    ],
)  # fmt: skip


def lines(view: View, width: int, wanted: str = "") -> list[str]:
    return [line for one in drawn(view, width, wanted) for line in one.text.plain.split("\n")]


def test_columns_are_aligned_and_the_last_one_is_wrapped_below_itself() -> None:
    assert lines(View("v", (sentence("Hello."), TABLE)), 40) == [
        "  Hello.",
        "",
        "Things",
        "  name  count  what",
        "▸ a         1  one two three four five",
        "               six seven eight nine ten",
        "  beta  1,000  short",
    ]


def test_a_wide_terminal_has_more_columns_and_a_table_of_lines_is_cut() -> None:
    cut = Block(TABLE.title, TABLE.columns, TABLE.rows, is_cut=True)
    assert lines(View("v", (cut,)), 60) == [
        "Things",
        "  name  count  wide  what",
        "▸ a         1  x     one two three four five six seven eigh…",
        "  beta  1,000  y     short",
    ]


def test_only_lines_with_all_words_stay_with_their_headings() -> None:
    view = View("v", (sentence("Hello."), TABLE))
    assert lines(view, 80, "SHORT bet") == ["Things", "  name  count  wide  what", "  beta  1,000  y     short"]
    assert lines(view, 80, "nothing") == ["No line has 'nothing'. Esc shows all lines."]
    assert lines(view, 80, "\x1b[2J") == ["No line has '\\x1b[2J'. Esc shows all lines."]


def test_of_a_way_the_last_names_stay() -> None:
    assert fitted(["a.pcap", "incident", "partition p-1"], 40) == "a.pcap ▸ incident ▸ partition p-1".ljust(40)
    assert fitted(["a.pcap", "incident", "partition p-1"], 20) == "… ▸ partition p-1".ljust(20)
    assert fitted(["a.pcap", "partition payments-2"], 12) == "… ▸ partiti…"
    assert fitted(["\x1b]0;x\x07"], 20) == "\\x1b]0;x\\x07".ljust(20)


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("width", [30, 80])
def test_what_comes_from_the_wire_steers_nothing(attack: str, width: int) -> None:
    hostile = Block(attack, (Column(), Column()), [Row((attack, f"{attack} [red]b[/red]"))])
    shown = lines(View(attack, (hostile, prose([(attack, attack)]), sentence(attack))), width)
    assert all(line.isprintable() for line in shown)
    assert "[red]" in "".join(line.strip() for line in shown).replace("…", "[red]")


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.tuples(*[st.text(max_size=60)] * 3), min_size=1, max_size=4), st.integers(1, 3), st.integers(1, 130),
    st.booleans(),
)  # fmt: skip
def test_no_line_is_wider_than_the_terminal(
    cells: list[tuple[str, str, str]], number: int, width: int, is_cut: bool
) -> None:
    columns = (Column("a name"), Column("count", is_right=True, most=44), Column("what"))[:number]
    rows = [Row(row[:number]) for row in [*cells, ("大", "大", "大大 大")]]
    view = View("v", (Block("A title", columns, rows, is_cut=is_cut),))
    assert all(cell_len(line) <= width and line.isprintable() for line in lines(view, width))
