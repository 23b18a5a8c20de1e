"""Clients that never go on to the brokers that Metadata names, and monitors that want no more."""

from __future__ import annotations

from pathlib import Path

from decoder.kafka.apis import ApiKey
from tests.pipeline.analysis.rules.connections.doors import HOST, SERVER, TOPIC, Door, door, found

ELSEWHERE = {"brokers": [{"nodeId": 1, "host": "kafka-internal", "port": 29092}]}


def asks(number: int, seconds: float, times: int, every: float, *, name: str, producer: bool = False) -> Door:
    """Asks for the brokers on one connection."""
    some = door(number, seconds, name=name)
    some.open()
    some.versions()
    if producer:
        some.ask(ApiKey.INIT_PRODUCER_ID, 1).answer(ApiKey.INIT_PRODUCER_ID, 1)
    for _ in range(times):
        some.ask(ApiKey.METADATA, 5, TOPIC).answer(ApiKey.METADATA, 5, ELSEWHERE).wait(every)
    return some.closes(0)


def looks(name: str) -> list[Door]:
    """Connects now and then, and asks once."""
    return [asks(100 + number, 5 * number, 1, 0, name=name) for number in range(6)]


def test_a_producer_that_has_its_id_gets_no_further(tmp_path: Path) -> None:
    assert found(tmp_path, asks(1, 0, 9, 2.5, name="app", producer=True)) == {
        f"{SERVER}:9092/advertised/app/{HOST}": "warning"
    }


def test_a_monitor_alone_wants_no_other_broker(tmp_path: Path) -> None:
    assert found(tmp_path, *looks("probe")) == {}


def test_who_connects_now_and_then_where_others_are_misled_is_misled_too(tmp_path: Path) -> None:
    assert found(tmp_path, asks(1, 0, 9, 2.5, name="app"), *looks("job")) == {
        f"{SERVER}:9092/advertised/app/{HOST}": "warning",
        f"{SERVER}:9092/advertised/job/{HOST}": "warning",
    }
