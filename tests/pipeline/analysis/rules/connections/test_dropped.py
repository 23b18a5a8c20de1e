"""One connection whose packets are dropped is told from a server that is away, and from a client that gives up once."""

from __future__ import annotations

from pathlib import Path

from decoder.kafka.apis import ApiKey
from tests.pipeline.analysis.rules.connections.doors import HOST, SERVER, TOPIC, Door, door, found

DROPPED = f"{SERVER}:9092/dropped/app/{HOST}"


def unheard(number: int, *, times: int = 5, resets: bool = False) -> Door:
    """A request is sent again and never acknowledged; perhaps the server, back again, resets the connection."""
    some = door(number, 0).begun()
    some.wait(3)
    begin = some.seq[0]
    some.ask(ApiKey.METADATA, 5, TOPIC)
    some.sends_again(0, some.packets[-1].data[-(some.seq[0] - begin) :], times)
    if resets:
        some.reset(1)
    return some


def beside(host: str = HOST, begin: float = 0) -> Door:
    """Another connection that works."""
    return door(50, begin, host=host, name="beside").begun().beats(40)


def test_one_connection_of_a_host_is_dropped(tmp_path: Path) -> None:
    assert found(tmp_path, unheard(1), beside()) == {DROPPED: "warning"}


def test_a_server_that_answers_nobody_may_be_away(tmp_path: Path) -> None:
    assert DROPPED not in found(tmp_path, unheard(1))
    assert DROPPED not in found(tmp_path, unheard(1), door(50, 0, name="beside").begun())


def test_a_server_that_comes_back_resets_what_it_does_not_know(tmp_path: Path) -> None:
    assert DROPPED not in found(tmp_path, unheard(1, resets=True), beside(begin=10))


def test_another_host_says_nothing_of_this_one(tmp_path: Path) -> None:
    assert DROPPED not in found(tmp_path, unheard(1), beside(host="10.0.0.77"))


def test_what_is_sent_again_twice_was_lost(tmp_path: Path) -> None:
    assert DROPPED not in found(tmp_path, unheard(1, times=2), beside())
