"""Clients that never continue to the brokers that Metadata names, and monitors that want no more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from decoder.kafka.apis import ApiKey
from tests.pipeline.analysis.rules.connections.doors import HOST, SERVER, TOPIC, Door, door, found, packets, rows
from tests.pipeline.capture.wire import ACK, RST, SYN

ELSEWHERE = {"brokers": [{"nodeId": 1, "host": "kafka-internal", "port": 29092}]}
SECOND = "10.0.0.10"
WRONG = "advertised.listeners is wrong for this client"


def asks(
    number: int, seconds: float, times: int, every: float, *, name: str, producer: bool = False,
    named: dict[str, Any] = ELSEWHERE,
) -> Door:  # fmt: skip
    """Asks for the brokers on one connection."""
    some = door(number, seconds, name=name)
    some.open()
    some.versions()
    if producer:
        some.ask(ApiKey.INIT_PRODUCER_ID, 1).answer(ApiKey.INIT_PRODUCER_ID, 1)
    for _ in range(times):
        some.ask(ApiKey.METADATA, 5, TOPIC).answer(ApiKey.METADATA, 5, named).wait(every)
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


def why(tmp_path: Path, *others: Door, host: str = "10.0.0.10", port: int = 9092) -> str:
    """What the summary concludes of a client that never continues to the broker that is named."""
    named = {"brokers": [{"nodeId": 1, "host": host, "port": port}]}
    some = [*others, asks(1, 0, 12, 1, name="app", named=named)]
    (row,) = [row for row in rows(tmp_path, packets(*some)) if "/advertised/" in row["subject"]]
    return str(row["summary"]).rpartition("which Metadata names")[2]


def tries(number: int) -> Door:
    """No process listens at the second broker."""
    some = door(200 + number, number, server=SECOND)
    some.add(0, some.isn[0], 0, SYN)
    some.add(1, 0, some.isn[0] + 1, RST | ACK)
    return some


def test_a_broker_that_is_named_may_just_be_down(tmp_path: Path) -> None:
    """Unless the client never tries it, others get there, or the name stands for the client's own host."""
    refusing = [tries(number) for number in range(12)]
    other = door(300, 0, server=SECOND, host="10.0.0.77", name="other").begun().beats(8)
    assert why(tmp_path, *refusing) == f" ({SECOND}:9092 refused): either what is named is down, or {WRONG}."
    assert why(tmp_path) == f": {WRONG}."
    assert why(tmp_path, *refusing, other).endswith("others are answered there (10.0.0.77).")
    assert why(tmp_path, host="localhost", port=9192) == f": {WRONG}."
    not_captured = f": {WRONG}, or what is named is down (the capture has no connection to port 9192)."
    assert why(tmp_path, port=9192) == not_captured
