"""Which columns of an answer a terminal shows, and what its last lines say of the others."""

from __future__ import annotations

import contextlib
import io
from typing import Any

import pytest

from pipeline.commands.sql.sql_table import show_table
from pipeline.terminal.lines import Lines

NAMES = ["group_id", "topic", "partition", "seen", "member", "leader", "lag", "client", "more", "cluster"]
TYPES = ["varchar", "varchar", "integer", "timestamptz", "varchar", "varchar", "bigint", "varchar", "bigint", "varchar"]


def a_row(number: int) -> tuple[Any, ...]:
    return (
        f"group-{number}", f"topic-{number}", number, f"2026-11-21 04:46:0{number}", None, "all the same", number * 100,
        f"client-{number:020}", number, f"cluster-{number:020}",
    )  # fmt: skip


def shown(width: int, count: int = 3, most: int = 40) -> tuple[list[str], list[str]]:
    """The names of the columns that are shown, and the lines below the table."""
    with contextlib.redirect_stdout(out := io.StringIO()):
        show_table(Lines(width, colour=False), NAMES, TYPES, map(a_row, range(count)), most)
    text = out.getvalue().splitlines()
    assert all(len(line) <= width or not width for line in text)
    end = next(number for number, line in enumerate(text) if line.startswith("└"))
    return text[1].replace("│", " ").split(), text[end + 1 :]


def test_what_says_least_goes_first_and_the_last_before_the_first() -> None:
    assert shown(130)[0] == [*(name for name in NAMES if name not in ("member", "leader")), "…"]
    assert shown(100)[0] == ["group_id", "topic", "partition", "lag", "client", "more", "…"]
    assert shown(60)[0] == ["group_id", "topic", "partition", "lag", "…"]
    assert shown(10)[0][0].startswith("group")


def test_all_is_shown_where_there_is_room() -> None:
    for width in (0, 250):
        assert shown(width) == (NAMES, ["3 rows"])


def test_of_one_row_no_column_is_always_the_same() -> None:
    assert "leader" in shown(130, count=1)[0]


@pytest.mark.parametrize(
    ("count", "most", "told"),
    [
        (3, 40, "3 rows, 10 columns (6 shown: name those you want, or --format line for all)"),
        (1, 40, "1 row, 10 columns (5 shown: name those you want, or --format line for all)"),
        (9, 4, "9 rows (4 shown: --rows N, or --format csv for all), 10 columns (6 shown)"),
    ],
)
def test_it_says_how_to_see_the_rest(count: int, most: int, told: str) -> None:
    (first, second) = shown(80, count, most)[1]
    assert second.startswith("not shown: ")
    assert first == told


def test_what_people_look_for_stays() -> None:
    names, types = ["agent_id", "size", "port", "api_name", "client_id", "error_name"], ["varchar"] * 6
    rows = [(f"agent {n}", f"size {n}", f"port {n}", f"Fetch{n}", f"app-{n}", f"ERROR_{n}") for n in range(3)]
    with contextlib.redirect_stdout(out := io.StringIO()):
        show_table(Lines(42, colour=False), names, types, rows, 40)
    assert out.getvalue().splitlines()[1].replace("│", " ").split() == ["api_name", "client_id", "error_name", "…"]
