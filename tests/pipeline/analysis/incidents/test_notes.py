"""What people noted of incidents decides whether one is listed, and whether it is over."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from pipeline.analysis.incidents.notes import as_noted, note_states

NOW = datetime(2026, 11, 21, 12, tzinfo=timezone.utc)


def note(kind: str, minutes: float = -10, **values: Any) -> dict[str, Any]:
    row = {"incident_id": "i", "kind": kind, "noted_at": NOW + timedelta(minutes=minutes), "text": None}
    return {**row, "author": None, "muted_until": None, **values}


def incident(minutes: float = -60, state: str = "ongoing") -> dict[str, Any]:
    return {"incident_id": "i", "state": state, "last_ts": NOW + timedelta(minutes=minutes)}


@pytest.mark.parametrize(
    ("notes", "is_muted"),
    [
        ([], False),
        ([note("note", text="mute")], False),
        ([note("mute")], True),
        ([note("mute", muted_until=NOW + timedelta(minutes=1))], True),
        ([note("mute", muted_until=NOW)], False),
        ([note("mute"), note("unmute", -5)], False),
        ([note("unmute", -5), note("mute")], False),  # in whatever order they are read
        ([note("mute", -20), note("unmute", -15), note("mute", -1)], True),
    ],
)
def test_an_incident_is_muted_until_its_time_is_up_or_somebody_ends_it(
    notes: list[dict[str, Any]], is_muted: bool
) -> None:
    (row,) = as_noted([incident()], notes, NOW)
    assert row["is_muted"] is is_muted
    assert row["state"] == "ongoing"


@pytest.mark.parametrize(
    ("last_seen", "notes", "state"),
    [
        (-60, [note("resolve")], "resolved"),
        (-5, [note("resolve")], "ongoing"),  # it was seen again since
        (-60, [note("resolve"), note("reopen", -5)], "ongoing"),
        (-60, [note("resolve", -20), note("reopen", -15), note("resolve", -5)], "resolved"),
    ],
)
def test_what_somebody_resolved_is_over_until_it_is_seen_again(
    last_seen: float, notes: list[dict[str, Any]], state: str
) -> None:
    assert as_noted([incident(last_seen)], notes, NOW)[0]["state"] == state


def test_notes_of_other_incidents_change_nothing() -> None:
    (row,) = as_noted([incident()], [note("mute", incident_id="other"), note("resolve", incident_id="other")], NOW)
    assert row == {**incident(), "is_muted": False}


def test_texts_stand_with_the_newest_first() -> None:
    notes = [note("note", -3, text="second"), note("mute", -9, text="first"), note("resolve", -1)]
    note_state = note_states(notes, NOW)["i"]
    assert [row["text"] for row in note_state.texts] == ["second", "first"]
    assert note_state.resolved_at == NOW - timedelta(minutes=1)
