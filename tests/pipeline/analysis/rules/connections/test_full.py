"""Who does not read is named, and for how long; short pauses are not, longer ones without harm are for information."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from tests.pipeline.analysis.rules.connections.doors import HOST, SERVER, Door, door, fetched, found, packets, rows
from tests.pipeline.analysis.rules.connections.test_stuck import FETCH
from tests.pipeline.capture.wire import ACK

_WINDOW_AT = 14 + 20 + 14


def no_room(some: Door, side: int) -> None:
    """An acknowledgement with a receive window of zero."""
    packet = some.add(side, some.seq[side], some.seq[1 - side], ACK)
    data = packet.data[:_WINDOW_AT] + struct.pack("!H", 0) + packet.data[_WINDOW_AT + 2 :]
    some.packets[-1] = packet._replace(data=data)


def stalls(side: int, seconds: float, *, ends: bool = False) -> Door:
    """One side does not read for so long, while the other has more to send."""
    some = door(1, 0).begun().beats(10)
    if side:
        some.ask(3, 5, {"topics": [{"name": "orders"}] * 40})
        data = b""
    else:
        some.ask(1, 11, FETCH)
        data = fetched(some.asked, 40)
        some.send(1, data[:30_000])
    for _ in range(int(seconds)):
        no_room(some, side)
        some.wait(1)
    if ends:
        some.reset(0)
        return some
    some.acknowledge(side)
    some.send(1, data[30_000:]) if data else some.answer(3, 5)
    return some.beats(10).closes(0)


@pytest.mark.parametrize(
    ("side", "seconds", "ends", "severity"),
    [(0, 40, False, "warning"), (1, 40, False, "warning"), (0, 15, False, "info"), (0, 15, True, "warning")],
    ids=["client", "server", "short", "short and ended"],
)
def test_a_side_that_does_not_read(tmp_path: Path, *, side: int, seconds: int, ends: bool, severity: str) -> None:
    who = ("client", "server")[side]
    subject = f"{SERVER}:9092/{who}-full/app/{HOST}"
    assert found(tmp_path, stalls(side, seconds, ends=ends)) == {subject: severity}


def test_it_is_named_with_for_how_long_and_what_waits(tmp_path: Path) -> None:
    (row,) = [one for one in rows(tmp_path, packets(stalls(0, 40))) if one["rule"] == "connection_failed"]
    assert (
        "app at 10.0.0.5 does not read what 10.0.0.9:9092 sends: its receive window was closed for 40 s"
        in row["summary"]
    )
    assert "Fetch responses of up to 40" in row["summary"]
    assert json.loads(row["details"])["reader"] == "client"


def test_a_pause_of_a_few_seconds(tmp_path: Path) -> None:
    assert found(tmp_path, stalls(0, 4)) == {}
