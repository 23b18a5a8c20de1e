"""What is progress, and what is none? Points made by hand: each trouble, and what only looks like it."""

from __future__ import annotations

import pytest

from pipeline.analysis.rules.kafka.progress import texts
from pipeline.analysis.rules.kafka.progress.evaluate import judge, judge_lives
from pipeline.analysis.rules.kafka.progress.track import Point
from tests.pipeline.analysis.rules.kafka.progress.points import (
    BACK,
    SEC,
    SETTINGS,
    bursts,
    commit,
    end,
    fall,
    fetch,
    judged,
    log,
    steady,
    with_lags,
)

GOOD = [*log(60), *(commit(n, 10 * n) for n in range(60))]
IDLE = [end(0, 100), end(60, 100), *(commit(n, 100) for n in range(60))]
SLOW = [*log(60, 30), *(commit(n, 10 * n) for n in range(60))]
QUIET = [*log(60), *(commit(n, 10 * n) for n in range(20))]
PAUSED = [*log(60), *(commit(n, 10 * min(n, 20)) for n in range(60))]
STARVED = [*QUIET, *(fetch(n, 191, 191) for n in range(20, 60))]
SAW = [*log(60, 30), *(commit(n, 30 * n) for n in range(0, 60, 12))]
READS_ON = [*PAUSED, *(fetch(n, 10 * n, 10 * n + 10) for n in range(60))]
LATE = [*log(60), *(commit(n, 10 * n) for n in range(30)), fall(30, 290, 283), fetch(30.5, 300, 310)]
LATE += [commit(n, 10 * n) for n in range(31, 60)]
BUSY = [*log(600), *(commit(n, 10 * n) for n in range(600))]
JUST_CAME = [*bursts(20, times=5), end(300, 120), fetch(300.01, 100, 120)]


def test_who_fetches_on_has_not_gone() -> None:
    """A whole topic without commits: its readers are alive, so that nobody needs to start them."""
    (stopped,) = judged([*QUIET, *(fetch(n, 10 * n, 10 * n + 10) for n in range(20, 60))])
    assert (stopped.rule, stopped.figures["fetched_beyond"]) == ("stopped", 410)
    assert texts.summary("g", "t", stopped).endswith("It still fetches: 410 records beyond its commits.")
    assert texts.advice("g", "t", stopped).startswith("Now: check the log of the client that committed last")


def test_a_partition_that_is_fetched_but_left_out_of_commits_is_not_paused() -> None:
    fetched = [*QUIET, *(fetch(n, 10 * n, 10 * n + 10) for n in range(20, 60))]
    (reads,), (waits,) = judged(fetched, GOOD), judged(QUIET, GOOD)
    assert (reads.rule, waits.rule) == ("partition_dropped_from_commits", "partition_dropped_from_commits")
    assert reads.figures["fetched_beyond"] == 410
    assert texts.summary("g", "t", reads).endswith("It still fetches: 410 records beyond its commits.")
    assert "so it is not paused" in texts.advice("g", "t", reads)
    assert "fetched_beyond" not in waits.figures
    assert "or the partition is paused" in texts.advice("g", "t", waits)


@pytest.mark.parametrize(
    "fetches",
    [
        [fetch(59, 191, 600)],
        [fetch(n, 10 * n, 10 * n + 10) for n in range(20, 40)],
        [fetch(20 + n / 10, 191, 401) for n in range(10)],
    ],
    ids=["once", "no longer", "the same again"],
)
def test_who_does_not_keep_up_does_not_fetch_on(fetches: list[Point]) -> None:
    (stopped,) = judged([*QUIET, *fetches])
    assert (stopped.rule, "fetched_beyond" in stopped.figures) == ("stopped", False)


@pytest.mark.parametrize(
    ("partitions", "expected"),
    [
        ([GOOD], []),
        ([IDLE], []),
        ([GOOD, IDLE], []),
        ([SLOW], [("lag_growing", 0, True)]),
        ([QUIET], [("stopped", None, True)]),
        ([PAUSED], [("stalled", 0, True)]),
        ([QUIET, GOOD], [("partition_dropped_from_commits", 0, True)]),
        ([STARVED], []),
        ([STARVED, GOOD], []),
        ([SAW], []),
        ([READS_ON], []),
        ([BACK], [("commit_regressed", 0, False), ("rewound", 0, False)]),
        ([LATE], [("commit_regressed", 0, False)]),
        ([bursts(20)], []),
        ([bursts(30), BUSY], []),
        ([JUST_CAME], []),
        ([[*bursts(20, times=5), end(300, 120), end(330, 120)]], [("stopped", None, True)]),
    ],
    ids=[
        "gets on", "nothing to read", "one partition idle", "slower than what is written", "silent",
        "the same offset again", "one partition silent", "fetches in vain", "fetches in vain beside a good partition",
        "commits seldom", "reads on without committing", "set back", "a late commit",
        "bursts", "bursts beside a busy partition", "a burst at the end", "a burst that nobody works off",
    ],
)  # fmt: skip
def test_troubles(partitions: list[list[Point]], expected: list[tuple[str, int | None, bool]]) -> None:
    assert [(t.rule, t.partition, t.is_open) for t in judged(*partitions)] == expected


