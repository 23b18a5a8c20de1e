"""One member of several that commits nothing any more of what it holds, and what only looks like it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from pipeline.analysis.rules.kafka.groups.coming_and_going import ENTERS, LEAVES, Step
from pipeline.analysis.rules.kafka.progress import lagging
from pipeline.analysis.rules.kafka.progress.evaluate import judge
from pipeline.analysis.rules.kafka.progress.member_history import Given, Life
from pipeline.analysis.rules.kafka.progress.track import Point, Trouble
from pipeline.analysis.rules.settings import finding_settings
from pipeline.tables import OFFSET_TIMELINE, STATE_EVENTS
from tests.pipeline.analysis.rules.kafka.progress.points import SEC, SETTINGS, commit, end, log, with_lags
from tests.pipeline.analysis.sources import sources
from tests.pipeline.rows import T0, row


def by(member: str, points: Sequence[Point]) -> list[Point]:
    return [replace(p, member_id=member, client_id=f"{member}-app") if p.commits else p for p in points]


def works(member: str, until: float, last: float | None = None, *, every: float = 1, start: float = 0) -> list[Point]:
    """A partition written ten times a second until then, committed up to its end so often, up to ``last``."""
    count = int(((until if last is None else last) - start) / every) + 1
    return [
        *log(int(until)),
        *by(member, [commit(start + n * every, int(10 * (start + n * every))) for n in range(count)]),
    ]


def given(*members: str, at: float = -5) -> Life:
    """Member by member one partition of topic ``t``, in this order."""
    statements = [Given(int(at * SEC), who, frozenset({("t", n)})) for n, who in enumerate(members)]
    return Life([int(at * SEC)], (), statements)


def found(life: Life, *tracks: Sequence[Point]) -> list[Trouble]:
    return judge({n: with_lags(some) for n, some in enumerate(tracks)}, SETTINGS, 0, life, topic="t")


THREE = given("a", "b", "c")


def test_a_member_that_commits_nothing_for_minutes_is_found_and_named() -> None:
    (hung,) = found(THREE, works("a", 600, 120), works("b", 600), works("c", 600))
    assert (hung.rule, hung.severity, hung.is_open) == ("stopped", "critical", True)
    assert (hung.figures["members"], hung.figures["places"]) == (["a"], ["t-0"])
    assert hung.first_us // SEC == 120
    assert hung.figures["records_behind"] == 4800


def test_without_an_assignment_the_last_committer_holds_what_nobody_took_from_it() -> None:
    tracks = works("a", 600, 120), works("b", 600), works("c", 600)
    assert [t.figures["members"] for t in found(Life(), *tracks)] == [["a"]]
    taken = Life([200 * SEC], (), [Given(200 * SEC, "b", frozenset({("t", 1)}))])
    assert found(taken, *tracks) == []


@pytest.mark.parametrize(("limit", "told"), [(60, 60), (300, 300)])
def test_a_member_may_be_at_work_on_one_poll_for_as_long_as_it_has_stated(limit: int, told: int) -> None:
    life = replace(THREE, limits={"a": limit * SEC})
    assert found(life, works("a", 120 + limit - 2, 120), works("b", 120 + limit - 2), works("c", 120 + limit - 2)) == []
    (hung,) = found(life, works("a", 600, 120), works("b", 600), works("c", 600))
    assert (hung.severity, hung.enough_us // SEC) == ("critical", 121 + told)


def test_where_its_limit_is_not_known_it_is_told_for_information_until_a_poll_is_over() -> None:
    (early,) = found(THREE, works("a", 200, 120), works("b", 200), works("c", 200))
    assert (early.severity, early.is_open) == ("info", True)
    late = [*works("a", 600, 120), *by("a", [commit(n, 10 * n) for n in range(300, 600)])]
    assert found(THREE, late, works("b", 600), works("c", 600)) == []


def test_a_member_that_was_hung_and_got_on_is_over_and_counted() -> None:
    life = replace(THREE, limits={"a": 30 * SEC})
    again = [(0, 100), (200, 300), (400, 600)]
    points = [*log(600), *by("a", [commit(n, 10 * n) for begin, stop in again for n in range(begin, stop)])]
    (hung,) = found(life, points, works("b", 600), works("c", 600))
    assert (hung.is_open, hung.first_us // SEC, hung.last_us // SEC) == (False, 299, 400)
    assert hung.figures["recurrences"] == 1


def test_two_members_that_hang_are_told_at_once() -> None:
    (hung,) = found(THREE, works("a", 900, 120), works("b", 900, 180), works("c", 900))
    assert (hung.figures["members"], hung.figures["places"]) == (["a", "b"], ["t-0", "t-1"])


def test_where_nobody_gets_on_the_group_has_stopped() -> None:
    (stopped,) = found(THREE, works("a", 900, 120), works("b", 900, 500), works("c", 900, 500))
    assert "members" not in stopped.figures


def test_who_commits_another_partition_is_not_hung() -> None:
    life = Life([0], (), [Given(0, "a", frozenset({("t", 0), ("t", 1)})), Given(0, "b", frozenset({("t", 2)}))])
    tracks = works("a", 600, 120), works("a", 600), works("b", 600)
    assert [t.rule for t in found(life, *tracks)] == ["partition_dropped_from_commits"]
    nameless = [replace(p, member_id="", client_id="producer") for p in tracks[1]]
    assert found(life, tracks[0], nameless, tracks[2]) == []


def test_a_partition_without_news_is_not_missed() -> None:
    idle = [end(0, 5), *by("a", [commit(0, 5)]), *(end(n, 5) for n in range(600))]
    assert found(THREE, idle, works("b", 600), works("c", 600)) == []


def test_nor_one_whose_last_records_came_a_moment_ago() -> None:
    idle = [end(0, 5), *by("a", [commit(0, 5), commit(300, 10)]), end(299, 10), end(596, 500)]
    assert found(THREE, idle, works("b", 600), works("c", 600)) == []


@pytest.mark.parametrize("period", [5, 30, 60])
def test_staggered_members_of_a_slow_rhythm_are_healthy_at_every_moment(period: int) -> None:
    tracks = [works(name, 900, every=period, start=1 + n * period / 3) for n, name in enumerate("abc")]
    life = replace(THREE, limits=dict.fromkeys("abc", SEC))
    for now in range(4 * period, 900, 17):
        assert found(life, *([p for p in track if p.ts_us <= now * SEC] for track in tracks)) == [], now


def test_a_burst_that_takes_as_long_as_those_before_it_is_no_silence() -> None:
    points: list[Point] = [end(0, 0), *by("a", [commit(0, 0)])]
    for n in range(6):
        points += [end(100 * n + 1, 1000 * (n + 1)), *by("a", [commit(100 * n + 60, 1000 * (n + 1))])]
    life = replace(THREE, limits=dict.fromkeys("abc", SEC))
    for now in range(400, 600, 7):
        seen = [p for p in points if p.ts_us <= now * SEC]
        assert found(life, seen, works("b", now), works("c", now)) == [], now


def test_each_rebalance_begins_anew_and_who_has_left_holds_nothing() -> None:
    life = replace(THREE, limits=dict.fromkeys("abc", SEC))
    tracks = works("a", 140, 120), works("b", 140), works("c", 140)
    assert [t.rule for t in found(life, *tracks)] == ["stopped"]
    often = replace(life, changes=[*life.changes, 128 * SEC, 135 * SEC])
    assert found(often, *tracks) == []
    left = replace(life, goodbyes={"a": [122 * SEC]})
    assert found(left, *tracks) == []


def test_what_ends_with_the_capture_is_no_silence() -> None:
    life = replace(THREE, limits=dict.fromkeys("abc", SEC))
    assert found(life, works("a", 128, 120), works("b", 128), works("c", 128)) == []
    joined = [p for track in [works("a", 640, 620)] for p in track if p.ts_us >= 630 * SEC]
    assert found(life, joined, works("b", 640, start=630), works("c", 640, start=630)) == []


def _row(table: Any, second: float, number: int, **more: Any) -> dict[str, Any]:
    values = {"ts": T0 + timedelta(seconds=second), "exchange_id": f"x{number}-{second:06}", "ordinal": number}
    return row(table, **values, cluster="C", group_id="g", **more)


def test_the_finding_names_client_host_and_partition() -> None:
    commits = [
        _row(OFFSET_TIMELINE, s + 0.1, n, kind="committed", topic="t", partition=n, event_offset=10 * s,
             committed_offset=10 * s, member_id=f"m{n}", client_id=f"app-{n}")
        for n in range(2) for s in range(200) if n or s <= 60
    ]  # fmt: skip
    ends = [
        {**_row(OFFSET_TIMELINE, s, n, kind="produced", topic="t", partition=n, high_watermark=10 * s), "group_id": ""}
        for n in range(2) for s in range(200)
    ]  # fmt: skip
    beats = [
        _row(STATE_EVENTS, s, n, kind="heartbeat", member_id=f"m{n}", client_id=f"app-{n}", error_code=0,
             client=f"10.0.0.{n}:4000", group_protocol="classic")
        for n in range(2) for s in range(0, 200, 3)
    ]  # fmt: skip
    limit = Step(ENTERS, "C", "g", "m0", "app-0", "10.0.0.0", "10.0.0.0:4000", "c", "j", 0, 0, 60 * SEC)
    made = replace(sources(timeline=[*commits, *ends], states=beats), steps=[limit])
    (finding,) = lagging.find(made, finding_settings())
    assert (finding.rule, finding.subject, finding.severity, finding.state) == ("stopped", "g/t", "critical", "ongoing")
    assert finding.summary.startswith("app-0 at 10.0.0.0 of group g has committed nothing of t-0 from ")
    assert "The coordinator answered it last at" in finding.summary
    assert "app-0 at 10.0.0.0" in finding.advice
    assert finding.details["clients"] == ["app-0 at 10.0.0.0"]
    gone = replace(limit, what=LEAVES, us=int(T0.timestamp() + 65) * SEC)
    assert lagging.find(replace(made, steps=[limit, gone]), finding_settings()) == []
