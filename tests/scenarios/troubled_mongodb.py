"""A shop on MongoDB with four applications in trouble and one in good health, which does the same things properly.

`dashboards` waits for a server that stands still, `importer` sends updates that no server takes, `checkout` repeats its
writes as a driver does after a lost connection, and `reports` leaves its cursors open. `archive` reads as many cursors
to their end, closes others, and meets keys that are there already.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from typing import Any

import bson
import pymongo
from pymongo.errors import DuplicateKeyError, OperationFailure, WriteError

from tests.scenarios.mongodb import Truth

HOST = "127.0.0.2"
FINDINGS = {
    ("mongo_slow_command", "shop.orders/find"),
    ("mongo_command_failed", "shop.orders/update"),
    ("mongo_retry_storm", "shop.orders/insert"),
    ("mongo_cursor_leak", "reports/127.0.0.1"),
}
_CURSORS = 12
_IDLE_SECONDS = 32
_FROZEN_SECONDS = 1.5

Client = pymongo.MongoClient[Any]


def play(host: str, port: int, truth: Truth, frozen: Callable[[], AbstractContextManager[None]]) -> None:
    """Play it; `frozen()` keeps the server from running."""
    with ExitStack() as stack:

        def client(name: str) -> Client:
            # Checks of the server's state would wait for it, too: once at the beginning is enough.
            options: dict[str, Any] = {"serverMonitoringMode": "poll", "heartbeatFrequencyMS": 600_000}
            return stack.enter_context(
                pymongo.MongoClient(host, port, event_listeners=[truth], appname=name, **options)
            )

        archive, reports, checkout, importer, dashboards = map(
            client, ("archive", "reports", "checkout", "importer", "dashboards")
        )
        archive.shop.orders.insert_many([{"_id": n, "total": n * 1.5} for n in range(30)])
        left = [reports.shop.orders.find({"total": {"$gte": n}}, batch_size=2) for n in range(_CURSORS)]
        for cursor in left:
            next(cursor)
        started = time.monotonic()
        _fail(importer)
        _repeat(checkout)
        _wait_for_it(dashboards, frozen)
        _go_on(archive, started + _IDLE_SECONDS)


def _fail(importer: Client) -> None:
    for n in range(4):
        try:
            importer.shop.orders.update_one({"_id": n}, {"$nonsense": {"total": 1}})
        except WriteError:
            continue
        raise AssertionError("this should have failed")


def _repeat(checkout: Client) -> None:
    """Each write comes twice, under one number, as after a connection that broke before the answer."""
    with checkout.start_session() as session:
        for number in range(1, 7):
            document = {"_id": f"order-{number}", "total": number}
            for _ in range(2):
                checkout.shop.command(
                    "insert", "orders", documents=[document], txnNumber=bson.Int64(number), session=session
                )


def _wait_for_it(dashboards: Client, frozen: Callable[[], AbstractContextManager[None]]) -> None:
    orders = dashboards.shop.orders
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: orders.find_one({"_id": n}), range(4)))
        with frozen():
            answers = [pool.submit(orders.find_one, {"_id": n}) for n in range(4)]
            time.sleep(_FROZEN_SECONDS)
        assert all(answer.result() for answer in answers)


def _go_on(archive: Client, until: float) -> None:
    """Cursors read to their end or closed, and keys that are there already, while the others are left open."""
    orders, number = archive.shop.orders, 0
    while time.monotonic() < until:
        assert len(list(orders.find({"_id": {"$lt": 8}}, batch_size=3))) == 8
        with orders.find(batch_size=2) as closed:
            next(closed)
        try:
            orders.insert_one({"_id": number % 20})
        except (DuplicateKeyError, OperationFailure):
            number += 1
        time.sleep(1)
    assert number > _CURSORS
