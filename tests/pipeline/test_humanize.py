"""Numbers, times, durations and lists as people read them."""

from __future__ import annotations

import pytest

from pipeline import humanize


@pytest.mark.parametrize(
    ("count", "nouns", "text"),
    [
        (0, ("record",), "0 records"),
        (1, ("record",), "1 record"),
        (12_345, ("record",), "12,345 records"),
        (2, ("batch", "batches"), "2 batches"),
        (2**63, ("record",), "more records than 64 bits can count"),
    ],
)
def test_a_count_has_its_noun_and_thousands_set_apart(count: int, nouns: tuple[str, ...], text: str) -> None:
    assert humanize.pluralize(count, *nouns) == text


@pytest.mark.parametrize(
    ("total", "text"),
    [(0.4, "0 s"), (38, "38 s"), (119, "119 s"), (300, "5 min"), (12_600, "3.5 h"), (345_600, "4 d")],
)
def test_a_span_is_in_the_unit_that_fits(total: float, text: str) -> None:
    assert humanize.seconds(int(total * 1_000_000)) == text


def test_a_short_span_is_in_milliseconds() -> None:
    assert [humanize.brief(us) for us in (1, 9_999_000, 10_000_000)] == ["1 ms", "9,999 ms", "10 s"]


def test_a_duration_has_its_two_largest_units() -> None:
    found = [humanize.duration(total) for total in (None, 0, 0.000_25, 0.25, 2.5, 38, 125, 273_600)]
    assert found == ["", "0 s", "250 µs", "250 ms", "2.5 s", "38 s", "2 min 5 s", "3 d 4 h"]


def test_times_are_utc() -> None:
    assert (humanize.clock(1), humanize.moment(1)) == ("00:00:00", "1970-01-01 00:00:00")


def test_sizes_and_numbers_may_be_unknown() -> None:
    assert [humanize.size(count) for count in (None, 7, 1536, 3 * 2**40)] == ["", "7 B", "1.5 KiB", "3.0 TiB"]
    assert [humanize.number(count) for count in (None, 12_345)] == ["", "12,345"]


@pytest.mark.parametrize(
    ("names", "listed", "first"),
    [
        ([], "", ""),
        (["a"], "a", "a"),
        (["a", "b", "c"], "a, b and c", "a, b, c"),
        (["d", "a", "b", "c"], "d, a, b and 1 more", "d, a, b and 1 more"),
    ],
)
def test_lists_name_three(names: list[str], listed: str, first: str) -> None:
    assert (humanize.listed(names), humanize.first_of(names)) == (listed, first)
    assert humanize.some(names) == humanize.first_of(sorted(names))
