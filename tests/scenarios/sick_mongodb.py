"""Sick, healed and sick again, at a rhythm of 30 s: applications on MongoDB that ask each half minute.

`search-index` sleeps for longer than the history of changes lasts, and tries to resume where nothing is any more, until
it is made to start over. `importer` sends updates that no server takes. `reports` leaves its cursors open. `dashboards`
waits for a server that stands still whenever it asks. `receipts` makes a client for each question. `archive` and
`mirror` do the same things properly.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, suppress
from typing import Any

import pymongo
from pymongo.errors import OperationFailure, PyMongoError, WriteError

from tests.scenarios.rhythm import Clock, Windows
from tests.scenarios.truth import Truth

KEPT = 25
EACH_S, WRITE_EACH_S = 30.0, 3.0
"""The history lasts for 75 seconds."""
WINDOWS = Windows(150, 390, 510, 690, end=810)
FINDINGS = {
    "sick_mongodb_30s": {
        ("change_stream_lost", "shop.orders/search-index"),
        ("mongo_command_failed", "shop.orders/update"),
        ("mongo_cursor_leak", "reports/127.0.0.1"),
        *(("mongo_slow_command", what) for what in ("shop.items/find", "shop.orders/insert", "admin/ismaster")),
        ("connection_churn", "receipts/127.0.0.1"),
    }
}
_NAMED = {("change_stream_lost", "shop.orders/search-index"), ("mongo_cursor_leak", "reports/127.0.0.1")}
UNKNOWN = {"sick_mongodb_30s": {"joined midway": _NAMED, "with loss": {("mongo_cursor_leak", "reports/127.0.0.1")}}}
POSSIBLE = {"sick_mongodb_30s": {("change_stream_lost", "shop.orders/127.0.0.1"), ("mongo_cursor_leak", "?/127.0.0.1")}}
"""Applications say their names when they connect; and what was lost may have closed a cursor."""
_CALM: dict[str, Any] = {"serverMonitoringMode": "poll", "heartbeatFrequencyMS": 60_000}

Client = pymongo.MongoClient[Any]


def is_ill(clock: Clock) -> bool:
    """Whether it is now."""
    return any(begin <= clock.now() < end for begin, end in WINDOWS.ill)


def play_30s(server: str, truth: Truth, clock: Clock, frozen: Callable[[], AbstractContextManager[None]]) -> None:
    """Asks each 30 s: a change stream that is lost, failing updates, cursors left open, a server that stands still."""
    failures: list[BaseException] = []

    def client(name: str) -> Client:
        truth.client(name, "pymongo", "Python", pymongo.version)
        return pymongo.MongoClient(f"mongodb://{server}", appname=name, **_CALM)

    def application(name: str, work: Callable[[Client], None]) -> None:
        try:
            with client(name) as made:
                work(made)
        except BaseException as error:  # told in the end
            failures.append(error)

    with ExitStack() as stack:
        setup = stack.enter_context(client("setup"))
        setup.shop.items.insert_many([{"_id": number, "stock": number % 7} for number in range(100)])
        freezing = threading.Lock()
        applications: dict[str, Callable[[Client], None]] = {
            "shop": lambda made: _write(made, clock),
            "mirror": lambda made: _keep_up(made, clock),
            "search-index": lambda made: _sleep_too_long(made, clock),
            "importer": lambda made: _fail(made, clock),
            "reports": lambda made: _leave_open(made, clock),
            "dashboards": lambda made: _wait(made, clock, frozen, freezing),
            "archive": lambda made: _read_properly(made, clock),
        }
        threads = [threading.Thread(target=application, args=each) for each in applications.items()]
        threads.append(threading.Thread(target=_connect, args=(client, clock)))
        for thread in threads:
            thread.start()
        for begin, end in WINDOWS.ill:
            for second, kind in ((begin, "incident"), (end, "healed")):
                clock.until(second)
                for name in ("search-index", "importer", "reports", "dashboards", "receipts"):
                    truth.add(name, kind)
        for thread in threads:
            thread.join()
        truth.outcome(orders=setup.shop.orders.count_documents({}))
    if failures:
        raise failures[0]


def _every(clock: Clock, seconds: float, offset_s: float = 0.0) -> Any:
    for number in itertools.count():
        second = offset_s + seconds * number
        if second >= WINDOWS.end:
            return
        clock.until(second)
        yield number


def _write(shop: Client, clock: Clock) -> None:
    for number in _every(clock, WRITE_EACH_S):
        shop.shop.orders.insert_one({"_id": number, "total": number * 1.5})


def _keep_up(mirror: Client, clock: Clock) -> None:
    with mirror.shop.orders.watch(max_await_time_ms=500) as stream:
        for _ in _every(clock, EACH_S, 7):
            while stream.try_next() is not None:
                pass


def _sleep_too_long(index: Client, clock: Clock) -> None:
    """Takes what is new each 30 s; when ill it does not for two minutes, and then resumes by its old token."""
    token: Any = None
    stream: Any = index.shop.orders.watch(max_await_time_ms=500)
    for _ in _every(clock, EACH_S, 3):
        if is_ill(clock) and token is None:
            token = stream.resume_token
            clock.until(clock.now() + 4 * EACH_S)
            with suppress(PyMongoError):
                _take_all(stream)
            continue
        if not is_ill(clock) and token is not None:
            token, stream = None, index.shop.orders.watch(max_await_time_ms=500)
        if token is None:
            _take_all(stream)
        else:
            with suppress(PyMongoError), index.shop.orders.watch(resume_after=token):
                raise AssertionError("this should have failed")
    stream.close()


def _take_all(stream: Any) -> None:
    while stream.try_next() is not None:
        pass


def _fail(importer: Client, clock: Clock) -> None:
    for number in _every(clock, EACH_S, 5):
        with suppress(WriteError, OperationFailure):
            what = {"$nonsense": {"total": 1}} if is_ill(clock) else {"$set": {"total": 1}}
            importer.shop.orders.update_one({"_id": number}, what)


def _leave_open(reports: Client, clock: Clock) -> None:
    """Reads the first of many; when ill it keeps each cursor, until its process is started again."""
    kept: list[Any] = []
    for _ in _every(clock, 10, 4):
        cursor = reports.shop.items.find({"stock": {"$gte": 0}}, batch_size=2)
        next(cursor)
        if is_ill(clock):
            kept.append(cursor)
            continue
        cursor.close()
        for one in kept:
            one.close()
        kept.clear()


def _wait(
    dashboards: Client, clock: Clock, frozen: Callable[[], AbstractContextManager[None]], one_at_a_time: threading.Lock
) -> None:
    for number in _every(clock, EACH_S, 11):
        if not is_ill(clock):
            dashboards.shop.items.find_one({"_id": number})
            continue
        with one_at_a_time:
            asking = threading.Thread(target=dashboards.shop.items.find_one, args=({"_id": number},))
            with frozen():
                asking.start()
                time.sleep(1.5)
            asking.join()


def _connect(client: Callable[[str], Client], clock: Clock) -> None:
    """A question each 30 s over one connection; when ill, a connection for each, one a second and more."""
    with client("receipts") as kept:
        for number in itertools.count():
            if clock.now() >= WINDOWS.end:
                return
            if is_ill(clock):
                with client("receipts") as made:
                    made.shop.items.find_one({"_id": number})
                time.sleep(0.8)
            else:
                kept.shop.items.find_one({"_id": number})
                clock.until(clock.now() + 5)


def _read_properly(archive: Client, clock: Clock) -> None:
    for _ in _every(clock, EACH_S, 13):
        assert len(list(archive.shop.items.find({"_id": {"$lt": 40}}, batch_size=10))) == 40
