"""How quick is the search of exchanges? ``python -m benchmarks.search LAKE``, e.g. one of ``benchmarks.big_lake``.

Medians of five of what the page asks, as it asks it: the first page with its words and counts, then one exchange, and
its connection as a sequence. Beside the time on the clock is that of the processor, which shows what a machine with
other work would take alone.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any

from pipeline.dashboard.queries.scope import Scope, extent
from pipeline.dashboard.queries.traffic.exchange_search import ANY_ERROR, Found, Search, search
from pipeline.dashboard.queries.traffic.exchanges import one
from pipeline.dashboard.queries.traffic.sequence import around
from pipeline.dashboard.sql import connect

_TIMES = 5
SEARCHES = {
    "all": Search(),
    "api OffsetCommit": Search(api_name="OffsetCommit"),
    "client billing": Search(client_id="billing"),
    "topic payments, partition 2": Search(topic="payments", partition=2),
    "group billing": Search(group_id="billing"),
    "transactional id": Search(transactional_id="orders-tx-1"),
    "namespace shop.orders": Search(namespace="shop.orders"),
    "any error": Search(error=ANY_ERROR),
    "an error nobody had": Search(error="NOBODY_HAD_IT"),
    "a topic nobody has": Search(topic="nobody"),
    "host": Search(host="127.0.0.1"),
    "slower than 400 ms": Search(slower_than_us=400_000),
    "unanswered": Search(status="unanswered"),
}


def main(lake: str) -> None:
    with connect(lake) as connection:
        there = extent(connection)
        if there is None:
            raise SystemExit("this lake has no exchanges")
        spans = {"last day": Scope(there.last_day_first, there.last), "all days": Scope(there.first, there.last)}
        for span, scope in spans.items():
            print(f"\n{span}, {scope.start:%Y-%m-%d %H:%M} to {scope.end:%Y-%m-%d %H:%M}")
            for name, wanted in SEARCHES.items():
                _print(name, _timed(lambda s=scope, w=wanted: search(connection, s, w)))
        newest = search(connection, spans["last day"], Search()).rows[50]
        old = search(connection, Scope(there.first, there.first.replace(hour=12)), Search()).rows[50]
        print()
        for name, row in {"of the last day": newest, "of the first day": old}.items():
            _print(f"an exchange {name}", _timed(lambda r=row: one(connection, r["exchange_id"], r["ts"])))
            _print(f"its connection, {name}", _timed(lambda r=row: around(connection, r["connection_id"], r["ts"])))
        _print("an exchange, its time unknown", _timed(lambda: one(connection, old["exchange_id"])))


def _timed(ask: Callable[[], Any]) -> tuple[float, float, Any]:
    clocks, processors, answer = [], [], None
    for _ in range(_TIMES):
        clock, processor = time.perf_counter(), time.process_time()
        answer = ask()
        clocks.append(time.perf_counter() - clock)
        processors.append(time.process_time() - processor)
    return median(clocks), median(processors), answer


def _print(name: str, timed: tuple[float, float, Any]) -> None:
    clock, processor, answer = timed
    outcome = ""
    if isinstance(answer, Found):
        back = "all of it" if answer.is_all else f"back to {answer.counted_from:%m-%d %H:%M:%S}"
        outcome = f"{len(answer.rows):>4} rows of {answer.counted:>6,}, {back}"
    print(f"{name:32} {clock:6.2f} s  {processor:6.2f} s of processor  {outcome}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
