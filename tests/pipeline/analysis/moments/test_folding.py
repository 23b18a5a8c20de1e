"""Moments that repeat become one; of many a few stay: the first, the last, what changed hands, what went wrong."""

from __future__ import annotations

import orjson
from hypothesis import given
from hypothesis import strategies as st

from pipeline.analysis.moments.folding import chosen, continued, folded, joined
from pipeline.analysis.moments.model import MOST_LETTERS, MOST_OF_ONE, Moment, moments_of, text_of

S = 1_000_000
COMMITS = "commits t-0 at"


def commit(seconds: float, who: str, offset: int) -> Moment:
    return Moment(int(seconds * S), who, COMMITS, f"{who}-{seconds}", offset, offset)


def turn(seconds: float, generation: int) -> Moment:
    return Moment(
        int(seconds * S), "group g", "begins generation", f"g-{seconds}", generation, generation, is_turn=True
    )


def texts(moments: list[Moment]) -> list[str]:
    return [one.text for one in moments]


def test_what_repeats_is_one_line_with_count_and_period() -> None:
    assert texts(folded(commit(n * 0.8, "a", 24) for n in range(31))) == [
        "a commits t-0 at 24 (31 times in 24.0 s, about every 0.8 s)"
    ]


def test_numbers_that_change_become_a_range() -> None:
    assert texts(folded(commit(n, "a", 10 + n) for n in range(3))) == ["a commits t-0 at 10 to 12 (3 times in 2.0 s)"]


def test_what_comes_again_after_a_turn_is_another_line() -> None:
    found = folded([commit(1, "a", 24), turn(2, 2), commit(3, "a", 24), commit(4, "b", 30), commit(5, "a", 24)])
    assert texts(found) == [
        "a commits t-0 at 24",
        "group g begins generation 2",
        "a commits t-0 at 24 (2 times in 2.0 s)",
        "b commits t-0 at 30",
    ]


def test_many_turns_are_what_repeats() -> None:
    found = folded([one for n in range(1, 9) for one in (turn(2 * n, n), commit(2 * n + 1, "a", 24))])
    assert texts(found) == [
        "group g begins generation 1 to 8 (8 times in 14.0 s, about every 2.0 s)",
        "a commits t-0 at 24 (8 times in 14.0 s, about every 2.0 s)",
    ]


def test_an_exchange_counts_once_however_often_it_was_found() -> None:
    assert texts(folded([commit(1, "a", 24)] * 3)) == ["a commits t-0 at 24"]


def test_findings_about_the_same_count_it_once() -> None:
    of_one, of_other = folded(commit(n, "a", 24) for n in range(10)), folded(commit(n, "a", 24) for n in range(3, 9))
    assert texts(joined([*of_one, *of_other])) == texts(of_one)


def test_where_neither_has_seen_all_the_count_is_the_least() -> None:
    of_one, of_other = folded(commit(n, "a", 24) for n in range(6)), folded(commit(n, "a", 24) for n in range(3, 9))
    assert "at least 6 times in 8.0 s" in texts(joined([*of_one, *of_other]))[0]


def test_of_many_moments_a_few_stay() -> None:
    many = [commit(n, f"client-{n:02}", 1) for n in range(40)]
    many[20] = turn(20, 2)
    found = chosen(many)
    assert len(found) == MOST_OF_ONE
    assert {many[0], many[20], many[39]} <= set(found)
    assert found == sorted(found, key=lambda one: one.us)


def test_a_later_look_continues_an_earlier_one() -> None:
    before = text_of(folded(commit(n, "a", 24) for n in range(5)))
    now = text_of(folded([turn(4.5, 2), commit(5, "a", 24)]))
    assert texts(list(moments_of(continued(before, now)))) == [
        "a commits t-0 at 24 (5 times in 4.0 s, about every 1.0 s)",
        "group g begins generation 2",
        "a commits t-0 at 24",
    ]


def test_a_name_of_any_length_fits_a_line() -> None:
    assert len(Moment(0, "a" * 32_767, "commits").actor) == MOST_LETTERS


number = st.integers(-(2**63), 2**63 - 1)
moments = st.builds(
    Moment, us=st.integers(0, 2**62), actor=st.text(), does=st.text(), exchange_id=st.none() | st.text(),
    low=number | st.none(), high=number | st.none(), behind=st.text(), note=st.text(), times=st.integers(1, 2**31),
    took_us=st.none() | st.integers(0, 2**62), is_turn=st.booleans(), is_refused=st.booleans(), is_least=st.booleans(),
)  # fmt: skip


@given(st.lists(moments, max_size=30))
def test_whatever_moments_hold_few_stay_in_order(some: list[Moment]) -> None:
    found = chosen(joined(folded(some)))
    assert len(found) <= MOST_OF_ONE
    assert bool(found) == bool(some)
    assert [one.us for one in found] == sorted(one.us for one in found)
    assert all(one.text for one in found)


@given(st.lists(moments, max_size=5))
def test_what_was_written_is_read(some: list[Moment]) -> None:
    assert list(moments_of(text_of(some))) == some


json = st.recursive(st.none() | st.booleans() | number | st.floats(allow_nan=False) | st.text(), lambda inner: (
    st.lists(inner) | st.dictionaries(st.sampled_from(["us", "actor", "does", "times", "low", "is_turn", "x"]), inner)
))  # fmt: skip


@given(json)
def test_of_anything_else_nothing_is_read_and_nothing_raises(value: object) -> None:
    for one in moments_of(orjson.dumps(value).decode()):
        assert isinstance(one, Moment)
        assert one.text


def test_of_no_json_nothing_is_read() -> None:
    assert [moments_of(text) for text in (None, "", "{", b"[]", 7)] == [()] * 5
