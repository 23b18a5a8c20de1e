"""Draws what people noted of an incident, and lets whoever may write into the lake mute, note and resolve it."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import streamlit as st

from pipeline.analysis.incidents.notes import MUTE, NOTE, REOPEN, RESOLVE, UNMUTE, NoteState
from pipeline.dashboard.web.format import moment, plain
from pipeline.dashboard.web.page_context import draw_text, lake_place
from pipeline.errors import UserError
from pipeline.lake.incident_notes import MOST_LETTERS, add_note, may_note, note

_SPANS = {"for a day": timedelta(days=1), "for a week": timedelta(weeks=1), "until I unmute it": None}
_TEXT, _AUTHOR, _SPAN, _FAILED = "text of a note", "author of notes", "span of a mute", "note that failed"
_LONGEST_NAME = 100
_DONE = {MUTE: "muted it", UNMUTE: "unmuted it", RESOLVE: "resolved it", REOPEN: "opened it again", NOTE: "noted"}


def draw_noting(incident_id: str, note_state: NoteState, *, is_over: bool) -> None:
    """Draw the button that opens it; nothing where this process may not write into the lake.

    Args:
        incident_id: of the incident.
        note_state: what people have made of it.
        is_over: whether it is resolved, by what was seen or by what somebody noted.
    """
    if not may_note(lake_place()):
        return
    with st.popover("Mute, note, resolve", icon=":material/edit_note:", width="content"):
        st.text_area("Note", key=f"{_TEXT} {incident_id}", max_chars=MOST_LETTERS, height=100)
        st.text_input("Your name", key=_AUTHOR, max_chars=_LONGEST_NAME)
        st.selectbox("Mute", tuple(_SPANS), key=_SPAN, help="A muted incident is folded on the first page; "
                     "`wirelake findings` and `wirelake notify` leave it out.")  # fmt: skip
        with st.container(horizontal=True):
            _button("Save note", NOTE, incident_id)
            _button("Unmute", UNMUTE, incident_id) if note_state.is_muted else _button("Mute", MUTE, incident_id)
            if note_state.resolved_at is not None:
                _button("Reopen", REOPEN, incident_id)
            elif not is_over:
                _button("Resolve", RESOLVE, incident_id)


def draw_noted(note_state: NoteState) -> None:
    """Draw what was noted: whether it is muted, who resolved it, and all texts, the newest first."""
    if failed := st.session_state.pop(_FAILED, None):
        st.error(plain(failed))
    if note_state.is_muted:
        until = (
            "until somebody unmutes it" if note_state.muted_until is None else f"until {moment(note_state.muted_until)}"
        )
        st.info(f"Muted {until}.", icon=":material/notifications_off:")
    if note_state.resolved_at is not None:
        st.info(f"Somebody resolved it at {moment(note_state.resolved_at)}.", icon=":material/task_alt:")
    for row in note_state.texts:
        who = row["author"] or "somebody"
        with st.container(border=True, gap=None):
            st.caption(f"{plain(who)} {_DONE.get(row['kind'], 'noted')} at {moment(row['noted_at'])}")
            draw_text(row["text"])


def _button(label: str, kind: str, incident_id: str) -> None:
    st.button(label, key=f"{kind} {incident_id}", on_click=_note, args=(kind, incident_id))


def _note(kind: str, incident_id: str) -> None:
    """Write what was pressed; callbacks run before the page is drawn again."""
    state, now = st.session_state, datetime.now(timezone.utc)
    text = (state.get(f"{_TEXT} {incident_id}") or "").strip()
    if kind == NOTE and not text:
        return
    more: dict[str, Any] = {"text": text, "author": state.get(_AUTHOR)}
    span = _SPANS.get(state.get(_SPAN) or "")
    if kind == MUTE and span is not None:
        more["muted_until"] = now + span
    try:
        add_note(lake_place(), note(incident_id, kind, now, **more))
    except UserError as error:
        state[_FAILED] = str(error)
        return
    state[f"{_TEXT} {incident_id}"] = ""
