"""Burrow's states, on the cases of its own documentation of the rules."""

from __future__ import annotations

import pytest

from pipeline.analysis.rules.kafka.burrow import BurrowState, Commit, evaluate_group, evaluate_partition

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
