"""The picture of a group on a page: drawn for its theme, one part below the other."""

from __future__ import annotations

from collections.abc import Collection

import streamlit as st

from pipeline.dashboard.queries.progress.groups import GroupSeen
from pipeline.dashboard.web.parts.drawn import draw_chart, is_dark
from pipeline.dashboard.web.pictures import group_picture
from pipeline.dashboard.web.words import plain, seen


def draw_group(shown: GroupSeen, only: Collection[str] = tuple(group_picture.ROOM)) -> None:
    """Draw it, with its caption.

    Args:
        shown: what was seen of it.
        only: names of its parts.
    """
    words, span = group_picture.in_words(shown), shown.scope
    st.caption(f"{plain(words)} What was seen of it: {seen(span.start, span.end)}.")
    parts = group_picture.group_picture(shown, dark=is_dark())
    for name, part in parts.items():
        if name in only:
            chart = part.properties(height=part.height + group_picture.ROOM[name])
            draw_chart(chart, key=f"group {name}", alt=words)
