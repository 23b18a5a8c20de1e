"""Names of members, spans of open transactions, lanes of owners, and spans of a closer look: values in, values out."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from pipeline.dashboard.queries.progress.held import STRIPES, Stated, holds, longest, outline, stripes
from pipeline.dashboard.queries.progress.lanes import lanes
from pipeline.dashboard.queries.progress.members import OTHERS, label_of, label_of_client, members
from pipeline.dashboard.queries.scope import Scope, narrowed, widened
from tests.pipeline.dashboard.conftest import at


@pytest.mark.parametrize(
    ("keys", "labels"),
    [
        ([("a", "a-1"), ("b", "b-1")], ["a", "b"]),
        ([("a", "a-111111"), ("a", "a-222222")], ["a …111111", "a …222222"]),
        ([("a", "a-111111"), ("a", "")], ["a …111111", "a, no member id"]),
        ([("a", "x-111111"), ("a", "y-111111")], ["a …111111 #1", "a …111111 #2"]),
        ([("", "m-1")], ["m-1"]),
        ([("", "")], ["no name"]),
        ([("a", "m"), ("", "m")], ["a"]),  # told of by the leader alone
        ([(OTHERS, "m")], [f"{OTHERS} #1"]),
    ],
)
def test_members_have_distinct_names(keys: list[tuple[str, str]], labels: list[str]) -> None:
    assert [member.label for member in members(keys)] == labels


def test_a_member_is_found_by_both_ids() -> None:
    shown = members([("a", "a-111111"), ("a", "a-222222"), ("b", "b-1"), ("", "")])
    assert label_of(shown, "a", "a-222222") == "a …222222"
    assert label_of(shown, "", "b-1") == "b"
    assert label_of(shown, "", "") == "no name"
    assert label_of(shown, None, None) == label_of(shown, "c", "c-1") == OTHERS
    assert label_of_client(shown, "b") == "b"
    assert label_of_client(shown, "a") == OTHERS  # one of two


def stated(seconds: float, stable: int, high: int) -> Stated:
    return Stated(at(seconds), stable, high)


def test_a_hold_lasts_until_something_else_is_stated() -> None:
    found = holds(
        [stated(0, 5, 5), stated(1, 5, 8), stated(2, 5, 9), stated(3, 9, 9), stated(4, 9, 12), stated(6, 11, 12)]
    )
    assert [(h.last_stable_offset, h.since, h.until, h.offsets, h.is_over) for h in found] == [
        (5, at(1), at(3), 4, True),
        (9, at(4), at(6), 3, True),
        (11, at(6), at(6), 1, False),
    ]
    assert outline(found[0]) == [stated(1, 5, 8), stated(2, 5, 9), stated(3, 5, 9)]
    assert outline(found[2]) == [stated(6, 11, 12)]


def test_hatching_is_even_and_no_hold_is_without() -> None:
    scope = Scope(at(0), at(STRIPES))
    found = holds([stated(10, 1, 5), stated(14.5, 1, 9), stated(20, 9, 9), stated(30.2, 9, 10), stated(30.4, 10, 10)])
    lines = stripes(found, scope)
    assert [line.ts for line in lines] == [*(at(n) for n in range(10, 21)), at(30.2)]
    assert [line.high_watermark for line in lines[:6]] == [5, 5, 5, 5, 5, 9]
    assert longest(found, scope, 0.1) == found[:1]
    assert len(stripes(found[:1], Scope(at(12), at(12.001)))) == STRIPES + 1  # not those of the seconds around it
    assert stripes(found, Scope(at(10), at(10)))  # a span without width ends, too


def test_owners_share_a_lane_unless_two_own_at_a_time() -> None:
    spans = [(0, 5), (5, 9), (7, 12), (9, 10), (12, 20)]
    assert lanes([{"owned_from": at(a), "owned_until": at(b)} for a, b in spans]) == [0, 0, 1, 0, 0]


def test_a_closer_look_stays_inside_and_a_wider_one_has_the_same_middle() -> None:
    scope = Scope(at(100), at(200), "kafka")

    def ms(seconds: float) -> float:
        return at(seconds).timestamp() * 1000

    assert narrowed(scope, [ms(150), ms(120)]) == Scope(at(120), at(150), "kafka")
    assert narrowed(scope, [ms(50), ms(120)]) == Scope(at(100), at(120), "kafka")
    assert narrowed(scope, [ms(10), ms(20)]) is None
    assert narrowed(scope, []) is None
    assert narrowed(scope, [-1e15, 1e15]) == scope
    assert widened(scope) == Scope(at(0), at(300), "kafka")
    assert widened(Scope(at(0), at(0))) == Scope(at(-1), at(1))
    latest = datetime.max.replace(tzinfo=timezone.utc)
    assert widened(Scope(at(0), latest)).end == latest
