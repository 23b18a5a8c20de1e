"""What the tests of ``wirelake open`` share: captures opened once, and the lines of a screen."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from pipeline.commands.open.layout import drawn
from pipeline.commands.open.screens import Rooms
from pipeline.commands.open.source import Reading, Source, open_source
from pipeline.commands.open.view import Row, Target, View
from pipeline.config.settings import Settings
from tests.paths import CAPTURES


@cache
def opened(name: str = "stuck_commit.pcap") -> Source:
    """A capture of tests/captures."""
    with TemporaryDirectory() as folder:  # what is mapped stays
        return open_source([str(CAPTURES / name)], Settings(), Reading(), Path(folder))


def shown(view: View, width: int = 80) -> list[str]:
    """Its lines."""
    return [line for one in drawn(view, width) for line in one.text.plain.split("\n")]


def rows_of(view: View, title: str) -> list[Row]:
    """The rows of a block."""
    return [row for block in view.blocks if block.title.startswith(title) for row in block.rows]


def leading(view: View, text: str) -> Target:
    """Where the first row leads that has a text in it."""
    return next(row.opens for block in view.blocks for row in block.rows if row.opens and text in " ".join(row.cells))


def walk(rooms: Rooms, view: View, *texts: str) -> View:
    """The view behind a row with each of these texts, one after the other."""
    for text in texts:
        view = rooms.view(leading(view, text))
    return view
