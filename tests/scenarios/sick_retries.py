"""Sick, healed and sick again, at a rhythm of 30 s: a balancer before MongoDB that loses connections of who writes.

`checkout` (pymongo) writes an order each 30 s. While the balancer is ill the server does each of its writes, and the
connection is gone before the reply: the driver writes again (retryable writes) and is told that it is done. `catalog`
only reads, and the balancer spares `audit`, which writes as often.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pymongo

from tests.brokers.cutting_proxy import CuttingProxy
from tests.scenarios.rhythm import EACH_30_SECONDS, Clock
from tests.scenarios.truth import Truth
from tests.scenarios.turns import Turns

EACH_S = 30.0
FINDINGS = {"sick_retries_30s": {("mongo_retry_storm", "shop.orders/insert")}}
_CALM: dict[str, Any] = {"serverMonitoringMode": "poll", "heartbeatFrequencyMS": 60_000}

Client = pymongo.MongoClient[Any]


def play_30s(server: str, truth: Truth, clock: Clock, proxy: CuttingProxy) -> None:
    """Writes each 30 s: a balancer that loses the connection before the reply, so that the driver writes again."""
    with ExitStack() as stack:

        def client(name: str) -> Client:
            truth.client(name, "pymongo", "Python", pymongo.version)
            return stack.enter_context(pymongo.MongoClient(f"mongodb://{server}", appname=name, **_CALM))

        setup, checkout, catalog, audit = map(client, ("setup", "checkout", "catalog", "audit"))
        setup.shop.items.insert_many([{"_id": number, "stock": number % 7} for number in range(40)])
        orders = iter(range(1_000_000))

        def order(is_ill: bool) -> None:
            with proxy.cutting(is_ill):
                checkout.shop.orders.insert_one({"_id": next(orders), "total": 7.5})

        acts: dict[str, Callable[[bool], None]] = {
            "checkout": order,
            "catalog": lambda _: _read(catalog),
            "audit": lambda _: _note(audit, clock),
        }
        turns = [
            Turns(name, clock, EACH_S, act, offset_s=2.0 + 7 * number)
            for number, (name, act) in enumerate(acts.items())
        ]
        for one in turns:
            stack.enter_context(one)
        EACH_30_SECONDS.play(turns[:1], truth, clock)
        truth.outcome(orders=setup.shop.orders.count_documents({}))


def _read(catalog: Client) -> None:
    assert len(list(catalog.shop.items.find({"stock": {"$gte": 0}}, batch_size=20))) == 40


def _note(audit: Client, clock: Clock) -> None:
    audit.shop.audit.insert_one({"second": clock.now()})
