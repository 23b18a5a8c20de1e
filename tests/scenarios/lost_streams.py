"""Change streams on a server whose history holds twenty events, and an application that connects for each question.

`search-index` sleeps for longer than the history lasts, and then tries to resume again and again; `audit` does the same
and starts over; `invoices` has a token that is none. `mirror` keeps up. `receipts` makes a client for each question.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pymongo
import pytest
from pymongo.errors import OperationFailure, PyMongoError

from tests.scenarios.mongodb import Truth

HOST = "127.0.3.1"
KEPT = 20
FINDINGS = {
    ("change_stream_lost", "shop.orders/search-index"),
    ("change_stream_lost", "shop.orders/audit"),
    ("change_stream_lost", "shop.invoices/invoices"),
    ("connection_churn", "receipts/127.0.0.1"),
}
_QUESTIONS = 34
_SLEEPS = 7.0

Client = pymongo.MongoClient[Any]


def play(host: str, port: int, truth: Truth) -> None:
    """Play it."""
    options: dict[str, Any] = {"serverMonitoringMode": "poll", "heartbeatFrequencyMS": 600_000}

    @contextmanager
    def client(name: str, **more: Any) -> Iterator[Client]:
        with pymongo.MongoClient(host, port, event_listeners=[truth], appname=name, **options, **more) as made:
            yield made

    over = threading.Event()

    def write() -> None:
        with client("shop") as shop:
            number = 0
            while not over.wait(0.2):
                number += 1
                shop.shop.orders.insert_one({"_id": number, "total": number * 1.5})

    def keep_up() -> None:
        with client("mirror") as mirror, mirror.shop.orders.watch(max_await_time_ms=500) as stream:
            while not over.is_set():
                stream.try_next()

    workers = [threading.Thread(target=one) for one in (write, keep_up)]
    for worker in workers:
        worker.start()
    sleepers = [threading.Thread(target=_sleep_too_long, args=(client, name)) for name in ("search-index", "audit")]
    sleepers.append(threading.Thread(target=_resume_by_nonsense, args=(client,)))
    for sleeper in sleepers:
        sleeper.start()
    for number in range(_QUESTIONS):
        with client("receipts") as receipts:
            receipts.shop.orders.find_one({"_id": number})
        time.sleep(0.6)
    for sleeper in sleepers:
        sleeper.join()
    over.set()
    for worker in workers:
        worker.join()


def _sleep_too_long(client: Any, name: str) -> None:
    with client(name) as made:
        orders = made.shop.orders
        with orders.watch(max_await_time_ms=500) as stream:
            while stream.try_next() is None:
                pass
            time.sleep(_SLEEPS)
            with pytest.raises(OperationFailure, match="ChangeStreamHistoryLost"):
                _read_on(stream)
            token = stream.resume_token
        if name == "audit":
            with orders.watch(max_await_time_ms=500) as anew:
                for _ in range(20):
                    anew.try_next()
                    time.sleep(0.3)
            return
        for _ in range(6):
            with suppress(PyMongoError), orders.watch(resume_after=token):
                raise AssertionError("this should have failed")
            time.sleep(1)


def _read_on(stream: Any) -> None:
    while True:
        stream.try_next()


def _resume_by_nonsense(client: Any) -> None:
    with client("invoices") as made:
        for _ in range(3):
            with suppress(OperationFailure), made.shop.invoices.watch(resume_after={"_data": "a file's name"}):
                raise AssertionError("this should have failed")
            time.sleep(2)
