"""Healthy: MongoDB with pools that breathe, cursors read slowly, at once or exhausted, a tailed log, health checks.

FerretDB has no change streams (healthy_change_streams has some); a cursor that awaits data waits on the wire as one.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import pymongo
from pymongo import CursorType

from tests.scenarios.rhythm import Clock
from tests.scenarios.truth import Truth

SECONDS = 600.0
FINDINGS: set[tuple[str, str]] = set()
_DOCUMENTS = 200

Client = pymongo.MongoClient[Any]


def play(server: str, truth: Truth, clock: Clock) -> None:
    """Each application has its client and its thread."""
    failures: list[BaseException] = []

    def client(name: str, **options: Any) -> Client:
        truth.client(name, "pymongo", "Python", pymongo.version)
        return stack.enter_context(pymongo.MongoClient(f"mongodb://{server}", appname=name, **options))

    def application(work: Callable[[Client, Clock], None], of: Client) -> None:
        try:
            work(of, clock)
        except BaseException as error:  # told in the end
            failures.append(error)

    with ExitStack() as stack:
        setup = client("setup")
        setup.shop.items.insert_many([{"_id": number, "stock": number % 7} for number in range(_DOCUMENTS)])
        setup.shop.create_collection("log", capped=True, size=1_000_000)
        setup.shop.log.insert_one({"_id": 0})
        applications: dict[Callable[[Client, Clock], None], Client] = {
            _breathe: client("shop-web", maxPoolSize=20, maxIdleTimeMS=15_000),
            _update: client("worker", compressors="zstd"),
            _exhaust: client("exporter"),
            _read_slowly: client("lister"),
            _write_log: client("log-app"),
            _tail: client("log-reader"),
        }
        threads = [threading.Thread(target=application, args=each) for each in applications.items()]
        threads.append(threading.Thread(target=_check_health, args=(server, clock)))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        truth.outcome(items=setup.shop.items.count_documents({}), log=setup.shop.log.count_documents({}))
    if failures:
        raise failures[0]


def _breathe(client: Client, clock: Clock) -> None:
    """Twelve threads for ten seconds of each minute; idle connections are closed after a quarter of one."""

    def browse(until: float) -> None:
        for number in itertools.count():
            if clock.now() >= until:
                return
            client.shop.items.find_one({"_id": number % _DOCUMENTS})
            time.sleep(0.4)

    for minute in range(10):
        clock.until(60 * minute + 10)
        with ThreadPoolExecutor(12) as pool:
            list(pool.map(browse, [60 * minute + 20] * 12))


def _update(client: Client, clock: Clock) -> None:
    for number in itertools.count():
        if clock.now() >= SECONDS:
            return
        client.shop.items.update_one({"_id": number % _DOCUMENTS}, {"$inc": {"stock": 1}})
        time.sleep(1)


def _exhaust(client: Client, clock: Clock) -> None:
    for minute in range(10):
        clock.until(60 * minute + 30)
        cursor = client.shop.items.find(batch_size=20, cursor_type=CursorType.EXHAUST)
        assert len(list(cursor)) == _DOCUMENTS


def _read_slowly(client: Client, clock: Clock) -> None:
    """Two seconds for each twenty documents."""
    while clock.now() < SECONDS - 30:
        for number, _ in enumerate(client.shop.items.find(batch_size=20), 1):
            time.sleep(0 if number % 20 else 2)
        time.sleep(5)


def _write_log(client: Client, clock: Clock) -> None:
    for number in itertools.count(1):
        if clock.now() >= SECONDS:
            return
        client.shop.log.insert_one({"_id": number})
        time.sleep(7)


def _tail(client: Client, clock: Clock) -> None:
    cursor = client.shop.log.find(cursor_type=CursorType.TAILABLE_AWAIT).max_await_time_ms(1000)
    while clock.now() < SECONDS and cursor.alive:
        if next(cursor, None) is None:
            time.sleep(0.1)
    cursor.close()


def _check_health(server: str, clock: Clock) -> None:
    """A connection each ten seconds that asks for nothing but a ping."""
    while clock.now() < SECONDS:
        with pymongo.MongoClient[Any](f"mongodb://{server}", appname="health-check", directConnection=True) as client:
            client.admin.command("ping")
        time.sleep(10)
