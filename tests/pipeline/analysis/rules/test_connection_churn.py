"""Connections for each piece of work, health checks, and pools, deploys and tools that look like them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from itertools import chain
from typing import Any

import pytest

from decoder.model import FrameFlags
from pipeline.analysis.rules import churning
from pipeline.analysis.rules.settings import finding_settings
from pipeline.tables import EXCHANGES_WITH_BODIES, MONGO_COMMANDS
from tests.pipeline.analysis.sources import sources
from tests.pipeline.rows import T0, row

Row = dict[str, Any]
METADATA, VERSIONS, PRODUCE, FETCH = 3, 18, 0, 1


def exchange(n: float, connection: str, api_key: int, **more: Any) -> Row:
    where = {"server_ip": "10.0.0.1", "server_port": 9092, "client_ip": "10.0.0.9", "client_id": "app"}
    when = {"ts": T0 + timedelta(seconds=n), "exchange_id": f"{n:09.3f}{connection}"}
    return row(
        EXCHANGES_WITH_BODIES,
        **where | when | {"connection_id": connection, "api_key": api_key, "error_codes": []} | more,
    )


def kafka(n: float, number: int, *apis: int, **more: Any) -> Iterator[Row]:
    """A connection that begins then and asks these."""
    for place, api in enumerate((VERSIONS, METADATA, *apis)):
        yield exchange(n + place / 1000, f"c{number}", api, **more)


def mongo(n: float, number: int, *commands: str) -> Iterator[Row]:
    for place, command in enumerate(("hello", *commands)):
        when = {"ts": T0 + timedelta(seconds=n + place / 1000), "exchange_id": f"{n:09.3f}-{place}"}
        where = {"server": "10.0.0.1:27017", "client_ip": "10.0.0.9", "application": "shop"}
        yield row(MONGO_COMMANDS, **when | where, connection_id=f"m{number}", command=command)


def spread(count: int, every: float, *apis: int, **more: Any) -> list[Row]:
    return list(chain.from_iterable(kafka(n * every, n, *apis, **more) for n in range(count)))


def later(seconds: float, rows: list[Row]) -> list[Row]:
    names = ("exchange_id", "connection_id")
    return [
        one | {"ts": one["ts"] + timedelta(seconds=seconds)} | {name: f"later {one[name]}" for name in names}
        for one in rows
    ]


CUT = int(FrameFlags.TRUNCATED | FrameFlags.CLOSED_BY_CLIENT)


def answered(flags: int, at: float, **more: Any) -> Row:
    when = T0 + timedelta(seconds=at)
    return {"response_flags": flags, "response_size": 21_000_000, "response_ts": when, "api_name": "Fetch"} | more


def closing(count: int, every: float = 2, at: float = 1, flags: int = CUT, **more: Any) -> list[Row]:
    """Connections that fetch once each, and are closed in the middle of the answer, a while after they began."""
    rows = spread(count, every, FETCH)
    return [
        one | (answered(flags, n // 3 * every + at, **more) if one["api_key"] == FETCH else {})
        for n, one in enumerate(rows)
    ]


STARTS = [*spread(40, 1.2), *chain.from_iterable(kafka(n * 1.2 + 0.1, 1000 + n, *[FETCH] * 60) for n in range(40))]
IDLE_POOL = list(chain.from_iterable(kafka(n / 100, n, FETCH) for n in range(60)))
PLAYS: dict[str, tuple[list[Row], str | None]] = {
    "one connection a record": (spread(40, 1, PRODUCE), "warning"),
    "closes in the middle of answers": (closing(3), "warning"),
    "closes many in the middle of answers": (closing(60, 0.9, 0.5), "warning"),
    "closes two in the middle of answers": (closing(2), None),
    "stops, with answers under way": (closing(9, every=0.01, at=5), None),
    "is closed by the server": (closing(9, flags=int(FrameFlags.TRUNCATED | FrameFlags.CLOSED_BY_SERVER)), None),
    "answers that the capture cut off": (closing(9, flags=int(FrameFlags.TRUNCATED)), None),
    "closes, and gets others whole": (
        [*closing(9), *later(1, [one | {"response_flags": 0} for one in closing(9)])],
        None,
    ),
    "closes in the middle of small answers": (closing(9, response_size=300), None),
    "fewer": (spread(29, 1, PRODUCE), None),
    "slower": (spread(40, 3, PRODUCE), None),
    "all day, and slowly": (spread(300, 2.5, PRODUCE), None),
    "a pool that fills": (IDLE_POOL, None),
    "many that work": (spread(40, 1, *[PRODUCE] * 9), None),
    "as much work as handshake": (spread(40, 1, PRODUCE, PRODUCE), "warning"),
    "more work than handshake": (spread(40, 1, PRODUCE, PRODUCE, PRODUCE), None),
    "joined midway": ([one for one in spread(40, 1, PRODUCE) if one["api_key"] == PRODUCE], None),
    "login refused": (spread(40, 1, error_codes=[58]), None),
    "forty start behind one address": (STARTS, None),
    "starts, and churns later": ([*STARTS, *later(600, spread(40, 1, PRODUCE))], "warning"),
    "churns beside one that works": ([*spread(40, 1, PRODUCE), *kafka(0, 999, *[FETCH] * 60)], "warning"),
    "looks at the port": (spread(9, 5), "info"),
    "looks at the port all the time": (spread(90, 0.5), "info"),
    "a tool now and then": ([*spread(3, 5), *kafka(90, 9), *kafka(400, 10)], None),
    "looks, and works elsewhere": ([*spread(9, 5), *kafka(60, 99, FETCH)], None),
}
"""What is asked, and the severity of what must be found."""


@pytest.mark.parametrize("play", PLAYS)
def test_churn_is_many_spread_connections_with_little_work(play: str):
    rows, severity = PLAYS[play]
    found = list(churning.churning_clients(sources(exchanges=rows), finding_settings()))
    assert [(f.severity, f.subject) for f in found] == ([(severity, "app/10.0.0.9")] if severity else [])


def test_clients_of_mongodb_churn_alike():
    rows = list(chain.from_iterable(mongo(n, n, "saslStart", "find", "endSessions") for n in range(40)))
    (found,) = churning.churning_clients(sources(commands=rows), finding_settings())
    assert (found.severity, found.subject, found.cluster) == ("warning", "shop/10.0.0.9", "10.0.0.1:27017")
    assert (found.details["connections"], found.details["work_requests"]) == (40, 40)
    assert "MongoClient" in found.advice


def test_monitoring_connections_of_a_driver_stay_and_are_none():
    rows = [one for m in range(3) for n in range(60) for one in mongo(n, m, "hello")]
    assert list(churning.churning_clients(sources(commands=rows), finding_settings())) == []


def test_it_lasts_as_long_as_it_does_and_comes_again():
    def from_then(n: float, first: int, count: int) -> list[Row]:
        return list(chain.from_iterable(kafka(n + m, first + m, PRODUCE) for m in range(count)))

    rows = [*from_then(0, 0, 100), *from_then(300, 1000, 200)]
    (found,) = churning.churning_clients(sources(exchanges=rows), finding_settings())
    assert found.last_us - found.first_us > 170_000_000
    assert found.details["recurrences"] == 1
    assert found.details["last_of_all_us"] - found.details["first_of_all_us"] > 470_000_000


def test_a_deploy_of_mongodbs_clients_is_none():
    working = [mongo(n + 0.1, 1000 + n, *["find"] * 60) for n in range(40)]
    rows = list(chain.from_iterable([*(mongo(n, n, "saslStart") for n in range(40)), *working]))
    assert churning.churning_clients(sources(commands=rows), finding_settings()) == []
