"""Times in UTC, or in the zone of whoever looks; the zone is always named."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone

import pytest

from pipeline.dashboard.queries.scope import Scope
from pipeline.dashboard.web.format import between, clock, moment, seen
from pipeline.dashboard.web.pictures.picture import data, time_axis
from pipeline.dashboard.web.zone import in_zone, of_zone, text_in_zone, whose_times, write_times_in, zone_name, zoned
from tests.paths import ROOT
from tests.pipeline.rows import T0


@pytest.fixture(autouse=True)
def _utc() -> Iterator[None]:
    yield
    write_times_in(None)


def test_times_are_utc_unless_somebody_chooses() -> None:
    assert (zone_name(), moment(T0)) == ("UTC", "2026-03-01 12:00:00 UTC")


def test_the_zone_of_all_times_is_named() -> None:
    assert whose_times() == "All times are UTC."
    write_times_in("Europe/Berlin")
    assert whose_times() == "All times are Europe/Berlin."


@pytest.mark.parametrize(
    ("zone", "words"),
    [
        ("Europe/Berlin", "2026-03-01 13:00:00 CET"),
        ("America/New_York", "2026-03-01 07:00:00 EST"),
        ("Asia/Kolkata", "2026-03-01 17:30:00 IST"),
        ("America/Sao_Paulo", "2026-03-01 09:00:00 -03"),
        ("Pacific/Auckland", "2026-03-02 01:00:00 NZDT"),
    ],
)
def test_a_time_is_written_in_the_zone_with_its_name(zone: str, words: str) -> None:
    write_times_in(zone)
    assert moment(T0) == words
    assert zoned("time") == f"time, {zone}"


def test_each_time_has_the_summer_of_its_own_day() -> None:
    write_times_in("Europe/Berlin")
    assert moment(datetime(2026, 7, 1, 12, tzinfo=timezone.utc)) == "2026-07-01 14:00:00 CEST"


def test_the_day_is_that_of_the_zone() -> None:
    late, later = T0.replace(hour=22, minute=30), T0.replace(hour=23, minute=30)
    assert between(late, later) == "2026-03-01 22:30:00 to 23:30:00 UTC"
    write_times_in("Europe/Berlin")
    assert between(late, later) == "2026-03-01 23:30:00 to 2026-03-02 00:30:00 CET"
    assert seen(late, late + timedelta(seconds=5)) == "2026-03-01 23:30:00 to 23:30:05 CET, 5.0 s"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("since 2026-03-01 22:59:59 UTC (5 s)", "since 2026-03-01 23:59:59 CET (5 s)"),
        ("from 22:30:00 to 23:30:00 UTC, over.", "from 23:30:00 to 00:30:00 CET, over."),
        ("from 2026-03-01 22:30:00 to 23:30:00 UTC", "from 2026-03-01 23:30:00 to 2026-03-02 00:30:00 CET"),
        ("2026-06-30 23:00:00 to 2026-07-01 01:00:00 UTC", "2026-07-01 01:00:00 to 2026-07-01 03:00:00 CEST"),
        ("A 10:00:00, B 99:00:00 UTC, 12 UTC", "A 10:00:00, B 99:00:00 UTC, 12 UTC"),
    ],
)
def test_times_of_a_sentence_are_written_in_the_zone(text: str, words: str) -> None:
    assert text_in_zone(text, T0.date()) == text
    write_times_in("Europe/Berlin")
    assert text_in_zone(text, T0.date()) == words


@pytest.mark.parametrize("stranger", ["Mars/Olympus", "", "../../etc/passwd", "/etc/passwd", "a\0b", "x" * 5000])
def test_a_zone_that_is_none_is_utc(stranger: str) -> None:
    write_times_in("Europe/Berlin")
    write_times_in(stranger)
    assert (zone_name(), clock(T0)) == ("UTC", "2026-03-01 12:00:00")


@pytest.mark.parametrize("ts", [datetime.min, datetime.max])
def test_the_first_and_the_last_time_are_written(ts: datetime) -> None:
    for zone in ("America/New_York", "Pacific/Auckland"):
        write_times_in(zone)
        assert in_zone(ts.replace(tzinfo=timezone.utc)).year in (1, 9999)


def test_a_time_that_was_typed_is_of_the_zone() -> None:
    write_times_in("Europe/Berlin")
    assert of_zone(datetime(2026, 3, 1, 13)).astimezone(timezone.utc) == T0
    assert of_zone(T0) == T0


def test_charts_follow_the_zone() -> None:
    def drawn() -> tuple[str, str]:
        axis = time_axis(Scope(T0, T0 + timedelta(seconds=60))).to_dict()
        return axis["scale"]["type"], data([{"ts": T0}]).to_pylist()[0]["ts_text"]

    assert drawn() == ("utc", "2026-03-01 12:00:00.000")
    write_times_in("Europe/Berlin")
    assert drawn() == ("time", "2026-03-01 13:00:00.000")


def test_no_page_calls_a_time_utc_by_itself() -> None:
    """What is asked in SQL is always UTC; all else has the zone that was chosen."""
    by_itself = re.compile(r"""["'](?:[^"'\n]*[ ,(])?UTC[.)]?["']""")
    web = ROOT / "pipeline" / "dashboard" / "web"
    found = {
        path.relative_to(web): line.strip()
        for path in web.rglob("*.py")
        if path.name not in ("zone.py", "toolbar.py", "query.py", "grid.py")
        for line in path.read_text(encoding="utf-8").splitlines()
        if by_itself.search(line) and '"""' not in line
    }
    assert found == {}, "write times by words.moment, or label them by zone.zoned"
