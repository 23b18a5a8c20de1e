"""What is walked through is read again while it grows, and does not stay in memory."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pyarrow as pa
import pytest

from pipeline.capture.packets.packet import CaptureError
from pipeline.commands.open.app import Walk
from pipeline.commands.open.background import Apart
from pipeline.commands.open.growing import Growing
from pipeline.commands.open.screens import Rooms
from pipeline.commands.open.source import Reading, judge_into, opened
from pipeline.config.settings import Settings
from pipeline.dashboard.queries.scope import ask
from pipeline.errors import UserError
from tests.paths import CAPTURES
from tests.pipeline.commands.open.test_program import SMALL, press, screen

WHOLE = (CAPTURES / "stuck_commit.pcap").read_bytes()
MOST_S = 300
"""A busy machine judges within that time."""


@pytest.fixture
def growing(tmp_path: Path) -> Growing:
    """A capture of which half is there."""
    (tmp_path / "growing.pcap").write_bytes(WHOLE[: len(WHOLE) // 2])
    (tmp_path / "tables").mkdir()
    return Growing([str(tmp_path / "growing.pcap")], Settings(), Reading(), tmp_path / "tables")


@pytest.mark.slow
def test_a_screen_shows_what_came_since(growing: Growing, tmp_path: Path) -> None:
    rooms = Rooms(growing.source())
    assert not growing.has_changed

    async def run() -> None:
        app = Walk(rooms, growing)
        async with app.run_test(size=SMALL) as pilot:
            await pilot.pause()
            before = screen(pilot)
            assert not any("1,330 exchanges" in line for line in before)
            incident = await press(pilot, "enter")
            (tmp_path / "growing.pcap").write_bytes(WHOLE)
            ends = time.monotonic() + MOST_S
            while screen(pilot) == incident and time.monotonic() < ends:
                await asyncio.sleep(0.2)
                await pilot.pause()
            assert screen(pilot)[0].endswith("▸ incident")
            assert any("(30 times in 21.0 s" in line for line in screen(pilot))
            assert any("1,330 exchanges" in line for line in await press(pilot, "escape"))

    asyncio.run(run())
    assert list((tmp_path / "tables").iterdir()) == [], "what is mapped stays without its name"


def test_tables_are_files_and_not_in_memory(tmp_path: Path) -> None:
    places = [str(CAPTURES / "stuck_commit.pcap")]
    judged = judge_into(tmp_path, places, Settings(), Reading())
    written = sum(file.stat().st_size for file in tmp_path.iterdir())
    before = pa.total_allocated_bytes()
    source = opened(places, judged, tmp_path, Settings())
    assert written > 5_000_000
    assert pa.total_allocated_bytes() - before < written / 10
    assert ask(source.connection, "SELECT count(*) AS n FROM silver.exchanges")["n"][0].as_py() == 1330


def _ends() -> None:
    raise SystemExit(3)


def _fails(text: str) -> None:
    raise CaptureError("none.pcap", text)


def _takes_too_much() -> None:
    raise MemoryError


def test_work_apart_answers_fails_or_ends() -> None:
    apart = Apart()
    assert apart.run(len, "four", is_quiet=True) == 4
    with pytest.raises(UserError, match=r"none\.pcap: why"):
        apart.run(_fails, "why", is_quiet=True)
    with pytest.raises(MemoryError):
        apart.run(_takes_too_much, is_quiet=True)
    with pytest.raises(UserError, match="ended with 3"):
        apart.run(_ends, is_quiet=True)
    apart.close()
    with pytest.raises(UserError, match="closed"):
        apart.run(len, "four", is_quiet=True)
