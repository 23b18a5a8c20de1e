"""Packets that arrive one way only: SYNs sent once, answers to SYNs that get lost, requests never acknowledged."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from pipeline.cli import app
from tests.pipeline.analysis.rules.connections.doors import (
    HOST,
    SERVER,
    Door,
    cut,
    door,
    each,
    found,
    packets,
    rows,
    served,
)
from tests.pipeline.analysis.rules.connections.test_crowds import refused
from tests.pipeline.analysis.rules.connections.test_dropped import unheard
from tests.pipeline.analysis.rules.connections.test_handshakes import goes_on, hello
from tests.pipeline.capture.wire import ACK, RST, SYN, Flow, pcap

AT, AWAY = f"{SERVER}:9092", "10.0.0.77"
METADATA_NAMES_IT = {"brokers": [{"nodeId": 1, "host": AWAY, "port": 9092}], "topics": []}


def asks(number: int, *, server: str = SERVER, host: str = HOST) -> Door:
    """One SYN, as if something rejected it by ICMP, or the client did not wait for a second."""
    some = door(number, number, server=server, host=host)
    some.add(0, some.isn[0], 0, SYN)
    return some


def asks_again(number: int, *, hears: bool = False) -> Door:
    """The server answers each SYN, and the client sends it again; perhaps it hears the last answer."""
    some = door(number, 10 * number)
    for pause in (1, 2, 4):
        some.add(0, some.isn[0], 0, SYN)
        some.add(1, some.isn[1], some.isn[0] + 1, SYN | ACK)
        some.wait(pause)
    if hears:
        some.add(0, some.seq[0], some.seq[1], ACK)
        some.versions().closes(0)
    return some


def test_syns_that_are_sent_once(tmp_path: Path) -> None:
    """A capture of SYNs alone looks alike: what servers answer the same host shows that it is none."""
    some = [asks(number, server=AWAY) for number in range(10)]
    assert found(tmp_path, served(), *some) == {f"{AWAY}:9092/unanswered": "critical"}
    (row,) = [row for row in rows(tmp_path, packets(served(), *some)) if row["rule"] == "connection_failed"]
    assert "one SYN each" in row["summary"]
    assert found(tmp_path, served(host="10.0.0.6"), *some) == {}


def test_answers_that_do_not_reach_the_client(tmp_path: Path) -> None:
    assert found(tmp_path, *each(asks_again)) == {f"{AT}/one-way": "critical"}
    assert found(tmp_path, *each(lambda number: asks_again(number, hears=number == 0))) == {}


def listed(tmp_path: Path, *flows: Flow) -> list[str]:
    """How the connections ended that ``wirelake connections --failed`` lists."""
    path = tmp_path / "some.pcap"
    path.write_bytes(pcap(packets(*flows)))
    done = CliRunner().invoke(app, ["connections", "--failed", "--json", str(path)])
    return [json.loads(line)["ended"] for line in done.stdout.splitlines() if line.startswith("{")]


def test_who_is_turned_away_is_listed_among_what_failed(tmp_path: Path) -> None:
    """As what the rule finds, so that the page of causes leads from one to the other."""
    turned_away = [asks_again(1), cut(2, 20), hello(3).closes(1)]
    well = [served(5), asks_again(4, hears=True), door(5, 1).open().close(), goes_on(1, 3).closes(0)]
    assert listed(tmp_path, *turned_away, *well) == [
        "closed by the server", "answer to SYN not received", "closed by the server",
    ]  # fmt: skip


def test_a_server_that_acknowledges_nothing_more(tmp_path: Path) -> None:
    some = [unheard(number, times=8) for number in range(1, 5)]
    assert found(tmp_path, *some) == {f"{AT}/away": "critical"}
    assert found(tmp_path, *[unheard(number) for number in range(1, 5)]) == {}
    back = door(60, 80).begun().beats(3)
    assert found(tmp_path, *some, back) == {}


def test_a_port_of_a_managed_cluster(tmp_path: Path) -> None:
    some = [refused(number, number, port=9196) for number in range(10)]
    assert found(tmp_path, served(), *some) == {f"{SERVER}:9196/refused": "critical"}


def test_who_is_refused_where_metadata_sends_it_is_no_health_check(tmp_path: Path) -> None:
    def sent_on(number: int) -> list[Door]:
        some = door(number, 2 * number)
        some.open()
        some.versions().ask(3, 5).answer(3, 5, METADATA_NAMES_IT).closes(0)
        then = door(100 + number, 2 * number + 0.1, server=AWAY)
        then.add(0, then.isn[0], 0, SYN)
        then.add(1, 0, then.isn[0] + 1, RST | ACK)
        return [some, then]

    some = rows(tmp_path, packets(*(one for number in range(12) for one in sent_on(number))))
    assert {row["subject"] for row in some} == {f"{AWAY}:9092/refused", f"{AT}/advertised/app/{HOST}"}
