"""Fetch sessions: what stays in a session although no frame speaks of it, and when the set cannot be trusted."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from decoder.kafka.extractors.fetch_sessions import Held, Part, SessionFetch, follow

DAY = date(2026, 3, 1)
MAX = 2**31 - 1


def part(partition: int, offset: int | None = None, end: int | None = None, *, forgotten: bool = False) -> Part:
    return Part("t", None, partition, "read_committed", offset, end, forgotten)


def fetch(ts: int, epoch: int, *parts: Part, days: int = 0, failed: bool = False) -> SessionFetch:
    return SessionFetch(DAY + timedelta(days=days), ts, "10.0.0.9:1", "app", epoch, failed, parts)


def shown(rows: list[Held]) -> list[tuple[object, ...]]:
    return [
        (h.partition, h.first_us, h.last_us, h.fetch_offset, h.fetches, h.is_open, h.complete)
        for h in sorted(rows, key=lambda h: (h.day, h.partition, h.first_us))
    ]


FULL = fetch(1, 0, part(0, 10), part(1, 20))


def test_a_partition_without_news_stays_in_the_session() -> None:
    rows = follow([FULL, fetch(2, 1), fetch(3, 2, part(1, None, 25)), fetch(4, 3, part(1, 25))])
    assert shown(rows) == [(0, 1, 4, 10, 4, True, True), (1, 1, 4, 25, 4, True, True)]


def test_partitions_come_and_go() -> None:
    rows = follow([FULL, fetch(2, 1, part(0, forgotten=True), part(2, 5)), fetch(3, 2), fetch(4, 3, part(0, 12))])
    assert shown(rows) == [
        (0, 1, 1, 10, 1, False, True),
        (0, 4, 4, 12, 1, True, True),
        (1, 1, 4, 20, 4, True, True),
        (2, 2, 4, 5, 3, True, True),
    ]


@pytest.mark.parametrize(
    ("end", "last"),
    [(fetch(9, -1), 1), (fetch(9, 1, failed=True), 1), (fetch(9, 0, part(7, 0)), 1)],
    ids=["closed", "refused", "started over"],
)
def test_a_session_ends(end: SessionFetch, last: int) -> None:
    rows = [h for h in follow([FULL, end]) if h.partition < 7]
    assert [(h.last_us, h.is_open, h.complete) for h in rows] == [(last, False, True)] * 2


@pytest.mark.parametrize("epochs", [(1, 3), (2,), (1, 2, 4)])
def test_a_missing_epoch_makes_the_set_incomplete_until_the_next_full_fetch(epochs: tuple[int, ...]) -> None:
    later = [fetch(10 + epoch, epoch, part(0, 11)) for epoch in epochs]
    assert [h.complete for h in follow([FULL, *later])] == [False, False]
    healed = [h for h in follow([FULL, *later, fetch(99, 0, part(0, 12))]) if h.first_us == 99]
    assert [h.complete for h in healed] == [True]


def test_a_session_joined_midway_is_incomplete() -> None:
    assert shown(follow([fetch(5, 17, part(3, 8)), fetch(6, 18, part(4, None, 3))])) == [
        (3, 5, 6, 8, 2, True, False),
        (4, 6, 6, 3, 1, True, False),
    ]


def test_epochs_wrap_to_one_and_a_fetch_seen_twice_is_no_loss() -> None:
    before = Held(DAY, "c", "app", "t", None, 0, None, 1, 1, 10, 1, MAX - 1, True, True)
    rows = follow([fetch(2, MAX, days=1), fetch(3, 1, days=1), fetch(3, 1, days=1)], [before])
    assert [(h.complete, h.fetch_offset) for h in rows] == [(True, 10)]


def test_days_one_by_one_give_the_same_as_all_at_once() -> None:
    days = [
        [FULL, fetch(2, 1, part(0, 11))],
        [fetch(10, 2, days=1), fetch(11, 3, part(1, forgotten=True), days=1)],
        [fetch(20, 4, part(0, 12), days=2), fetch(21, 6, days=2)],
        [fetch(30, 7, part(0, 13), days=4)],  # a day without a fetch: brokers forget sessions sooner
    ]
    carried: list[Held] = []
    one_by_one: list[Held] = []
    for of_day in days:
        found = follow(of_day, [h for h in carried if h.is_open and of_day[0].day - h.day == timedelta(days=1)])
        one_by_one += found
        carried = found
        assert {h.day for h in found} <= {f.day for f in of_day}
    assert shown(one_by_one) == shown(follow([f for of_day in days for f in of_day]))
    assert [h.complete for h in one_by_one if h.partition == 0] == [True, True, False, False]
