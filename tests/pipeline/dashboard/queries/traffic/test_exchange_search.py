"""Which exchanges does a search find? A lake of a few whose answers can be read off its rows."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import pytest

from pipeline.dashboard.queries.scope import Scope
from pipeline.dashboard.queries.terms import Term
from pipeline.dashboard.queries.traffic import exchange_search, exchanges
from pipeline.dashboard.queries.traffic.exchange_search import ANY_ERROR, PAGE, Search, search, windows
from pipeline.dashboard.sql import connect
from pipeline.tables import (
    API_LATENCY,
    EXCHANGES,
    FRAMES,
    MONGO_COMMANDS,
    MONGO_HANDSHAKES,
    MONGO_MINUTES,
    OFFSET_EVENTS,
    STATE_EVENTS,
    TOPICS,
)
from tests.pipeline.dashboard.conftest import at
from tests.pipeline.rows import row, write

HOUR = Scope(at(0), at(3600))
_TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAg"
_COMMITTED = (
    '{"groupId":"billing","generationIdOrMemberEpoch":3,"memberId":"m","topics":[{"name":"payments","partitions":'
    '[{"partitionIndex":2,"committedOffset":24}]}]}'
)
_REFUSED = '{"topics":[{"name":"payments","partitions":[{"partitionIndex":2,"errorCode":22}]}]}'


def _exchange(name: str, seconds: float, **values: Any) -> dict[str, Any]:
    ends = {"client_ip": "10.0.0.1", "client_port": 5000, "server_ip": "10.0.0.9", "server_port": 9092}
    sizes = {"request_size": 10, "response_size": 10, "latency_us": 2000, "api_name": "Fetch", "client_id": "app"}
    given = {
        "exchange_id": name,
        "ts": at(seconds),
        "error_codes": [],
        "error_names": [],
        "connection_id": f"on {name}",
    }
    return row(EXCHANGES, **(ends | sizes | given | values))


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    folder = tmp_path_factory.mktemp("searched")
    mongo = {"protocol": "mongodb", "client_id": None, "server_port": 27017}
    write(
        folder, EXCHANGES,
        [
            _exchange("c", 10, api_name="OffsetCommit", api_key=8, api_version=8, client_id="Billing-1",
                      request_ts=at(10), response_ts=at(11), request_seq=3, response_seq=4, error_codes=[22],
                      error_names=["ILLEGAL_GENERATION"], latency_us=9000),
            _exchange("f", 20, client_ip="10.0.0.2"), _exchange("i", 30), _exchange("t", 40, api_name="EndTxn"),
            _exchange("m", 50, api_name="find", **mongo), _exchange("n", 60, api_name="insert", **mongo),
            _exchange("6", 70, client_ip="fe80::1", status="unanswered", latency_us=None, response_size=None),
        ],
    )  # fmt: skip
    halves = [("request", 10, 3, _COMMITTED), ("response", 11, 4, _REFUSED)]
    write(
        folder, FRAMES,
        [
            row(FRAMES, connection_id="on c", direction=direction, ts=at(seconds), seq=seq, body=body)
            for direction, seconds, seq, body in halves
        ],
    )  # fmt: skip
    payments = {"topic": "payments", "partition": 2}
    write(
        folder, OFFSET_EVENTS,
        [
            row(OFFSET_EVENTS, exchange_id="c", ts=at(11), group_id="billing", **payments),
            row(OFFSET_EVENTS, exchange_id="f", ts=at(20.5), topic="payments", partition=1),
            row(OFFSET_EVENTS, exchange_id="i", ts=at(30), topic_id=_TOPIC_ID, partition=0),
        ],
    )  # fmt: skip
    write(folder, STATE_EVENTS, [row(STATE_EVENTS, exchange_id="t", ts=at(40), transactional_id="orders-tx-1")])
    write(
        folder, MONGO_COMMANDS,
        [
            row(MONGO_COMMANDS, exchange_id="m", ts=at(50), database="shop", collection="orders.eu"),
            row(MONGO_COMMANDS, exchange_id="n", ts=at(60), database="shop", collection="users"),
        ],
    )  # fmt: skip
    named = {"connection_id": "on m", "ts": at(-7200), "date": at(-7200).date()}
    write(folder, MONGO_HANDSHAKES, [row(MONGO_HANDSHAKES, exchange_id="h", application="Checkout", **named)])
    write(folder, TOPICS, [])
    write(
        folder,
        API_LATENCY,
        [row(API_LATENCY, minute=at(0), api_name=name, exchanges=1) for name in ("Fetch", "x" * 500)],
    )
    write(folder, MONGO_MINUTES, [row(MONGO_MINUTES, minute=at(60), command="find", commands=1)])
    with connect(folder) as connection:
        yield connection


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (Search(), "6nmtifc"),
        (Search(api_name="OffsetCommit"), "c"),
        (Search(api_name="Offset*"), "c"),
        (Search(client_id="BILLING"), "c"),
        (Search(client_id="billing"), "c"),
        (Search(client_id="?illing-*"), "c"),
        (Search(client_id="illing-?"), ""),
        (Search(client_id="checkout"), "m"),
        (Search(client_id="Check*"), "m"),
        (Search(error="ILLEGAL_GENERATION"), "c"),
        (Search(error=ANY_ERROR), "c"),
        (Search(status="unanswered"), "6"),
        (Search(connection_id="on c"), "c"),
        (Search(connection_id="on"), "6nmtifc"),
        (Search(slower_than_us=2000), "c"),
        (Search(topic="payments"), "fc"),
        (Search(topic="pay*", partition=2), "c"),
        (Search(partition=2), "c"),
        (Search(topic=_TOPIC_ID), "i"),
        (Search(group_id="billing"), "c"),
        (Search(group_id="billing", topic="payments", partition=1), ""),
        (Search(transactional_id="orders-tx-*"), "t"),
        (Search(namespace="shop"), "nm"),
        (Search(namespace="shop.orders.eu"), "m"),
        (Search(namespace="*.users"), "n"),
        (Search(host="10.0.0.2"), "f"),
        (Search(host="10.0.0.9:27017"), "nm"),
        (Search(host="10.0.0.1:27017"), ""),
        (Search(host="fe80::1"), "6"),
        (Search(host="[fe80::1]:5000"), "6"),
        (Search(topic="' OR true --"), ""),
        (Search(terms=(Term("api_name", "Fetch"),)), "6if"),
        (Search(terms=(Term("api_name", "Fetch"), Term("client", "10.0.0.2:5000", is_not=True))), "6i"),
        (Search(terms=(Term("error_names", "ILLEGAL_GENERATION"),)), "c"),
        (Search(terms=(Term("error_names", ""), Term("server", "10.0.0.9:27017", is_not=True))), "6tif"),
        (Search(terms=(Term("client_id", ""),)), "nm"),
        (Search(terms=(Term("client_id", "app", is_not=True),)), "nmc"),
        (Search(api_name="Fetch", terms=(Term("status", "' OR true --"),)), ""),
    ],
)
def test_exchanges_are_searched(lake: duckdb.DuckDBPyConnection, wanted: Search, found: str) -> None:
    answer = search(lake, HOUR, wanted, seconds=60)
    assert "".join(each["exchange_id"] for each in answer.rows) == found
    assert (answer.counted, answer.is_all, answer.older) == (len(found), True, None)
    assert bool(wanted.asked or wanted.terms) == (found != "6nmtifc" or wanted.connection_id is not None)


def test_each_exchange_says_what_matters_in_it(lake: duckdb.DuckDBPyConnection) -> None:
    (found,) = search(lake, HOUR, Search(api_name="OffsetCommit")).rows
    assert found["words"] == "billing payments-2 @24 gen 3 → ILLEGAL_GENERATION"


def test_counts_tell_what_to_narrow_by(lake: duckdb.DuckDBPyConnection) -> None:
    facets = search(lake, HOUR, Search(), seconds=60).facets
    assert facets["api_name"] == [("Fetch", 3), ("EndTxn", 1), ("OffsetCommit", 1), ("find", 1), ("insert", 1)]
    assert facets["error"] == [("ILLEGAL_GENERATION", 1)]
    assert facets["host"] == [("10.0.0.9:9092", 5), ("10.0.0.9:27017", 2)]
    assert facets["status"] == [("paired", 6), ("unanswered", 1)]


def test_of_mongodb_only(lake: duckdb.DuckDBPyConnection) -> None:
    assert [each["exchange_id"] for each in search(lake, Scope(at(0), at(99), "mongodb"), Search()).rows] == ["n", "m"]


def test_apis_to_choose_from_are_those_of_the_span(lake: duckdb.DuckDBPyConnection) -> None:
    assert exchanges.apis(lake, HOUR) == ["Fetch", "find"]
    assert exchanges.apis(lake, Scope(at(0), at(59), "kafka")) == ["Fetch"]


def test_pages_follow_each_other_and_a_moment_is_not_torn_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchange_search, "ENOUGH", 1)
    many = [_exchange(f"{n:03}", n // 3) for n in range(2 * PAGE)]
    write(tmp_path, EXCHANGES, many)
    write(tmp_path, TOPICS, [])
    seen: list[str] = []
    with connect(tmp_path) as connection:
        page = search(connection, HOUR, Search(), seconds=60)
        assert len(page.rows) == PAGE + 1
        while page.older is not None:
            seen += [each["exchange_id"] for each in page.rows]
            page = search(connection, HOUR, Search(), page.older, seconds=60)
        seen += [each["exchange_id"] for each in page.rows]
    assert sorted(seen) == [each["exchange_id"] for each in many]


def test_a_search_that_takes_long_says_how_far_it_came(lake: duckdb.DuckDBPyConnection) -> None:
    found = search(lake, HOUR, Search(topic="nowhere"), seconds=0)
    assert (found.rows, found.is_all, found.older) == ([], False, found.counted_from)
    assert HOUR.start < found.counted_from < HOUR.end
    rest = search(lake, HOUR, Search(topic="nowhere"), found.older, seconds=60)
    assert (rest.is_all, rest.older) == (True, None)


@pytest.mark.parametrize("seconds", [0, 1, 60, 3 * 86_400])
def test_windows_cover_the_span_once_and_never_two_days(seconds: float) -> None:
    found = list(windows(Scope(at(0), at(seconds))))
    assert (found[0].end, found[-1].start) == (at(seconds), at(0))
    for later, earlier in pairwise(found):
        assert (later.start - earlier.end).total_seconds() == pytest.approx(1e-6)
    assert all(window.start.date() == window.end.date() for window in found)
    lengths = [window.end - window.start for window in found if window.end.date() == at(seconds).date()]
    assert lengths == sorted(lengths)
