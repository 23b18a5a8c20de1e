"""Large messages that never arrive show the path; losses that are made up for, and servers that die, do not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.pipeline.analysis.rules.connections.doors import HOST, SERVER, Door, door, each, fetched, found, produced
from tests.pipeline.capture.wire import ACK, FIN, RST

NAME = "producer-1"
TOO_LARGE = {f"{SERVER}:9092/too-large/{NAME}/{HOST}": "critical"}
FETCH = {"topics": [{"topic": "orders", "partitions": [{"partition": 0, "partitionMaxBytes": 1_048_576}]}]}


def sends(number: int, *, acknowledged: bool = False, kilobytes: int = 20) -> Door:
    """Writes a large batch, which the broker never gets, or after some tries."""
    some = door(number, 40 * number, name=NAME).begun()
    some.asked += 1
    data = produced(some.asked, kilobytes)
    some.send(0, data).add(0, some.seq[0] - len(data), some.seq[1], ACK, data[:1460])
    some.sends_again(0, data)
    if acknowledged:
        some.acknowledge(1)
        some.answer(0, 9)
        return some.closes(0)
    some.wait(5).reset(0)
    return some


def fetches(number: int) -> Door:
    """Asks for a large answer, of which it gets nothing, and gives up."""
    some = door(number, 40 * number, name=NAME).begun()
    some.ask(1, 11, FETCH).wait(0.1).acknowledge(1)
    data = fetched(some.asked, 20)
    some.send(1, data)
    some.seq[1] -= len(data)
    for pause in (0.3, 0.6, 1.2, 2.4, 4.8, 9.6):
        some.wait(pause).add(1, some.seq[1], some.seq[0], ACK, data[:1460])
    some.add(0, some.seq[0], some.seq[1], FIN | ACK)
    some.wait(1).add(1, some.seq[1], some.seq[0] + 1, ACK, data[:1460])
    some.add(0, some.seq[0] + 1, 0, RST)
    return some


@pytest.mark.parametrize("make", [sends, fetches], ids=["requests", "responses"])
def test_messages_of_full_packets_never_arrive(tmp_path: Path, make: Callable[[int], Door]) -> None:
    assert found(tmp_path, *each(make, 4)) == TOO_LARGE


def test_what_arrives_at_last_was_only_lost(tmp_path: Path) -> None:
    assert found(tmp_path, *each(lambda number: sends(number, acknowledged=True), 4)) == {}


def test_others_as_large_that_arrive_show_that_the_path_carries_them(tmp_path: Path) -> None:
    large = sends(9, acknowledged=True, kilobytes=90)
    assert TOO_LARGE.keys().isdisjoint(found(tmp_path, large, *each(sends, 4)))


def test_a_server_that_dies_once(tmp_path: Path) -> None:
    assert TOO_LARGE.keys().isdisjoint(found(tmp_path, *each(sends, 2)))
