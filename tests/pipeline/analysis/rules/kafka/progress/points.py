"""Points made by hand: ends of a log, commits, fetches and falls, and what the rules judge of them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from pipeline.analysis.rules.kafka.progress.evaluate import judge
from pipeline.analysis.rules.kafka.progress.track import Fall, Point, Trouble
from pipeline.analysis.rules.settings import finding_settings

SETTINGS = finding_settings()
SEC = 1_000_000
"""µs."""


def end(second: float, offset: int) -> Point:
    return Point(int(second * SEC), end=offset)


def commit(second: float, offset: int, times: int = 1) -> Point:
    return Point(int(second * SEC) + 1, commits=times, committed=offset, exchange_id=f"c{second}")


def fetch(second: float, start: int, stop: int) -> Point:
    return Point(int(second * SEC) + 2, fetched_from=start, position=stop)


def fall(second: float, before: int, after: int) -> Point:
    gone = Fall(int(second * SEC) + 1, before, after, "tool", f"c{second}")
    return Point(int(second * SEC) + 1, commits=1, committed=after, exchange_id=f"c{second}", fall=gone)


def log(seconds: int, rate: int = 10) -> list[Point]:
    return [end(n, rate * n) for n in range(seconds + 1)]


def with_lags(points: Sequence[Point]) -> list[Point]:
    """In order of time, commits with the lag that a timeline of these points would have."""
    high, done = 0, []
    for point in sorted(points, key=lambda p: p.ts_us):
        high = point.end or high
        done.append(point if point.committed is None else replace(point, lag=max(high - point.committed, 0)))
    return done


def judged(*partitions: Sequence[Point]) -> list[Trouble]:
    return judge({n: with_lags(points) for n, points in enumerate(partitions)}, SETTINGS)


def bursts(records: int, every: int = 60, times: int = 10) -> list[Point]:
    """This many records at once, worked off ten a second with a commit each second, then nothing for a while."""
    points: list[Point] = []
    for n in range(times):
        start, before = n * every, n * records
        done = [commit(start + 1 + s, before + min(10 * (s + 1), records)) for s in range(-(-records // 10))]
        points += [end(start, before + records), fetch(start, before, before + records), *done]
    return points


def steady(rate: int, every: float, jitter: float, seed: int) -> list[Point]:
    """Ten minutes of a group that is always as far behind as its last poll."""
    chance, points, second = random.Random(seed), log(600, rate), 1.0
    while second < 600:
        done = int(rate * (second - jitter * chance.random()))
        points.append(replace(commit(second, done), lag=int(rate * second) - done))
        second += every * (0.98 + 0.04 * chance.random())
    return sorted(points, key=lambda p: p.ts_us)


BACK = [
    *log(60), *(commit(n, 10 * n) for n in range(30)), fall(30, 290, 0), fetch(32, 0, 100),
    *(commit(n, 10 * n) for n in range(36, 60)),
]  # fmt: skip
