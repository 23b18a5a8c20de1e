"""The pictures of a group on a page, drawn for its theme: one part below the other, or what a share group got."""

from __future__ import annotations

from collections.abc import Collection

import streamlit as st

from pipeline.dashboard.queries.progress.groups import GroupSeen
from pipeline.dashboard.queries.progress.shares import SharesSeen
from pipeline.dashboard.web.format import plain, seen
from pipeline.dashboard.web.page_context import go
from pipeline.dashboard.web.parts.draw_chart import draw_chart, is_dark
from pipeline.dashboard.web.pictures import group_picture, share_picture
from pipeline.dashboard.web.pictures.picture import milliseconds
from pipeline.dashboard.web.scripts.own import TOGETHER, follow_pointer
from pipeline.dashboard.web.zone import zone_name


def draw_group(shown: GroupSeen, only: Collection[str] = group_picture.PARTS) -> None:
    """Draw it, with its caption.

    Args:
        shown: what was seen of it.
        only: names of its parts.
    """
    words, span = group_picture.in_words(shown), shown.scope
    st.caption(f"{plain(words)} What was seen of it: {seen(span.start, span.end)}.")
    parts = group_picture.group_picture(shown, dark=is_dark())
    with st.container(key=f"{TOGETHER} of a group"):
        follow_pointer(milliseconds(span.start), milliseconds(span.end), zone_name())
        for name, part in parts.items():
            if name in only:
                chart = part.properties(height=part.height + group_picture.room(name, shown))
                draw_chart(chart, key=f"group {name}", alt=words)


def draw_shares(shown: SharesSeen, *, key: str) -> None:
    """Draw a partition of a share group, with its caption; a range whose end is clicked opens its exchange.

    Args:
        shown: what was seen of it.
        key: of the chart, another one for each partition and group.
    """
    words, span = share_picture.in_words(shown), shown.scope
    st.caption(f"{plain(words)} {seen(span.start, span.end)}. Click a bar's end to open its exchange.")
    chart = share_picture.share_picture(shown, dark=is_dark(), can_open=True)
    event = draw_chart(chart, key=key, on_select="rerun", alt=words)
    if clicked := event["selection"].get(share_picture.OPEN):
        go("exchanges", exchange=clicked[0]["exchange_id"])
