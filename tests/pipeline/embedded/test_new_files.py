"""A landing zone that grows is listed where it has changed, each file is taken once, and nothing is kept of others."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from pipeline.capture.runs.reading import read_capture
from pipeline.embedded.new_files import NewFiles
from tests.paths import CAPTURES

HEALTHY, OLD = CAPTURES / "healthy.pcap", CAPTURES / "old_format.pcap"


def frames_in(news: NewFiles) -> int:
    total = 0
    while (rows := news.take()) is not None:
        total += rows[0].num_rows
    return total


def long_ago(zone: Path) -> None:
    """Its folders look as if nothing had changed in them for long."""
    for folder in (*zone.glob("date=*"), *zone.glob("gaps/date=*")):
        os.utime(folder, (time.time() - 60,) * 2)


def test_each_file_is_taken_once_and_what_has_not_changed_is_not_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_capture([HEALTHY], tmp_path)
    news = NewFiles(tmp_path)
    first = frames_in(news)
    assert first
    long_ago(tmp_path)
    assert news.take() is None
    listed: list[Path] = []
    scan = os.scandir

    def note(place: Path) -> object:
        listed.append(place)
        return scan(place)

    monkeypatch.setattr("pipeline.embedded.new_files.os.scandir", note)
    assert news.take() is None
    assert set(listed) <= {tmp_path, tmp_path / "gaps"}
    monkeypatch.undo()
    (kept,) = tmp_path.glob("date=*/*.parquet")
    again = kept.with_name("another-1-0000.parquet")
    shutil.copy(kept, again)
    assert frames_in(news) == first
    again.unlink()
    assert news.take() is None
    shutil.copy(kept, again)  # of what has gone nothing is kept
    assert frames_in(news) == first
    shutil.rmtree(kept.parent)
    assert news.take() is None


def test_of_our_own_zone_nothing_stays(tmp_path: Path) -> None:
    read_capture([HEALTHY], tmp_path)
    read_capture([CAPTURES / "incidents" / "lossy.pcap"], tmp_path, agent_id="other")
    news = NewFiles(tmp_path, removes=True)
    assert frames_in(news) > 1000
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_zone_that_is_not_there_yet_is_empty(tmp_path: Path) -> None:
    news = NewFiles(tmp_path / "zone")
    assert news.take() is None
    read_capture([OLD], tmp_path / "zone")
    assert frames_in(news)


def test_nothing_is_kept_of_a_day_that_has_gone(tmp_path: Path) -> None:
    read_capture([HEALTHY], tmp_path)
    news = NewFiles(tmp_path)
    assert frames_in(news)
    assert news._folders
    for day in (*tmp_path.glob("date=*"), *tmp_path.glob("gaps/date=*")):
        shutil.rmtree(day)
    assert news.take() is None
    assert not news._folders
    read_capture([OLD], tmp_path / "other")
    shutil.copytree(tmp_path / "other", tmp_path, dirs_exist_ok=True)
    assert frames_in(news)
    assert news._folders


def test_files_that_went_before_they_were_taken_hide_no_others(tmp_path: Path) -> None:
    read_capture([HEALTHY], tmp_path)
    (kept,) = tmp_path.glob("date=*/*.parquet")
    old = [kept.with_name(f"another-{number}-0000.parquet") for number in range(40)]
    for file in old:
        shutil.copy(kept, file)
    news = NewFiles(tmp_path)
    news._look("frames")
    for file in old:
        file.unlink()
    rows = news.take()
    assert rows is not None
    assert rows[0].num_rows
    assert news.take() is None


def test_of_many_files_so_many_rows_are_taken_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More come than are judged: what is decoded at once must not grow with them."""
    read_capture([HEALTHY], tmp_path)
    (kept,) = tmp_path.glob("date=*/*.parquet")
    rows = pq.read_metadata(kept).num_rows
    for number in range(9):
        shutil.copy(kept, kept.with_name(f"another-{number}-0000.parquet"))
    monkeypatch.setattr("pipeline.embedded.new_files._ENOUGH_ROWS", 3 * rows - 1)
    monkeypatch.setattr("pipeline.embedded.new_files.rows_of", lambda frames, gaps: (len(frames), len(gaps)))
    news = NewFiles(tmp_path)
    assert not news.has_more
    taken = []
    while (found := news.take()) is not None:
        taken.append((found[0], news.has_more))
    assert taken == [(3, True), (3, True), (3, True), (1, False)]


def test_what_comes_after_it_was_closed_is_not_taken(tmp_path: Path) -> None:
    read_capture([HEALTHY], tmp_path)
    news = NewFiles(tmp_path)
    first = frames_in(news)
    read_capture([HEALTHY], tmp_path, agent_id="before")
    news.close()
    read_capture([HEALTHY], tmp_path, agent_id="after")
    news.close()
    assert frames_in(news) == first
