"""Drivers of MongoDB that do not reach the members of a replica set, or lose idle connections, are found by name."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.decoder.mongodb.build import command, reply
from tests.pipeline.analysis.rules.connections.doors import HOST, SERVER, door, each, found, packets, rows
from tests.pipeline.capture.wire import SYN, Flow

NAMES = ("mongo-0.internal:27017", "mongo-1.internal:27017")
MEMBERS = f"{SERVER}:27017/members/shop/{HOST}"
DRIVER = {"driver": {"name": "PyMongo", "version": "4.8"}, "application": {"name": "shop"}}


def asks(number: int, *, hosts: tuple[str, ...] = NAMES, hellos: int = 1, then: dict[str, Any] | None = None) -> Flow:
    """A driver that looks for its replica set."""
    some = door(number, 31 * number, port=27017)
    some.open()
    for one in range(hellos):
        hello = {"hello": 1, "$db": "admin", **({} if one else {"client": DRIVER})}
        stated = {"isWritablePrimary": True, "setName": "rs0", "hosts": list(hosts), "me": hosts[0], "ok": 1.0}
        some.send(0, command(hello, request_id=one + 1)).send(1, reply({**stated, "maxWireVersion": 21}, one + 1, 99))
        some.wait(0.5)
    if then:
        some.send(0, command(then, request_id=500)).send(1, reply({"ok": 1.0}, 500, 600))
    return some.closes(0)


def test_members_that_a_driver_never_goes_on_to(tmp_path: Path) -> None:
    assert found(tmp_path, *each(asks)) == {MEMBERS: "warning"}


def test_members_that_refuse_it(tmp_path: Path) -> None:
    away = [door(70 + n, 7 * n, port=27017, server="10.0.0.30") for n in range(8)]
    for one in away:
        for pause in (1, 2, 4):
            one.add(0, one.isn[0], 0, SYN)
            one.wait(pause)
    subjects = found(tmp_path, *each(lambda n: asks(n, hellos=5)), *away)
    assert subjects[MEMBERS] == "critical"


@pytest.mark.parametrize(
    "make",
    [
        lambda n: asks(n, then={"find": "orders", "$db": "shop"}),
        lambda n: asks(n, hosts=(f"{SERVER}:27017",)),
        lambda n: asks(n, hellos=9),
    ],
    ids=["works on", "the server itself", "a monitor"],
)
def test_drivers_that_get_on(tmp_path: Path, make: Callable[[int], Flow]) -> None:
    assert found(tmp_path, *each(make)) == {}


def test_a_connection_forgotten_while_idle_names_the_application(tmp_path: Path) -> None:
    def idle(number: int) -> Flow:
        some = door(number, 400 * number, port=27017)
        some.open()
        some.send(0, command({"hello": 1, "$db": "admin", "client": DRIVER}, request_id=1))
        some.send(1, reply({"ok": 1.0, "maxWireVersion": 21}, 1, 101)).acknowledge(0)
        data = command({"find": "orders", "$db": "shop"}, request_id=2)
        some.wait(350).send(0, data)
        some.sends_again(0, data).reset(0)
        return some

    (row,) = [one for one in rows(tmp_path, packets(*each(idle, 4))) if one["severity"] != "info"]
    assert row["subject"] == f"{SERVER}:27017/idle/shop/{HOST}"
    assert "maxIdleTimeMS of the client" in row["summary"]
    assert json.loads(row["details"])["pause_us"] >= 350_000_000
