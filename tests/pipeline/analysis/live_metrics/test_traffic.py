"""Requests of the window are counted, each once, with their latencies."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from pipeline.analysis.live_metrics.traffic import TrafficNow, traffic_now
from pipeline.analysis.live_metrics.window import Window
from pipeline.tables import EXCHANGES_WITH_BODIES, MONGO_COMMANDS, STATE_EVENTS
from tests.pipeline.rows import T0, arrow, row

BEGIN_US = int(T0.timestamp() * 1e6)


def asked(at_s: float, api_key: int, api_name: str, **values: Any) -> dict[str, Any]:
    return row(
        EXCHANGES_WITH_BODIES, ts=T0 + timedelta(seconds=at_s), api_key=api_key, api_name=api_name, request_size=10,
        response_size=90, **{"client_id": "app", "client_ip": "10.0.0.1", "connection_id": "k", **values},
    )  # fmt: skip


def commanded(at_s: float, command: str, **values: Any) -> dict[str, Any]:
    return row(
        MONGO_COMMANDS, ts=T0 + timedelta(seconds=at_s), command=command, connection_id="m", exchange_id=f"{at_s}",
        **{"ok": True, "database": "shop", "collection": "orders", **values},
    )  # fmt: skip


def now(*exchanges: dict[str, Any], commands: tuple[Any, ...] = (), states: tuple[Any, ...] = ()) -> TrafficNow:
    tables = arrow(EXCHANGES_WITH_BODIES, exchanges), arrow(STATE_EVENTS, states), arrow(MONGO_COMMANDS, commands)
    return traffic_now(*tables, Window(BEGIN_US, BEGIN_US + 60_000_000))


def test_apis_of_the_window_with_percentiles_by_nearest_rank() -> None:
    found = now(
        asked(-1, 0, "Produce", latency_us=9_000_000),
        *(asked(second, 0, "Produce", latency_us=1000 * second) for second in range(1, 51)),
        asked(55, 0, "Produce", status="unanswered"),
        asked(56, 0, "Produce", error_codes=[6], latency_us=1),
        asked(57, 1, "Fetch", latency_us=500_000),
    )
    produce, fetch = found.apis
    assert (produce.name, produce.asked, produce.errors, produce.unanswered) == ("Produce", 52, 1, 1)
    assert (produce.p50_us, produce.p99_us, produce.max_us) == (25_000, 50_000, 50_000)
    assert produce.bytes == 5_200
    assert not produce.waits
    assert (fetch.name, fetch.asked, fetch.waits) == ("Fetch", 1, True)


def test_two_sizes_that_32_bits_do_not_hold_together_are_added() -> None:
    most = 2**31 - 1
    found = now(asked(1, 0, "Produce") | {"request_size": most, "response_size": most})
    assert [one.bytes for one in (*found.apis, *found.clients)] == [2 * most, 2 * most]


def test_waiting_behind_a_long_poll_is_no_latency_of_an_api() -> None:
    found = now(
        asked(1, 10, "FindCoordinator", latency_us=2_000_900, service_us=900),
        asked(2, 10, "FindCoordinator", latency_us=800, service_us=800),
    )
    (one,) = found.apis
    assert (one.p50_us, one.p99_us, one.max_us, one.wait_us) == (800, 900, 900, 2_000_000)


def test_commands_by_namespace() -> None:
    found = now(
        commands=(
            commanded(1, "find", latency_us=10, documents_out=3), commanded(2, "find", ok=False),
            commanded(3, "find", collection="users"), commanded(4, "getMore", is_awaiting=True),
        )
    )  # fmt: skip
    assert [(one.command, one.namespace, one.asked, one.errors) for one in found.commands] == [
        ("find", "shop.orders", 2, 1),
        ("find", "shop.users", 1, 0),
        ("getMore", "shop.orders", 1, 0),
    ]
    assert found.commands[0].documents_out == 3
    assert [one.waits for one in found.commands] == [False, False, True]


def test_clients_with_their_software_connections_and_what_they_ask_most() -> None:
    found = now(
        asked(1, 0, "Produce"), asked(2, 0, "Produce", connection_id="l"), asked(3, 3, "Metadata", error_codes=[3]),
        asked(4, 1, "Fetch", client_id=None, client_ip="10.0.0.2", connection_id="n"),
        asked(5, 2013, "find", protocol="mongodb", client_id=None, connection_id="m"),
        commands=(commanded(-100, "hello", application="shop", driver="nodejs", driver_version="6.8"),),
        states=(row(STATE_EVENTS, kind="software", connection_id="k", software_name="java", software_version="3.9"),),
    )  # fmt: skip
    app, unnamed, shop = found.clients
    assert (app.client, app.host, app.asked, app.errors, app.connections) == ("app", "10.0.0.1", 3, 1, 2)
    assert (app.mostly, app.software, app.bytes) == ("Produce", "java 3.9", 300)
    assert (unnamed.client, unnamed.host, unnamed.software) == ("", "10.0.0.2", "")
    assert (shop.protocol, shop.client, shop.mostly, shop.software) == ("mongodb", "shop", "find", "nodejs 6.8")
