"""What becomes of records of a share group: values in, values out, and a recording from a real broker."""

from __future__ import annotations

import json
from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest

from pipeline.analysis.rules.kafka.share_groups.share_states import ACCEPT, REJECT, RELEASE, Delivery, SharePlace
from pipeline.dashboard.queries.progress.shares import Held, again, held, shares, shares_seen
from pipeline.dashboard.queries.scope import Scope
from pipeline.dashboard.sql import connect
from tests.paths import CAPTURES
from tests.pipeline.dashboard.conftest import at
from tests.pipeline.lakes import diagnosed_lake

PLACE = SharePlace("k", "g", "orders", 0)


def told(seconds: float, first: int, last: int, what: int | None, member: str = "m", count: int = 1) -> Delivery:
    us = int(at(seconds).timestamp() * 1e6)
    return Delivery(PLACE, us, first, last, what, count, 30_000_000, member, f"{member} at 10.0.0.1", f"e{seconds}")


def shown(found: list[Held]) -> list[tuple[int, int, str, float, str]]:
    return [(one.first, one.last, one.client_id, (one.ended - one.began).total_seconds(), one.how) for one in found]


def test_a_range_is_cut_where_its_records_end_differently() -> None:
    some = [told(0, 10, 19, None), told(1, 10, 13, ACCEPT), told(2, 14, 14, REJECT), told(2, 15, 16, RELEASE)]
    assert shown(held(some, at(5))) == [
        (10, 13, "m", 1, "accepted"), (14, 14, "m", 2, "rejected"), (15, 16, "m", 2, "released"),
        (17, 19, "m", 5, "held"),
    ]  # fmt: skip


def test_a_lock_runs_out_at_its_time_or_when_the_records_go_to_somebody_else() -> None:
    assert shown(held([told(0, 1, 1, None)], at(100))) == [(1, 1, "m", 30, "lock ran out")]
    some = [told(0, 1, 2, None), told(20, 2, 2, None, member="n", count=2), told(21, 2, 2, ACCEPT, member="n")]
    assert shown(held(some, at(25))) == [
        (2, 2, "m", 20, "lock ran out"), (2, 2, "n", 1, "accepted"), (1, 1, "m", 25, "held"),
    ]  # fmt: skip


def test_nobody_tells_of_what_another_member_holds_and_a_renewal_ends_nothing() -> None:
    some = [told(0, 1, 1, None), told(1, 1, 1, ACCEPT, member="n"), told(2, 1, 1, 4)]
    assert shown(held(some, at(5))) == [(1, 1, "m", 5, "held")]


def test_records_that_come_again_are_listed() -> None:
    some = [told(0, 7, 7, None), told(1, 7, 7, RELEASE), told(2, 7, 7, None, count=2), told(3, 7, 7, ACCEPT)]
    (found,) = again(held([*some, told(4, 8, 9, None)], at(5)))
    assert (found["first"], found["deliveries"], found["ends"]) == (7, 2, ["released", "accepted"])


def test_a_recording_shows_what_the_clients_wrote_down(tmp_path: Path) -> None:
    pytest.importorskip("altair")
    from pipeline.dashboard.web.pictures.share_picture import in_words, share_picture  # noqa: PLC0415 - not without Altair

    lake = diagnosed_lake(tmp_path / "lake", "incidents/share_groups")
    truth = json.loads((CAPTURES / "incidents" / "share_groups.truth.json").read_text())
    with connect(lake) as connection:
        everything = Scope(at(-1e9), at(1e9), "kafka")
        known = shares(connection, everything)
        assert [group for _, group in known.groups] == ["packing", "painting", "shipping"]
        (packing,) = [place for place in known.delivered if place.group == "packing"]
        seen = shares_seen(connection, everything, known, packing)
        assert seen is not None
        later = seen.scope.end + timedelta(seconds=10)
        longer = shares_seen(connection, everything, known, packing, until=later)
        assert longer is not None
        assert (longer.scope.start, longer.scope.end) == (seen.scope.start, later)
    wrote = Counter(
        event["kind"]
        for event in truth["events"]
        if event.get("group") == "packing" and event.get("offset") is not None
    )
    counted: Counter[str] = Counter()
    for one in seen.held:
        counted[one.how] += one.last - one.first + 1
    assert counted["released"] == wrote["released"] > 0
    assert abs(counted["accepted"] - wrote["accepted"]) <= 2  # the last ones may not have reached the broker
    assert max(one.deliveries for one in seen.held) == 5
    assert [offset for _, offset in seen.starts] == sorted(offset for _, offset in seen.starts)
    assert seen.scope.end - seen.scope.start > timedelta(seconds=10)
    marks = [layer["mark"]["type"] for layer in share_picture(seen, dark=True).to_dict()["layer"]]
    assert marks == ["rect", "point", "line"]
    assert "a record came up to 5 times" in in_words(seen)
