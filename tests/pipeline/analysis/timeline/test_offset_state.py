"""What is known at each event of a partition: carried forward per partition, group and client, with the lag."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from pipeline.analysis.timeline.offset_state import Event, Lag, Offsets, OffsetState

MAX, MIN = 2**63 - 1, -(2**63)
SECOND = 1_000_000
HOUR = 3600 * SECOND


def event(
    seconds: float = 0, kind: str = "listed", group_id: str = "", client_id: str | None = "c", **more: Any
) -> Event:
    ts_us = round(seconds * SECOND)
    if "last_stable_offset" in more:  # one response states both
        more = {"last_stable_high_watermark": more.get("high_watermark"), "last_stable_ts": ts_us} | more
    offsets = Offsets(**dict.fromkeys(Offsets._fields) | more)
    return Event(ts_us, kind, group_id, client_id, offsets)


def commit(seconds: float, offset: int) -> Event:
    return event(seconds, "committed", "g", committed_offset=offset)


@pytest.fixture
def partition() -> OffsetState:
    return OffsetState(timedelta(days=7))


def test_each_value_stays_with_what_it_is_known_of(partition: OffsetState) -> None:
    partition.take(event(high_watermark=10, group_id="g", committed_offset=4))
    partition.take(event(group_id="g", client_id="reader", fetch_position=8))
    same_group, _ = partition.take(event(group_id="g"))
    assert same_group[:7] == (None, None, 10, None, 4, None, None)
    same_client, _ = partition.take(event(group_id="g", client_id="reader"))
    assert same_client.fetch_position == 8
    other_group, _ = partition.take(event(group_id="h", client_id="reader"))
    assert (other_group.high_watermark, other_group.committed_offset, other_group.fetch_position) == (10, None, None)


def test_a_late_answer_to_a_producer_does_not_set_the_high_watermark_back(partition: OffsetState) -> None:
    partition.take(event(0, "produced", high_watermark=10, produced_offset=10))
    again, _ = partition.take(event(1, "produced", high_watermark=4, produced_offset=4))
    assert again.high_watermark == 10
    cut, _ = partition.take(event(2, "fetched", high_watermark=3))
    assert cut.high_watermark == 3
    partition.restore(event(3, "produced", client_id="other", high_watermark=2, produced_offset=2))
    known, _ = partition.take(event(4))
    assert known.high_watermark == 2


def test_without_a_group_there_is_neither_a_commit_nor_lag(partition: OffsetState) -> None:
    known = partition.take(event(high_watermark=10, committed_offset=4, pending_offset=5))
    assert known == (Offsets(None, None, 10, None, None, None, None, None, None), Lag(None, None, None))


def test_what_is_pending_may_end_in_nothing(partition: OffsetState) -> None:
    assert partition.take(event(kind="txn_committed", group_id="g", pending_offset=5))[0].pending_offset == 5
    assert partition.take(event(kind="fetched", group_id="g"))[0].pending_offset == 5
    assert partition.take(event(kind="txn_applied", group_id="g", committed_offset=5))[0].pending_offset is None


def test_what_was_known_before_holds_until_something_else_is_stated(partition: OffsetState) -> None:
    before = {"high_watermark": 10, "last_stable_offset": 9, "committed_offset": 4, "pending_offset": 6}
    partition.restore(event(group_id="g", **before))
    known, lag = partition.take(event(1, group_id="g"))
    assert (known, lag[:2]) == ((None, 9, 10, None, 4, 6, None, 10, 0), (6, 5))
    assert partition.take(event(2, group_id="g", high_watermark=3))[1].lag == 0


def test_markers_between_commit_and_end_are_no_lag(partition: OffsetState) -> None:
    for offset in (3, 5, 9):
        for hour in (0, 1):  # fetched in two hours
            partition.add_marker(offset, hour * HOUR)
    partition.restore(event(high_watermark=10, last_stable_offset=6))
    for hour in (0, 1):
        assert partition.take(commit(hour * 3600, 4))[1][:2] == (4, 1)
    assert partition.take(commit(2 * 3600, 10))[1].lag == 0


HELD = {"high_watermark": 10, "last_stable_offset": 6}
FREE = {"high_watermark": 6, "last_stable_offset": 6}


@pytest.mark.parametrize(
    ("stated", "then", "lags"),
    [
        pytest.param(HELD, {}, (8, 4), id="held by a transaction"),
        pytest.param(FREE, {}, (4, 4), id="nothing is held"),
        pytest.param(HELD, {"high_watermark": 30}, (28, 4), id="held, then records came: as of when it was stated"),
        pytest.param(FREE, {"high_watermark": 30}, (28, None), id="nothing was held, then records came"),
        pytest.param({"last_stable_offset": 6}, {"high_watermark": 30}, (28, None), id="listed alone"),
        pytest.param({"high_watermark": 30}, {"last_stable_offset": 6}, (28, None), id="listed alone, later"),
        pytest.param({"high_watermark": 4}, {"last_stable_offset": 6}, (4, 4), id="listed beyond the known end"),
        pytest.param(HELD, {"high_watermark": 2}, (0, 0), id="a log that was cut"),
        pytest.param({"high_watermark": 10}, {}, (8, None), id="a client that is not told of it"),
    ],
)
def test_a_last_stable_offset_is_compared_with_what_the_same_response_states(
    partition: OffsetState, stated: dict[str, int], then: dict[str, int], lags: tuple[int, int | None]
) -> None:
    partition.take(event(1, **stated))
    partition.take(event(2, "fetched", **then))
    known, lag = partition.take(commit(3, 2))
    assert (lag.lag, lag.lag_read_committed) == lags
    stable = {**stated, **then}.get("last_stable_offset")
    told = then if "last_stable_offset" in then else stated
    as_of = None if stable is None else (2 if told is then else 1) * SECOND
    beside = None if stable is None else told.get("high_watermark")
    assert (known.last_stable_offset, known.last_stable_high_watermark, known.last_stable_ts) == (stable, beside, as_of)


def test_a_commit_beyond_a_last_stable_offset_makes_the_lag_up_to_it_unknown(partition: OffsetState) -> None:
    partition.take(event(1, **HELD))
    assert partition.take(commit(2, 8))[1][:2] == (2, None)
    assert partition.take(commit(3, 10))[1][:2] == (0, 0)


def test_an_hour_knows_the_markers_seen_until_then_and_within_the_lookback() -> None:
    partition = OffsetState(timedelta(hours=2))
    partition.add_marker(5, 3 * HOUR)
    partition.restore(event(high_watermark=10))
    lags = [partition.take(commit(hour * 3600, 0))[1].lag for hour in range(2, 7)]
    assert lags == [10, 9, 9, 9, 10]


@pytest.mark.parametrize(
    ("committed", "seconds"),
    [
        pytest.param(0, 90, id="the first record of a batch"),
        pytest.param(4, 90, id="inside it"),
        pytest.param(5, 60, id="a marker's offset: the next batch begins one later"),
        pytest.param(9, 60, id="the last record of a batch"),
        pytest.param(12, None, id="a gap"),
        pytest.param(25, None, id="beyond what was produced"),
        pytest.param(30, 0, id="at the end"),
    ],
)
def test_the_age_of_the_oldest_uncommitted_record(
    partition: OffsetState, committed: int, seconds: float | None
) -> None:
    for first, end, at in ((0, 5, 10), (6, 10, 40), (20, 25, 70)):
        partition.add_produced(first, end, at * SECOND)
    partition.restore(event(high_watermark=30))
    assert partition.take(commit(100, committed))[1].lag_seconds == seconds


def test_of_two_requests_for_the_same_records_the_later_counts(partition: OffsetState) -> None:
    partition.add_produced(0, 5, 10 * SECOND)
    partition.add_produced(0, 5, 30 * SECOND)
    partition.restore(event(high_watermark=5))
    assert partition.take(commit(100, 0))[1].lag_seconds == 70


def test_no_age_is_known_of_what_lies_further_back_than_the_lookback(partition: OffsetState) -> None:
    partition.add_produced(0, 10, 0)
    partition.restore(event(high_watermark=10))
    assert partition.take(commit(7 * 86_400, 0))[1].lag_seconds == 7 * 86_400
    assert partition.take(commit(7 * 86_400 + 1, 0))[1].lag_seconds is None


def test_an_answer_captured_after_the_commit_is_no_negative_age(partition: OffsetState) -> None:
    partition.add_produced(0, 10, 5 * SECOND)
    partition.restore(event(high_watermark=10))
    assert partition.take(commit(1, 0))[1].lag_seconds == 0.0


@pytest.mark.parametrize(
    ("high", "committed", "lag"), [(MAX, MIN, None), (MAX, -1, None), (MAX, 0, MAX), (MIN, 1, None), (MIN, 0, 0)]
)
def test_a_lag_that_64_bits_cannot_hold_is_not_known(
    partition: OffsetState, high: int, committed: int, lag: int | None
) -> None:
    partition.restore(event(high_watermark=high))
    assert partition.take(commit(1, committed))[1].lag == lag


def test_what_retention_deleted_is_lost_and_no_lag(partition: OffsetState) -> None:
    partition.take(commit(0, 4))
    _, lag = partition.take(event(1, high_watermark=20, last_stable_offset=18, log_start_offset=10, group_id="g"))
    assert (lag.lag, lag.lag_read_committed, lag.lost_to_retention) == (10, 8, 6)
    assert partition.take(commit(2, 12))[1] == Lag(8, 6, None, 0)


def test_a_log_that_was_cut_below_the_commit_holds_nothing_to_read(partition: OffsetState) -> None:
    partition.take(event(0, high_watermark=20, log_start_offset=0))
    partition.take(commit(1, 20))
    assert partition.take(event(2, high_watermark=5, group_id="g"))[1].lag == 0
