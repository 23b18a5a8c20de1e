"""An agent that reads faster than what it lands is taken: it waits, says so, and nothing is lost."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from pipeline.capture.runs.reading import read_capture
from pipeline.config.settings import Settings
from pipeline.embedded.feed import Feed, open_feed, reading_s
from pipeline.embedded.new_files import NewFiles
from tests.paths import CAPTURES

HEALTHY, STUCK, OLD = (CAPTURES / f"{name}.pcap" for name in ("healthy", "stuck_commit", "old_format"))
PATIENCE_S = 60.0


def frames_until_the_end(feed: Feed) -> int:
    deadline = time.monotonic() + PATIENCE_S
    frames = 0
    while time.monotonic() < deadline:
        is_last = feed.has_ended
        if (rows := feed.take()) is not None:
            frames += rows[0].num_rows
        elif is_last:
            return frames
        else:
            time.sleep(0.05)
    raise TimeoutError


def test_what_has_landed_is_read_in_more_of_the_time_where_more_lies_there() -> None:
    assert reading_s(2.0, is_behind=False) == 2.0
    assert reading_s(2.0, is_behind=True) == 6.0


@pytest.mark.slow
def test_the_agent_waits_for_whoever_takes_what_it_lands(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("pipeline.embedded.agent_process.MOST_WAITING", 1)
    ring = tmp_path / "captures"
    ring.mkdir()
    for number, capture in enumerate((OLD, HEALTHY, STUCK)):  # each lands by itself
        (ring / f"{number}.pcap").write_bytes(capture.read_bytes())
    wanted = read_capture([OLD, HEALTHY, STUCK], tmp_path / "zone")
    with open_feed(str(ring), [], Settings()) as feed:
        zone = feed._news.zone
        deadline = time.monotonic() + PATIENCE_S
        notes: list[str] = []
        while not notes and time.monotonic() < deadline:
            notes += feed.notes()
            time.sleep(0.05)
        time.sleep(1.5)
        assert len(list(zone.glob("date=*/*.parquet"))) == 1, "it has read no further than it may"
        (note,) = notes
        assert note.startswith("warning: more comes than can be judged: 0 MiB of it wait in the temporary folder")
        assert not feed.has_ended
        frames = 0
        while frames < sum(wanted.frames.values()) and time.monotonic() < deadline:
            if (rows := feed.take()) is not None:
                frames += rows[0].num_rows
            time.sleep(0.05)
        feed.stop()
        frames += frames_until_the_end(feed)
        assert feed.outcome()[0]
        assert feed.notes() == [], "it is said once"
    assert frames == sum(wanted.frames.values())


@pytest.mark.slow
def test_an_agent_that_waits_ends_when_it_is_asked_to_with_all_that_it_has_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("pipeline.embedded.agent_process.MOST_WAITING", 1)
    ring = tmp_path / "captures"
    ring.mkdir()
    for number, capture in enumerate((OLD, HEALTHY)):
        (ring / f"{number}.pcap").write_bytes(capture.read_bytes())
    with open_feed(str(ring), [], Settings()) as feed:
        deadline = time.monotonic() + PATIENCE_S
        while not (notes := feed.notes()) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert notes, "it waits"
        feed.stop()
        assert frames_until_the_end(feed)
        assert feed.outcome() == (True, "")


def test_somebody_elses_landing_zone_ends_with_what_has_landed_by_then(tmp_path: Path) -> None:
    read_capture([HEALTHY], tmp_path)
    feed = Feed(NewFiles(tmp_path), None)
    feed.stop()
    read_capture([STUCK], tmp_path)
    assert feed.take() is not None
    assert feed.take() is None
    assert not feed.is_behind
