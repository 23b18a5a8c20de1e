"""Draws what happened in an incident: dated lines, each with the way to its exchange."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

import streamlit as st

from pipeline.analysis.incidents.story import lines_of
from pipeline.dashboard.web.page_context import draw_text, link
from pipeline.dashboard.web.parts.exchange_addresses import moment_of, sequence_address
from pipeline.dashboard.web.zone import in_zone, zoned

_TIME, _TEXT = 1, 6
"""Shares of the width."""


def dated_lines(row: Mapping[str, Any]) -> Iterator[tuple[datetime, str, str, str | None]]:
    """When, the time of day to the hundredth of a second in the zone that is chosen, what happened, and the exchange.

    Args:
        row: of ``gold.incidents``; one of an older release has no lines.
    """
    for line in lines_of(row):
        ts = moment_of(str(line.get("ts") or ""))
        if ts is not None:
            local = in_zone(ts)
            clock = f"{local:%H:%M:%S}.{local.microsecond // 10_000:02}"
            yield ts, clock, str(line.get("text") or ""), line.get("exchange_id") or None


def draw_story(row: Mapping[str, Any]) -> None:
    """Draw the lines of an incident in the order of time; the time of a line leads to its exchange."""
    lines = list(dated_lines(row))
    if not lines:
        return
    st.markdown(f"**What happened** ({zoned('time of day')})")
    with st.container(gap=None):
        for ts, clock, text, exchange_id in lines:
            left, right = st.columns([_TIME, _TEXT], vertical_alignment="center")
            with left:
                if exchange_id is None:
                    draw_text(clock)
                else:
                    link("sequence", clock, "swap_vert", **sequence_address(exchange_id, ts))
            with right:
                draw_text(text)


def draw_lines(row: Mapping[str, Any]) -> None:
    """Draw the same lines as text, for a place where an incident is one of several."""
    lines = [f"{clock}  {text}" for _, clock, text, _ in dated_lines(row)]
    if lines:
        draw_text(*lines)
