"""What is progress at a rhythm of its own? Groups that commit each 1 to 60 s, in bursts, by the clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from pipeline.analysis.rules.kafka.progress.evaluate import judge
from pipeline.analysis.rules.kafka.progress.member_history import Given, Life
from pipeline.analysis.rules.kafka.progress.track import Fall, Point, Track, Trouble
from pipeline.analysis.rules.kafka.records_behind import Behind
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
    with_lags,
)


def by(member: str, points: Sequence[Point]) -> list[Point]:
    return [replace(p, member_id=member, client_id=member) if p.committed is not None else p for p in points]


def every(seconds: float, until: float, start: float = 0.0, rate: int = 10) -> list[Point]:
    """A partition written all the time, committed up to its end so often."""
    times = [start + n * seconds for n in range(int((until - start) / seconds) + 1)]
    return [*log(int(until), rate), *(commit(t, int(rate * t)) for t in times)]


def staggered(period: float, until: float, count: int = 5) -> list[list[Point]]:
    """Members that commit as often, each a partition of its own, at different moments."""
    return [by(f"m{n}", every(period, until, 1 + n * period / count)) for n in range(count)]


def at(points: Sequence[Point], last: float) -> list[Point]:
    return [p for p in points if p.ts_us <= last * SEC]


@pytest.mark.parametrize("period", [1, 5, 8, 30, 60])
def test_members_that_commit_at_different_moments_are_healthy_at_every_moment(period: int) -> None:
    tracks = staggered(period, 600)
    for now in range(30, 600, 13):
        assert judged(*(at(track, now) for track in tracks)) == [], now


def test_a_group_that_commits_each_minute_at_once_is_not_silent_in_between() -> None:
    tracks = [by("m", every(60, 600, 1 + n / 10)) for n in range(5)]
    for now in range(200, 600, 13):
        assert judged(*(at(track, now) for track in tracks)) == [], now


@pytest.mark.parametrize(("period", "delay"), [(1, 10), (30, 90), (60, 180)])
def test_a_group_that_falls_silent_is_found_in_its_own_periods(period: int, delay: int) -> None:
    track = [*every(period, 300), *(end(n, 10 * n) for n in range(301, 700))]
    (stopped,) = judged(track)
    assert (stopped.rule, stopped.is_open, stopped.severity) == ("stopped", True, "critical")
    last = max(p.ts_us for p in track if p.committed is not None)
    assert stopped.enough_us - last == pytest.approx(delay * SEC, abs=4 * SEC)


def seldom(*commits: int) -> list[Point]:
    """Written each second from second 100 on, after a commit of nothing; all committed up to its end at these."""
    return [
        end(0, 0),
        commit(0, 0),
        *(end(n, n - 100) for n in range(101, 900)),
        *(commit(n, n - 100) for n in commits),
    ]


def test_a_silence_that_ended_tells_the_rhythm_of_a_group_of_which_little_was_seen() -> None:
    assert judged(seldom(103, 343, 583, 823)) == []


@pytest.mark.parametrize(("now", "severity"), [(300, "info"), (800, "critical")])
def test_of_whom_little_was_seen_it_is_told_for_information_for_as_long_as_a_poll_may_take(
    now: int, severity: str
) -> None:
    (stopped,) = judged(at(seldom(103), now))
    assert (stopped.rule, stopped.is_open, stopped.severity) == ("stopped", True, severity)


def test_commits_of_nothing_say_little_of_how_long_records_wait() -> None:
    """A client that commits by the clock, each 300 s, also where nothing has come."""
    idle = [commit(n, 0) for n in range(0, 3000, 300)]
    busy = [end(n, n - 2990) for n in range(2990, 4500)]
    assert judged([end(0, 0), *idle, *busy, *(commit(n, n - 2990) for n in range(3000, 4500, 300))]) == []


def test_a_partition_with_a_slower_rhythm_is_not_left_out() -> None:
    slow, quick = by("m", every(30, 600)), by("m", every(1, 600, 0.5))
    for now in range(100, 600, 7):
        assert judged(at(slow, now), at(quick, now)) == [], now
    left_out = [p for p in slow if p.committed is None or p.ts_us < 300 * SEC]
    (dropped,) = judged(left_out, quick)
    assert (dropped.rule, dropped.partition, dropped.is_open) == ("partition_dropped_from_commits", 0, True)
    assert dropped.enough_us == pytest.approx((270 + 90) * SEC, abs=4 * SEC)


def test_what_another_member_commits_says_nothing_of_a_partition() -> None:
    silent = by("a", [*log(120), *(commit(n, 10 * n) for n in range(60))])
    beside = judged(silent, by("b", every(1, 120)))
    assert [(t.rule, t.severity, t.figures["members"]) for t in beside] == [("stopped", "info", ["a"])]
    assert [t.rule for t in judged(silent, by("a", every(1, 120)))] == ["partition_dropped_from_commits"]


def members(*given: tuple[float, str, set[int]], ended: tuple[float, float | None] | None = None) -> Life:
    """Assignments of topic ``t``, and when all had left."""
    statements = [Given(int(s * SEC), who, frozenset(("t", n) for n in some)) for s, who, some in given]
    left = [] if ended is None else [(int(ended[0] * SEC), None if ended[1] is None else int(ended[1] * SEC))]
    return Life([one.ts_us for one in statements], left, statements)


def lived(life: Life, *partitions: Sequence[Point], end_us: int = 0) -> list[Trouble]:
    points = {n: with_lags(some) for n, some in enumerate(partitions)}
    return judge(points, SETTINGS, end_us, life, topic="t")


def test_a_partition_that_was_taken_away_is_not_left_out() -> None:
    silent = by("a", [*log(120), *(commit(n, 10 * n) for n in range(60))])
    others = by("a", every(1, 120))
    moved = members((0, "a", {0, 1}), (60, "a", {1}), (60, "b", {0}))
    assert [(t.rule, t.severity, t.figures["members"]) for t in lived(moved, silent, others)] == [
        ("stopped", "info", ["b"])
    ]
    assert [t.rule for t in lived(members((0, "a", {0, 1})), silent, others)] == ["partition_dropped_from_commits"]
    kept = members((0, "a", {0, 1}), (70, "a", {0, 1}))
    assert [t.rule for t in lived(kept, silent, others)] == ["partition_dropped_from_commits"]


def test_each_rebalance_begins_anew() -> None:
    silent = by("a", [*log(64), *(commit(n, 10 * n) for n in range(60))])
    others = by("a", every(1, 64))
    often = members(*((s, "a", {0, 1}) for s in (0, 61, 63)))
    assert lived(often, silent, others) == []


def test_a_topic_read_by_hand_may_be_given_up_but_not_read_and_left_out() -> None:
    silent = [replace(p, member_id="") for p in by("a", [*log(120), *(commit(n, 10 * n) for n in range(60))])]
    others = [replace(p, member_id="", client_id="a") for p in every(1, 120)]
    silent = [replace(p, client_id="a") for p in silent]
    assert judged(silent, others) == []
    read = [*silent, *(fetch(n, 10 * n, 10 * n + 10) for n in range(60, 120))]
    assert [t.rule for t in judged(read, others)] == ["partition_dropped_from_commits"]


def test_a_group_that_left_in_good_order_is_told_and_one_that_does_not_come_back_is_missed() -> None:
    work = [*log(700), *(commit(n, 10 * n) for n in range(60))]
    (left,) = lived(members(ended=(60, None)), work)
    assert (left.rule, left.severity, left.is_open, left.figures["left_us"]) == (
        "stopped",
        "info",
        True,
        60 * SEC,
    )
    again = [*work, *(commit(n, 10 * n) for n in range(160, 220))]
    schedule = Life([150 * SEC, 151 * SEC], [(60 * SEC, 150 * SEC), (220 * SEC, None)])
    assert lived(schedule, [p for p in again if p.ts_us < 480 * SEC]) == []
    (missed,) = lived(schedule, again)
    assert (missed.rule, missed.severity, missed.first_us // SEC) == ("stopped", "critical", 219)
    assert (missed.enough_us - 220 * SEC) // SEC == 3 * 90


def test_a_group_that_hung_before_it_left_had_stopped() -> None:
    work = [*log(300), *(commit(n, 10 * n) for n in range(60)), *(commit(n, 10 * n) for n in range(260, 300))]
    life = Life([255 * SEC], [(250 * SEC, 255 * SEC)])
    (stopped,) = lived(life, work)
    assert (stopped.rule, stopped.is_open, stopped.severity) == ("stopped", False, "critical")


def test_few_records_that_wait_are_less_severe() -> None:
    (stopped,) = judged([*bursts(20, times=5), end(300, 120), end(330, 120)])
    assert stopped.severity == "warning"


def test_a_silence_of_a_group_that_was_hardly_seen_takes_longer() -> None:
    track = [*log(120), commit(1, 10), commit(2, 20), commit(3, 30)]
    assert judged(at(track, 60)) == []
    assert [t.rule for t in judged(track)] == ["stopped"]
    assert [t.rule for t in judged(at([*track, commit(4, 40)], 60))] == ["stopped"]
    assert judged([*log(120), commit(1, 10)]) == []


def long_polls(poll: int, until: int) -> list[Point]:
    """Each poll is processed for so long, and the position committed every five seconds meanwhile."""
    points = log(until)
    for start in range(0, until, poll):
        points += [fetch(start, 10 * start, 10 * start), *(commit(start + s, 10 * start) for s in range(0, poll, 5))]
    return points


def test_a_group_that_processes_each_poll_for_a_minute_does_not_stall() -> None:
    polls = long_polls(60, 900)
    for now in range(60, 900, 17):
        assert judged(at(polls, now)) == [], now


def test_a_poll_that_takes_long_for_once_is_no_stall_where_clients_commit_unasked() -> None:
    once = [*log(900), *(commit(n, 10 * n) for n in range(0, 100, 5)), *(commit(n, 1000) for n in range(100, 900, 5))]
    java = Life(commits_unasked=True)
    assert lived(java, at(once, 390)) == []
    assert [t.rule for t in lived(java, once)] == ["stalled"]
    assert [t.rule for t in lived(Life(), at(once, 390))] == ["stalled"]


def test_a_paused_partition_is_told_apart_from_a_client_that_is_busy() -> None:
    paused = by("m", [*log(200), *(commit(n, 10 * min(n, 100)) for n in range(0, 200, 5))])
    beside = by("m", every(5, 200))
    (stalled,) = lived(Life(commits_unasked=True), paused, beside)
    assert (stalled.rule, stalled.partition, stalled.figures["alone"]) == ("stalled", 0, 1)


def test_lag_is_what_can_be_read() -> None:
    start = [replace(end(n, 1000), start=900) for n in range(60)]
    track = Track.of(0, sorted([*start, commit(0, 100)], key=lambda p: p.ts_us))
    assert (track.lag_at(30 * SEC, 100), track.lost_at(30 * SEC, 100)) == (100, 800)
    assert Track.of(0, start, markers=[950, 960, 1000]).lag_at(30 * SEC, 940) == 58
    assert Track.of(0, start, markers=[950, 960, 1000]).behind_at(30 * SEC, 940) == Behind(58, 2)
    assert Track.of(0, start).lag_at(30 * SEC, 2000) == 0


def test_a_read_committed_group_waits_for_nothing_behind_an_open_transaction() -> None:
    ends = [replace(end(n, 10 * n), stable=min(10 * n, 200), stable_end=10 * n) for n in range(121)]
    read = [replace(fetch(n, 10 * n, 10 * n), is_committed_only=True) for n in range(20)]
    done = [commit(n, 10 * n) for n in range(21)]
    assert judged([*ends, *read, *done]) == []
    everything = [replace(p, is_committed_only=False) for p in read]
    assert [t.rule for t in judged([*ends, *everything, *done])] == ["stopped"]
    written = [end(n, 10 * n) for n in range(121, 200)]
    closed = replace(end(120, 1200), stable=1200, stable_end=1200)
    assert [t.rule for t in judged([*ends[:-1], closed, *written, *read, *done])] == ["stopped"]


def test_a_stopped_group_tells_what_retention_has_deleted() -> None:
    ends = [replace(end(n, 10 * n), start=10 * n - 300 if n > 40 else None) for n in range(121)]
    (stopped,) = judged([*ends, *(commit(n, 10 * n) for n in range(20))])
    assert (stopped.figures["records_behind"], stopped.figures["lost_to_retention"]) == (300, 710)


def test_a_lag_that_comes_with_each_burst_is_the_rhythm_of_the_group() -> None:
    points, high, done = [], 0, 0
    for second in range(1500):
        high += 60 if second % 300 < 60 else 5
        done = min(high, done + 20)
        points += [end(second, high), commit(second, done)]
    assert [t.rule for t in judged(at(points, 80))] == ["lag_growing"]
    assert judged(at(points, 1280)) == []


def test_who_went_back_on_purpose_is_told_and_no_surprise() -> None:
    (regressed, rewound) = judged([replace(p, fall=_by_tool(p.fall)) if p.fall else p for p in BACK])
    assert (regressed.severity, rewound.severity, rewound.figures["how"]) == ("info", "info", "reset")
    own = [_by_member(p) for p in BACK]
    assert [(t.severity, t.figures.get("how")) for t in judged(own)] == [(None, None), (None, "surprise")]
    sought = judged([*own, fetch(29.5, 0, 100)])
    assert [(t.severity, t.figures.get("how")) for t in sought] == [("info", None), ("info", "seek")]


def test_what_is_read_between_two_slow_commits_is_no_seek() -> None:
    read = [fetch(n, n, n + 10) for n in range(0, 400, 10)]
    commits = [commit(n, n) for n in range(30, 181, 30)]
    gone = _by_member(fall(190, 190, 90))
    again = [fetch(n, n - 100, n - 90) for n in range(400, 420, 10)]
    found = judged([end(400, 400), *read[:19], *commits, gone, *again])
    assert {(t.rule, t.severity) for t in found} >= {("commit_regressed", None)}
    sought = judged([end(400, 400), *read[:19], fetch(189, 95, 105), *commits, gone, *again])
    assert {(t.rule, t.severity) for t in sought} >= {("commit_regressed", "info")}


def _by_tool(gone: Fall) -> Fall:
    return replace(gone, client_id="tool", member_id="", other_client="app", other_member="app-1")


def _by_member(point: Point) -> Point:
    if point.fall is None:
        return point
    mine = {"client_id": "app", "member_id": "app-1", "other_client": "app", "other_member": "app-1"}
    return replace(point, fall=replace(point.fall, **mine))
