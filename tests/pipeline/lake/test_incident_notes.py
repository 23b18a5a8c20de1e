"""Notes of incidents are in a table of the lake, which whoever may write there adds to."""

from __future__ import annotations

import os
from datetime import datetime, timezone
from pathlib import Path

import pytest

from pipeline.dashboard.sql import query
from pipeline.errors import UserError
from pipeline.lake.incident_notes import MOST_LETTERS, add_note, may_note, note, read_notes
from pipeline.tables import INCIDENT_NOTES
from tests.pipeline.lakes import diagnosed_lake

NOW = datetime(2026, 11, 21, 12, tzinfo=timezone.utc)


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    return diagnosed_lake(tmp_path / "lake", "stuck_commit")


def test_a_note_is_read_as_it_was_written_and_by_sql(lake: Path) -> None:
    assert read_notes(str(lake)) == []
    add_note(str(lake), note("i", "mute", NOW, text=" why \n", author="ann", muted_until=NOW))
    add_note(str(lake), note("i", "note", NOW, text="x" * (MOST_LETTERS + 1)))
    first, second = sorted(read_notes(str(lake)), key=lambda row: row["kind"])
    assert first == {
        "incident_id": "i", "kind": "mute", "noted_at": NOW, "text": "why", "author": "ann", "muted_until": NOW,
    }  # fmt: skip
    assert len(second["text"]) == MOST_LETTERS
    assert query(lake, "SELECT kind FROM ops.incident_notes ORDER BY kind").column("kind").to_pylist() == [
        "mute", "note",
    ]  # fmt: skip


def test_a_lake_of_an_older_release_gets_the_table_with_the_first_note(tmp_path: Path) -> None:
    assert may_note(str(tmp_path))
    assert read_notes(str(tmp_path)) == []
    add_note(str(tmp_path), note("i", "resolve", NOW))
    assert [row["kind"] for row in read_notes(str(tmp_path))] == ["resolve"]


def test_notes_stay_when_a_capture_is_diagnosed_again(lake: Path) -> None:
    from pipeline.embedded.lake import write_lake  # noqa: PLC0415

    add_note(str(lake), note("i", "mute", NOW))
    write_lake(lake, {})
    assert [row["kind"] for row in read_notes(str(lake))] == ["mute"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_whoever_may_not_write_is_told(lake: Path) -> None:
    folder = lake / INCIDENT_NOTES.path
    for one in (folder, folder / "_delta_log"):
        one.chmod(0o555)
    assert not may_note(str(lake))
    with pytest.raises(UserError, match="cannot write the note"):
        add_note(str(lake), note("i", "mute", NOW))


def test_a_lake_elsewhere_takes_no_notes() -> None:
    assert not may_note("s3://bucket/lake")
