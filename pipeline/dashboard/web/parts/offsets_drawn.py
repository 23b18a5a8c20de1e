"""The picture of a partition on a page: drawn for its theme, a commit that is clicked opens, a drag looks closer."""

from __future__ import annotations

import hashlib

import streamlit as st

from pipeline.dashboard.queries.progress.offsets import Offsets
from pipeline.dashboard.queries.scope import Scope, narrowed
from pipeline.dashboard.web.format import plain, seen
from pipeline.dashboard.web.page_context import fixed, go, link, look_at
from pipeline.dashboard.web.parts.draw_chart import draw_chart, is_dark
from pipeline.dashboard.web.pictures.offsets_picture import IN_TRANSACTION, OPEN, ZOOM, in_words, offsets_picture
from pipeline.dashboard.web.scripts.own import leave_brushes_unread


def draw_offsets(shown: Offsets, *, can_zoom: bool) -> None:
    """Draw it, with its caption.

    Args:
        shown: what it shows.
        can_zoom: whether the page follows the time range of the controls, which a drag sets.
    """
    words, span = in_words(shown), shown.scope
    how = "Click a commit to open its exchange" + ("; drag over times to look closer." if can_zoom else ".")
    st.caption(f"{plain(words)} What was seen of this partition: {seen(span.start, span.end)}. {how}")
    selections = [OPEN, ZOOM] if can_zoom else [OPEN]
    above, below = offsets_picture(shown, dark=is_dark(), select=selections)
    name = repr((shown.place, span)).encode(errors="backslashreplace")
    key = f"offsets {hashlib.sha256(name).hexdigest()}"  # what is selected ends with what is shown
    if shown.commits.num_rows or can_zoom:
        if can_zoom:
            leave_brushes_unread()
        event = draw_chart(above, key=key, on_select=lambda: _look_closer(key, span), alt=words)
        if clicked := event["selection"].get(OPEN):
            go("exchanges", exchange=clicked[0]["exchange_id"])
    else:
        draw_chart(above, key=key, alt=words)
    if below is not None:
        draw_chart(below, key="owners", alt="Who owned the partition when, by generation of the group")


def link_commits(shown: Offsets) -> None:
    """The way to the commits of a picture for who has no mouse: a search for the exchanges that stated them."""
    outcomes = set(shown.commits.column("outcome").to_pylist())
    if outcomes:
        place, in_transactions = shown.place, not outcomes.isdisjoint(IN_TRANSACTION)
        link(
            "exchanges", "These commits as exchanges", "swap_horiz",
            api="TxnOffsetCommit" if in_transactions else "OffsetCommit", group=place.group_id, topic=place.topic,
            partition=place.partition, **fixed(shown.scope),
        )  # fmt: skip


def _look_closer(key: str, span: Scope) -> None:
    """Take what was dragged over as the time range, which is in the address then."""
    times = st.session_state[key]["selection"].get(ZOOM, {}).get("ts", ())
    if closer := narrowed(span, times):
        look_at(closer)
