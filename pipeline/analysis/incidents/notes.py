"""What people noted of incidents: muted, resolved, or a text. Rows in, states of incidents out; no clock, no file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

NOTE: Final = "note"
MUTE: Final = "mute"
UNMUTE: Final = "unmute"
RESOLVE: Final = "resolve"
REOPEN: Final = "reopen"
KINDS = (NOTE, MUTE, UNMUTE, RESOLVE, REOPEN)
"""What a row of ``ops.incident_notes`` may be."""


@dataclass(frozen=True, slots=True)
class NoteState:
    """How an incident stands by what people noted of it.

    Attributes:
        is_muted: whether it is left out of lists and messages now.
        muted_until: until when; None: until somebody ends it, or it is not muted.
        resolved_at: when somebody resolved it last; None: it never was, or it was opened again.
        texts: rows with a text, the newest first.
    """

    is_muted: bool = False
    muted_until: datetime | None = None
    resolved_at: datetime | None = None
    texts: Sequence[Mapping[str, Any]] = field(default=())


NOTHING = NoteState()


def note_states(rows: Iterable[Mapping[str, Any]], now: datetime) -> dict[str, NoteState]:
    """By incident id what people have made of each.

    Args:
        rows: of ``ops.incident_notes``, in any order.
        now: what is muted until a time before is muted no more.
    """
    of: dict[str, list[Mapping[str, Any]]] = {}
    for row in sorted(rows, key=lambda row: row["noted_at"]):
        of.setdefault(row["incident_id"], []).append(row)
    return {incident_id: _note_state(noted, now) for incident_id, noted in of.items()}


def _note_state(noted: Sequence[Mapping[str, Any]], now: datetime) -> NoteState:
    mutes = [row for row in noted if row["kind"] in (MUTE, UNMUTE)]
    ends = [row for row in noted if row["kind"] in (RESOLVE, REOPEN)]
    muted = mutes[-1] if mutes and mutes[-1]["kind"] == MUTE else None
    is_muted = muted is not None and (muted["muted_until"] is None or muted["muted_until"] > now)
    return NoteState(
        is_muted,
        muted["muted_until"] if muted is not None and is_muted else None,
        ends[-1]["noted_at"] if ends and ends[-1]["kind"] == RESOLVE else None,
        [row for row in reversed(noted) if row["text"]],
    )


def as_noted(
    incidents: Iterable[Mapping[str, Any]], notes: Iterable[Mapping[str, Any]], now: datetime
) -> list[dict[str, Any]]:
    """Rows of ``gold.incidents`` in their order, with ``is_muted``.

    One is resolved if somebody resolved it and nothing was seen of it since.

    Args:
        incidents: the rows.
        notes: rows of ``ops.incident_notes``.
        now: see note_states.
    """
    known = note_states(notes, now)
    return [with_notes(row, known.get(row["incident_id"], NOTHING)) for row in incidents]


def with_notes(incident: Mapping[str, Any], note_state: NoteState) -> dict[str, Any]:
    """A row of ``gold.incidents`` likewise, by its state."""
    is_over = note_state.resolved_at is not None and incident["last_ts"] <= note_state.resolved_at
    return {**incident, "is_muted": note_state.is_muted, **({"state": "resolved"} if is_over else {})}
