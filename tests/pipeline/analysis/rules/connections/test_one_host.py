"""One host whose path to a server is dead, while the server answers others."""

from __future__ import annotations

from pathlib import Path

from decoder.kafka.apis import ApiKey
from tests.pipeline.analysis.rules.connections.doors import (
    HOST,
    SERVER,
    TOPIC,
    Door,
    door,
    found,
    packets,
    rows,
    served,
)
from tests.pipeline.analysis.rules.connections.test_dropped import unheard
from tests.pipeline.capture.wire import SYN

PATH, OTHER = f"{SERVER}:9092/path", "10.0.0.77"


def knocks(number: int, *, times: int = 5) -> Door:
    """SYNs that nothing answers."""
    some = door(number, 15 * number)
    for turn in range(times):
        some.add(0, some.isn[0], 0, SYN)
        some.wait(2**turn)
    return some


def comes_again(host: str = OTHER) -> list[Door]:
    """A client that connects each ten seconds, and is answered."""
    return [door(number, 10 * number, host=host, name="beside").begun().beats(15).closes(0) for number in range(10)]


def dead(*, times: int = 8) -> list[Door]:
    """Requests on three connections that nothing acknowledges."""
    return [unheard(number, times=times) for number in range(1, 4)]


def test_requests_of_one_host_are_never_acknowledged(tmp_path: Path) -> None:
    assert found(tmp_path, *dead(), served(100, host=OTHER)) == {PATH: "warning"}
    (row,) = [row for row in rows(tmp_path, packets(*dead(), served(100, host=OTHER))) if row["subject"] == PATH]
    assert f"answers nothing of {HOST}" in row["summary"]


def test_a_host_whose_own_connections_are_answered_has_a_path(tmp_path: Path) -> None:
    assert PATH not in found(tmp_path, *dead(), served(100, host=OTHER), served(100))


def test_a_server_that_comes_back_for_all_was_away(tmp_path: Path) -> None:
    back = door(60, 60, host=OTHER).begun().beats(60)
    assert PATH not in found(tmp_path, *dead(), door(61, 0, host=OTHER).begun(), back)


def test_a_short_loss_on_one_path(tmp_path: Path) -> None:
    assert PATH not in found(tmp_path, *dead(times=5), served(100, host=OTHER))


def test_syns_of_one_host_are_not_answered(tmp_path: Path) -> None:
    knocking = [knocks(number) for number in range(6)]
    assert found(tmp_path, *knocking, *comes_again()) == {PATH: "warning"}
    assert PATH not in found(tmp_path, *knocking, *comes_again(), *comes_again(HOST))


def test_a_queue_that_is_full_drops_syns_of_anybody(tmp_path: Path) -> None:
    """Old connections are answered, new ones of nobody."""
    assert PATH not in found(tmp_path, *[knocks(number) for number in range(1, 7)], served(120, host=OTHER))


def falls_silent(number: int, begin: float) -> Door:
    """Is answered for twenty seconds, then a request is never acknowledged."""
    some = door(number, begin).begun().beats(40)
    start = some.seq[0]
    some.ask(ApiKey.METADATA, 5, TOPIC)
    return some.sends_again(0, some.packets[-1].data[-(some.seq[0] - start) :], 8)


def test_what_was_lost_before_is_another_matter(tmp_path: Path) -> None:
    """A SYN and a connection are lost, the host works on, and its path dies later."""
    some = [knocks(9, times=2), unheard(1), *(falls_silent(number, 140) for number in range(2, 5))]
    others = [served(120, host=OTHER), door(70, 120, host=OTHER, name="beside").begun().beats(260)]
    rest = door(71, 0).begun().beats(280)
    assert found(tmp_path, *some, *others, rest) == {
        PATH: "warning", f"{SERVER}:9092/dropped/app/{HOST}": "warning",
    }  # fmt: skip


def test_a_server_that_is_away_answers_no_syn_either(tmp_path: Path) -> None:
    """One finding states both."""
    knocking = [knocks(number) for number in range(1, 6)]
    assert found(tmp_path, unheard(1, times=8), *knocking) == {f"{SERVER}:9092/away": "critical"}
