"""Burrow's states, on the cases of its own documentation of the rules."""

from __future__ import annotations

import pytest

from pipeline.analysis.rules.kafka.progress.burrow import (
    BurrowState,
    Commit,
    Partition,
    evaluate_group,
    evaluate_partition,
    first_alarm_us,
)

_S = 1_000_000


def ring(*offsets: int, lags: list[int | None] | None = None) -> list[Commit]:
    return [Commit(n * 10 * _S, offset, lags[n] if lags else 50) for n, offset in enumerate(offsets)]


RISING = list(range(0, 100, 10))


@pytest.mark.parametrize(
    ("commits", "ends", "now_s", "state"),
    [
        ([], [100], 0, "NOTFOUND"),
        (ring(*RISING), [90], 95, "OK"),
        (ring(*RISING), [300], 95, "WARN"),
        (ring(*RISING, lags=[50, 40, 60, 70, 80, 90, 95, 96, 97, 98]), [300], 95, "OK"),
        (ring(*RISING, lags=[50, 50, 50, 50, 50, 0, 95, 96, 97, 98]), [300], 95, "OK"),
        (ring(*RISING), [200, 300], 200, "STOP"),
        (ring(*RISING), [90, 300], 200, "WARN"),
        (ring(*[50] * 10), [300], 95, "STALL"),
        (ring(0, 10, 20, 5, 6, 7, 8, 9, 10, 11), [300], 95, "REWIND"),
        (ring(0, 10, 20, 5, 20, 30, 40, 50, 60, 70), [300], 95, "WARN"),
        (ring(*[90] * 3, *RISING), [300], 125, "WARN"),
    ],
    ids=[
        "no commits", "no lag", "lag never shrinks", "lag shrank once", "lag was nothing once", "silent for its window",
        "silent, but the log's end was seen at it", "one offset", "went back", "went back and caught up",
        "only the last ten count",
    ],
)  # fmt: skip
def test_states(commits: list[Commit], ends: list[int], now_s: int, state: str) -> None:
    assert evaluate_partition(commits, ends, now_s * _S).name == state


def test_a_group_is_as_bad_as_its_worst_partition_but_never_worse_than_err() -> None:
    assert evaluate_group([BurrowState.OK, BurrowState.WARN]) is BurrowState.WARN
    assert evaluate_group([BurrowState.OK, BurrowState.STALL]) is BurrowState.ERR
    assert evaluate_group([]) is BurrowState.NOTFOUND


def steady(until: int) -> Partition:
    """Ten records a second, of which the last ten always wait; commits each second until ``until`` seconds."""
    return Partition([(n * _S, 10 * n - 10) for n in range(1, until)], [(n * _S, 10 * n) for n in range(300)], 0)


def test_it_knows_the_end_of_the_log_of_its_last_poll() -> None:
    known = Partition([(19 * _S, 180)], [(n * _S, 10 * n) for n in range(30)], 0)
    assert known.state(19 * _S) is BurrowState.OK  # it asked at 10 s, when the end was 100
    later = Partition([(21 * _S, 150), (22 * _S, 150)], known.ends, 0)
    assert later.state(23 * _S) is BurrowState.STALL  # and at 20 s, when it was 200


def test_it_speaks_when_it_looks_at_its_groups_once_a_minute() -> None:
    silent = steady(70)
    assert silent.state(100 * _S) is BurrowState.OK  # a poll of the last hundred seconds was below the last commit
    assert silent.state(180 * _S) is BurrowState.STOP
    assert first_alarm_us([silent], 70 * _S, 300 * _S) == 180 * _S
    assert first_alarm_us([silent], 70 * _S, 179 * _S) is None
    assert first_alarm_us([steady(300)], 0, 300 * _S) is None
