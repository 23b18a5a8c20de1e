"""A server that is down or gone cuts nobody off who works with another one right afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest

from decoder.kafka.apis import ApiKey
from tests.pipeline.analysis.rules.connections.doors import HOST, SERVER, Door, door, found
from tests.pipeline.capture.wire import ACK, RST, SYN, Flow

GONE = "10.0.0.8"
SUBJECT = f"{GONE}:9092"
NAMES_IT = {"brokers": [{"nodeId": 1, "host": GONE, "port": 9092}], "clusterId": "one", "topics": []}


def refused(number: int, seconds: float, host: str = HOST) -> Door:
    some = door(number, seconds, server=GONE, host=host)
    some.add(0, some.isn[0], 0, SYN)
    some.add(1, 0, some.isn[0] + 1, RST | ACK)
    return some


def unanswered(number: int, seconds: float) -> Door:
    some = door(number, seconds, server=GONE)
    for wait in (1, 2, 4):
        some.add(0, some.isn[0], 0, SYN)
        some.wait(wait)
    return some


def works(number: int, seconds: float, host: str = HOST) -> Door:
    some = door(100 + number, seconds, host=host).begun()
    some.ask(ApiKey.FIND_COORDINATOR, 1, {"key": "orders"}).answer(ApiKey.FIND_COORDINATOR, 1, {"host": SERVER})
    return some.beats(2).closes(0)


def asks_for_brokers(number: int, seconds: float) -> Door:
    some = door(100 + number, seconds)
    some.open()
    some.versions().ask(ApiKey.METADATA, 5).answer(ApiKey.METADATA, 5, NAMES_IT)
    return some.closes(0)


def found_of(tmp_path: Path, *flows: Flow) -> dict[str, str]:
    """Findings about the server that is gone."""
    return {name: severity for name, severity in found(tmp_path, *flows).items() if SUBJECT in name}


def test_who_goes_on_at_once_is_not_cut_off(tmp_path: Path) -> None:
    some = [one for n in range(6) for one in (refused(n, 5 * n), works(n, 5 * n + 0.01))]
    assert found(tmp_path, *some) == {f"{SUBJECT}/other-address": "warning"}


def test_nor_who_waits_for_it_first(tmp_path: Path) -> None:
    some = [one for n in range(6) for one in (unanswered(n, 20 * n), works(n, 20 * n + 8))]
    assert found(tmp_path, *some) == {f"{SUBJECT}/other-address": "warning"}


@pytest.mark.parametrize(
    "others",
    [
        pytest.param([], id="nobody else"),
        pytest.param([works(n, 5 * n + 0.01, "10.0.0.6") for n in range(6)], id="another host"),
        pytest.param([works(0, 0.01)], id="one connection for all attempts"),
        pytest.param([works(n, 0.5 * n + 0.4) for n in range(60)], id="a program that connects by itself"),
        pytest.param([asks_for_brokers(n, 5 * n + 0.01) for n in range(6)], id="who only learns of it elsewhere"),
    ],
)
def test_who_is_not_served_elsewhere_is_cut_off(tmp_path: Path, others: list[Flow]) -> None:
    some = [refused(n, 5 * n) for n in range(6)]
    assert f"{SUBJECT}/other-address" not in found(tmp_path, *some, *others)
    assert "critical" in found_of(tmp_path, *some, *others).values()
