"""Health checks are named, storms after an outage found; clients that come back in good order are neither."""

from __future__ import annotations

from pathlib import Path

import pytest

from decoder.kafka.apis import ApiKey
from tests.pipeline.analysis.rules.connections.doors import (
    HOST,
    SERVER,
    Door,
    cut,
    door,
    each,
    fetched,
    found,
    packets,
    rows,
    served,
)
from tests.pipeline.analysis.rules.connections.test_stuck import FETCH
from tests.pipeline.capture.wire import ACK, RST, SYN


def refused(number: int, seconds: float, port: int = 9092) -> Door:
    some = door(number, seconds, port=port)
    some.add(0, some.isn[0], 0, SYN)
    some.add(1, 0, some.isn[0] + 1, RST | ACK)
    return some


def check(number: int, *, resets: bool) -> Door:
    some = door(number, 2 * number, host="10.0.0.77")
    some.open()
    if resets:
        some.reset(0)
        return some
    return some.closes(0)


def outage() -> list[Door]:
    """Served, then refused for ten seconds."""
    return [door(900, 0).begun().beats(4).closes(1), *(refused(n, 3 + n / 2) for n in range(20))]


@pytest.mark.parametrize("resets", [False, True], ids=["closes", "resets"])
def test_a_health_check_is_named(tmp_path: Path, *, resets: bool) -> None:
    some = served(), *each(lambda number: check(number, resets=resets), 20)
    assert found(tmp_path, *some) == {f"{SERVER}:9092/check/10.0.0.77": "info"}


def test_a_storm_after_an_outage(tmp_path: Path) -> None:
    storm = [cut(100 + n, 14 + n / 20, asks=True, resets=True) for n in range(80)]
    after = [door(300 + n, 14 + n).begun().beats(4).closes(0) for n in range(3)]
    assert found(tmp_path, *outage(), *storm, *after) == {f"{SERVER}:9092/storm": "warning"}


def test_clients_that_come_back_after_an_outage(tmp_path: Path) -> None:
    after = [door(300 + n, 14 + n / 20).begun().beats(4).closes(0) for n in range(60)]
    some = [cut(100 + n, 14 + n / 2, asks=True) for n in range(4)]
    assert found(tmp_path, *outage(), *some, *after) == {}


def gives_up(number: int, seconds: float) -> Door:
    """Resets while the answer comes, after this many seconds."""
    some = door(number, 35 * number).begun()
    some.ask(ApiKey.FETCH, 11, FETCH)
    data = fetched(some.asked, 200)
    for part in range(10):
        some.send(1, data[part * 9000 : part * 9000 + 9000]).acknowledge(0)
        some.wait(seconds / 10)
    some.reset(0)
    return some


@pytest.mark.parametrize(("seconds", "why"), [(30, "a timeout of the client"), (0.01, "the limit of the client")])
def test_why_a_client_closes_while_an_answer_comes(tmp_path: Path, seconds: float, why: str) -> None:
    some = packets(*each(lambda number: gives_up(number, seconds), 5))
    (row,) = [row for row in rows(tmp_path, some) if row["rule"] == "connection_churn"]
    assert row["subject"] == f"app/{HOST}"
    assert why in row["summary"]
    assert row["severity"] == "warning"
