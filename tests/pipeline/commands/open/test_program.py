"""The program by its keys and the mouse, at two sizes of a terminal, without one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from rich.cells import cell_len
from textual.pilot import Pilot
from textual.widgets import OptionList

from pipeline.commands.open.app import KEYS, Help, Room, Walk
from pipeline.commands.open.screens import Rooms
from pipeline.commands.open.source import Source
from pipeline.dashboard.queries.scope import ask
from pipeline.dashboard.sql import connect_tables
from pipeline.tables import TABLES
from pipeline.terminal.console import printable
from tests.pipeline.commands.open.walks import opened

SMALL, LARGE = (80, 24), (120, 40)


def drive(source: Source, size: tuple[int, int], steps: Callable[[Pilot[int]], Awaitable[None]]) -> Walk:
    """The program, while ``steps`` press its keys."""
    app = Walk(Rooms(source))

    async def run() -> None:
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            await steps(pilot)

    asyncio.run(run())
    return app


def screen(pilot: Pilot[int]) -> list[str]:
    """The lines that a person sees."""
    return [strip.text.rstrip() for strip in pilot.app.screen._compositor.render_strips()]


async def press(pilot: Pilot[int], *keys: str) -> list[str]:
    for key in keys:
        await pilot.press(key)
        await pilot.pause()
    return screen(pilot)


async def look_at(pilot: Pilot[int], text: str) -> None:
    """Go down to the line that has a text."""
    room = pilot.app.screen
    assert isinstance(room, Room)
    lines = room.query_one(OptionList)
    for _ in range(lines.option_count):
        if text in " ".join(str(lines.get_option_at_index(lines.highlighted or 0).prompt).split()):
            return
        await press(pilot, "down")
    raise AssertionError(f"no line has {text}: {screen(pilot)}")


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_from_incidents_down_to_bytes_and_back(size: tuple[int, int]) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        first = screen(pilot)
        assert first[0].strip().endswith("stuck_commit.pcap")
        assert any("▸ CRITICAL  since 04:46:08  billing-1 (127.0.0.1)" in line for line in first)
        assert "enter open" in first[-1]
        assert "q quit" in first[-1]
        incident = await press(pilot, "enter")
        assert any(line.startswith("  now ") for line in incident)
        assert "▸ 04:46:08.92  billing-1 commits payments-2 at 24" in incident
        await look_at(pilot, "Partition payments-2")
        partition = await press(pilot, "enter")
        assert partition[0].endswith("▸ partition payments-2")
        await look_at(pilot, "commits 28")
        message = await press(pilot, "enter")
        assert any("says      billing payments-3 @27, payments-2 @28" in line for line in message)
        await look_at(pilot, "groupId")
        data = await press(pilot, "enter")
        assert "  000014  08 62 69 6c 6c 69 6e 67                          .billing" in data
        for name in ("OffsetCommit v9", "partition payments-2", "incident", "stuck_commit.pcap"):
            assert (await press(pilot, "escape"))[0].endswith(name)
        assert (await press(pilot, "escape"))[0].endswith("stuck_commit.pcap"), "there is nothing before the first one"
        assert all(len(line) <= size[0] for line in screen(pilot))
        await press(pilot, "q")

    assert drive(opened(), size, steps).return_code == 0


def test_who_comes_back_is_where_they_were() -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "enter")
        await look_at(pilot, "billing-2 commits payments-2")
        before = pilot.app.screen.query_one(OptionList).highlighted
        await press(pilot, "right", "left")
        assert pilot.app.screen.query_one(OptionList).highlighted == before

    drive(opened(), SMALL, steps)


def test_a_line_is_looked_for() -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "enter", "slash", *"Q REB")
        assert screen(pilot)[1:-2] == ["No line has 'Q REB'. Esc shows all lines.", *[""] * 20]
        await press(pilot, "escape", "slash", *"billing-2", "space", *"times", "enter")
        found = [line for line in screen(pilot) if line.startswith("▸")]
        assert found == ["▸ 04:46:09.73  billing-2 commits payments-2 at 28 to 115 (30 times in 21.0 s,"]
        assert any("says" in line for line in await press(pilot, "enter"))
        assert [line for line in await press(pilot, "escape") if line.startswith("▸")] == found
        every = await press(pilot, "escape")
        assert sum(line.startswith("▸") for line in every) > 3
        assert every[0].endswith("▸ incident")

    drive(opened(), SMALL, steps)


def test_what_is_looked_for_may_have_a_slash() -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "enter", "slash", *"billing", "slash", *"pay")
        found = [line for line in screen(pilot) if line.startswith("▸")]
        assert len(found) == 3
        assert all("billing/payments-2" in line for line in found)

    drive(opened(), SMALL, steps)


def test_the_keys_are_explained() -> None:
    async def steps(pilot: Pilot[int]) -> None:
        text = "\n".join(await press(pilot, "question_mark"))
        for keys, does in KEYS:
            assert keys in text
            assert does in text
        await press(pilot, "escape")
        assert not isinstance(pilot.app.screen, Help)

    drive(opened(), SMALL, steps)


def test_a_click_opens_a_line() -> None:
    async def steps(pilot: Pilot[int]) -> None:
        row = next(number for number, line in enumerate(screen(pilot)) if "▸ billing" in line)
        await pilot.click(offset=(4, row))
        await pilot.pause()
        assert screen(pilot)[0].endswith("▸ group billing")

    drive(opened(), SMALL, steps)


def test_another_size_makes_other_lines() -> None:
    async def steps(pilot: Pilot[int]) -> None:
        whole = "billing-1 (127.0.0.1) sets group billing back to offset 24"
        await press(pilot, "enter")
        await pilot.resize_terminal(40, 20)
        await pilot.pause()
        narrow = await press(pilot, "escape")
        assert all(len(line) <= 40 for line in narrow)
        assert any("billing-1" in line for line in narrow)
        await pilot.resize_terminal(120, 20)
        await pilot.pause()
        assert not any(whole in line for line in narrow)
        assert any(whole in line for line in screen(pilot))

    drive(opened(), SMALL, steps)


@pytest.mark.parametrize("size", [SMALL, LARGE])
@pytest.mark.parametrize(
    "name", ["\x1b[2J\x1b[H", "[b]x[/b] [@click=app.quit]y[/]", "\u202egro\u2066", "大" * 40, "a\nb\rc\x9b31m"]
)
def test_names_of_the_wire_are_neither_markup_nor_controls(name: str, size: tuple[int, int]) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        seen = screen(pilot)
        for target in ("again and again", "offsets over time", "commits 24", "Its connection"):
            await look_at(pilot, target)
            seen += await press(pilot, "enter")
        seen += await press(pilot, *["escape"] * 4)
        await look_at(pilot, "Messages")
        seen += await press(pilot, "enter", "enter")
        assert printable(name)[:8] in "\n".join(seen)
        assert all(line.isprintable() and cell_len(line) <= size[0] for line in seen)
        assert pilot.app.is_running

    app = drive(renamed(name), size, steps)
    assert not app.rooms.errors


def renamed(name: str) -> Source:
    """What the stuck group's capture holds, with a name of the wire in place of the client's and the topic's."""
    source = opened()
    tables = {table: _renamed(ask(source.connection, f"FROM {table}"), name) for table in TABLES}
    return replace(source, name=name, connection=connect_tables(tables))


def _renamed(rows: pa.Table, name: str) -> pa.Table:
    for number, field in enumerate(rows.schema):
        if pa.types.is_string(field.type):
            is_json = field.name in ("links", "story", "details", "moments") or field.name.endswith(("body", "header"))
            new = orjson.dumps(name).decode()[1:-1] if is_json else name
            column = rows.column(number)
            for old in ("billing-1", "payments"):
                column = pc.replace_substring(column, old, new)
            rows = rows.set_column(number, field, column)
    return rows
