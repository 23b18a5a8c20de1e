"""Clients that hear nothing behind the handshake, and such as only lose some packets."""

from __future__ import annotations

from pathlib import Path

from tests.pipeline.analysis.rules.connections.doors import HOST, SERVER, Door, door, each, found, served
from tests.pipeline.capture.wire import ACK

DEAF = f"{SERVER}:9092/deaf/{HOST}"


def repeats(number: int, *, hears: bool = False, asks_again: bool = True) -> Door:
    """A request that is answered, and both again and again; the client gives up, or at last hears the answer."""
    some = door(number, 20 * number)
    some.open()
    some.versions()
    asked, answered = some.isn[0] + 1, some.isn[1] + 1
    request, answer = (packet.data for packet in some.packets[-2:])
    for pause in (0.3, 0.6, 1.2, 2.4):
        some.wait(pause)
        if asks_again:
            some.add(0, asked, answered, ACK, request[54:])
        some.add(1, some.seq[1], some.seq[0], ACK)
        some.wait(0.05).add(1, answered, some.seq[0], ACK, answer[54:])
    if hears:
        some.acknowledge(0)
        return some.beats(3).closes(0)
    some.add(0, some.seq[0], answered, 0x14)
    return some


def test_a_client_hears_nothing_behind_the_handshake(tmp_path: Path) -> None:
    assert found(tmp_path, *each(repeats, 4)) == {DEAF: "critical"}


def test_others_of_its_host_that_are_answered_make_it_a_warning(tmp_path: Path) -> None:
    assert found(tmp_path, served(80), *each(repeats, 4)) == {DEAF: "warning"}


def test_who_hears_at_last_only_lost_packets(tmp_path: Path) -> None:
    assert found(tmp_path, *each(lambda number: repeats(number, hears=True), 4)) == {}


def test_a_client_that_is_silent_may_be_gone(tmp_path: Path) -> None:
    """Its host was switched off, so that nothing acknowledges what the server sends."""
    assert DEAF not in found(tmp_path, *each(lambda number: repeats(number, asks_again=False), 4))