@pytest.mark.parametrize("every", [1.0, 5.0])
@pytest.mark.parametrize("rate", [200, 1_000, 20_000])
def test_whoever_is_always_as_far_behind_does_not_fall_behind(rate: int, every: float) -> None:
    found = [judge({0: steady(rate, every, 0.3, seed)}, SETTINGS) for seed in range(20)]
    assert found == [[]] * 20


@pytest.mark.parametrize(("background", "burst", "capacity", "period"), [(100, 3000, 200, 60), (50, 2000, 100, 300)])
def test_a_burst_that_is_worked_off_is_no_growth(background: int, burst: int, capacity: int, period: int) -> None:
    points, done, high = [], 0, 0
    for second in range(900):
        high += background + (burst if second % period == 7 else 0)
        done = min(high, done + capacity)
        points += [end(second, high), commit(second, done - second % 2)]
    ends = range(60, 900, 7)
    assert [judged([p for p in points if p.ts_us <= n * SEC]) for n in ends] == [[] for _ in ends]


def test_a_group_that_died_before_a_burst_is_found_though_nobody_speaks_of_the_topic_again() -> None:
    points = [*log(60), *(commit(n, 10 * n) for n in range(61)), end(300, 100_000)]
    assert judge({0: with_lags(points)}, SETTINGS) == []
    (stopped,) = judge({0: with_lags(points)}, SETTINGS, end_us=400 * SEC)
    assert (stopped.rule, stopped.is_open, stopped.last_us) == ("stopped", True, 400 * SEC)


def test_who_falls_behind_slowly_is_found_later() -> None:
    points = [*log(600, 2_100), *(commit(n, 2_000 * n) for n in range(600))]
    (growing,) = judged(points)
    assert (growing.rule, growing.is_open, growing.figures["lag_after"]) == ("lag_growing", True, 59_900)
    assert judged([p for p in points if p.ts_us < 30 * SEC]) == []


def test_a_lag_that_grew_and_went_is_over_and_what_came_before_it_is_not_reported() -> None:
    points = [*log(300, 30), *(commit(n, 10 * n) for n in range(60)), *(commit(n, 30 * n) for n in range(60, 200))]
    points += [commit(n, 6_000 + 10 * (n - 200)) for n in range(200, 240)]
    points += [commit(n, 30 * n) for n in range(240, 300)]
    (growing,) = [t for t in judged(points) if t.rule == "lag_growing"]
    assert not growing.is_open
    assert (growing.first_us // SEC, growing.last_us // SEC) == (200, 239)


def test_a_silence_that_ended_is_closed() -> None:
    resumed = [*QUIET, *(commit(n, 10 * n) for n in range(45, 60))]
    (stopped,) = judged(resumed)
    assert (stopped.rule, stopped.is_open, stopped.first_us // SEC, stopped.last_us // SEC) == (
        "stopped",
        False,
        19,
        45,
    )
    assert stopped.figures == {"partitions": 1, "records_behind": 260}


def test_it_is_reported_when_there_is_enough_and_not_before() -> None:
    (stopped,) = judged(QUIET)
    before = [p for p in QUIET if p.ts_us < stopped.enough_us]
    after = [p for p in QUIET if p.ts_us <= stopped.enough_us + SEC]
    assert judged(before) == []
    assert [t.rule for t in judged(after)] == ["stopped"]


@pytest.mark.parametrize(("anew", "expected"), [((), {"commit_regressed", "rewound"}), ((int(29.5 * SEC),), set())])
def test_the_offsets_of_a_topic_made_anew_begin_again(anew: tuple[int, ...], expected: set[str]) -> None:
    new = [*(end(n, 10 * (n - 30)) for n in range(30, 61)), *(commit(n, 10 * (n - 30)) for n in range(31, 60))]
    points = [*log(29), *(commit(n, 10 * n) for n in range(30)), fall(30, 290, 0), fetch(32, 0, 100), *new]
    found = judge_lives({0: sorted(points, key=lambda p: p.ts_us)}, anew, SETTINGS)
    assert {t.rule for t in found} == expected


def test_how_far_a_group_goes_back_costs_nothing() -> None:
    """To count through what is in between would never end."""
    far = 10**15
    log_end = [end(n, far + 100) for n in (0, 3, 6)]
    points = sorted([*log_end, commit(1, far), fall(2, far, 0), fetch(5, 10, 20)], key=lambda p: p.ts_us)
    regressed, rewound = judged(points)
    assert (regressed.rule, rewound.rule, rewound.is_open) == ("commit_regressed", "rewound", True)
    assert (rewound.figures["before"], rewound.figures["after"]) == (far, 0)


@pytest.mark.parametrize("rests", [True, False])
def test_who_fetches_a_little_and_then_nothing_more_has_paused_and_who_asks_on_starves(rests: bool) -> None:
    well = [point for n in range(1, 30) for point in (fetch(n - 0.5, 10 * n - 10, 10 * n), commit(n, 10 * n))]
    asked = range(30, 33) if rests else range(30, 90)
    some = [*log(90), *well, *(fetch(n, 290, 295) for n in asked)]
    assert [one.rule for one in judged(some)] == (["stopped"] if rests else [])
