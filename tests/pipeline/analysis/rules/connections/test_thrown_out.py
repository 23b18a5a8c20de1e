"""Clients that a server throws out are named with the reason, and those that leave in good order are not."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from decoder.kafka.apis import ApiKey
from tests.pipeline.analysis.rules.connections.doors import (
    HOST,
    OF_CONTROLLER,
    SERVER,
    Door,
    at_controller,
    crowd,
    cut,
    door,
    each,
    found,
    logs_in,
    packets,
    rows,
    served,
)


def test_a_controllers_listener_is_no_listener_without_a_login(tmp_path: Path) -> None:
    assert found(tmp_path, *each(at_controller)) == {f"{SERVER}:9092/controller/app/{HOST}": "critical"}


def test_a_client_that_waits_at_a_controllers_listener(tmp_path: Path) -> None:
    """Librdkafka asks nothing more there, and keeps the connection."""
    some = door(1, 0)
    some.open()
    some.versions(OF_CONTROLLER)
    broker = door(20, 0, port=9192).begun().beats(20).closes(0)
    assert found(tmp_path, some, broker) == {f"{SERVER}:9092/controller/app/{HOST}": "warning"}


def test_a_broker_at_a_controller_gets_on(tmp_path: Path) -> None:
    some = door(1, 0, name="1")
    some.open()
    some.versions(OF_CONTROLLER)
    for _ in range(10):
        some.ask(ApiKey.BROKER_HEARTBEAT, 0, {"brokerId": 1}).answer(ApiKey.BROKER_HEARTBEAT, 0).wait(2)
    assert found(tmp_path, some) == {}


def test_credentials_that_are_refused_without_an_answer(tmp_path: Path) -> None:
    some = each(lambda number: logs_in(number).closes(1))
    assert found(tmp_path, *some) == {f"{SERVER}:9092/credentials/app/{HOST}": "critical"}


def test_credentials_that_are_taken(tmp_path: Path) -> None:
    def works(number: int) -> Door:
        some = logs_in(number)
        some.send(1, struct.pack(">i", 0))
        return some.beats(5).closes(number % 2)

    assert found(tmp_path, *each(works)) == {}


@pytest.mark.parametrize("resets", [False, True], ids=["closes", "resets"])
@pytest.mark.parametrize("asks", [False, True], ids=["silent", "asked"])
def test_a_server_out_of_connections(tmp_path: Path, *, asks: bool, resets: bool) -> None:
    assert found(tmp_path, served(), *crowd(asks=asks, resets=resets)) == {f"{SERVER}:9092/limit": "critical"}


def test_a_limit_for_an_address_is_told_from_one_for_all(tmp_path: Path) -> None:
    some = [served(), *(door(700 + n, 1 + n, host=f"10.0.1.{n}").begun().beats(5).closes(0) for n in range(3))]
    some += [cut(number, 0.5 + number / 5, host="10.0.0.20", asks=True) for number in range(20)]
    (row,) = [row for row in rows(tmp_path, packets(*some)) if row["rule"] == "connection_failed"]
    assert "a limit for an address, or a first request that it cannot read" in row["summary"]


def test_a_server_that_closes_while_it_stops(tmp_path: Path) -> None:
    """It answers nothing meanwhile, and everybody afterwards."""
    before = door(800, 0).begun().beats(10).closes(1)
    after = [door(810 + n, 40 + n).begun().beats(10).closes(0) for n in range(3)]
    assert found(tmp_path, before, *(cut(n, 6 + n, asks=True) for n in range(10)), *after) == {}


def test_a_few_that_are_cut(tmp_path: Path) -> None:
    assert found(tmp_path, served(), *(cut(n, 3 * n, asks=True) for n in range(3))) == {}


def thrown_out_at_once(number: int) -> Door:
    some = door(number, 16 * number, name="newer", host="10.0.0.20").open()
    some.ask(ApiKey.API_VERSIONS, 3).wait(2)
    return some.closes(1)


def test_a_client_whose_first_request_closes_each_connection(tmp_path: Path) -> None:
    shown = found(tmp_path, served(120), *each(thrown_out_at_once))
    assert shown == {f"{SERVER}:9092/first-request/newer/10.0.0.20": "critical"}


def test_a_client_that_is_answered_later_waited_for_a_start(tmp_path: Path) -> None:
    later = door(50, 115, name="newer", host="10.0.0.20").begun().beats(4).closes(0)
    shown = rows(tmp_path, packets(served(120), later, *each(thrown_out_at_once)))
    assert [row["rule"] for row in shown] == ["unanswered_requests"]
