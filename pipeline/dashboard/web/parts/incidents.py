"""Draws an incident: its headline, its source, who is affected, what grows, what to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import streamlit as st

from pipeline.analysis.rules.model import STATE_WORDS
from pipeline.dashboard.queries.overview.trends import Trend
from pipeline.dashboard.web.format import between, moment, plain, prose
from pipeline.dashboard.web.page_context import draw_text, link
from pipeline.dashboard.web.parts.drawn import draw_chart, is_dark
from pipeline.dashboard.web.pictures.trend_picture import trend_picture
from pipeline.humanize import number, pluralize

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

COLOURS = {"critical": "red", "warning": "orange", "info": "blue"}
ICONS = {"critical": ":material/error:", "warning": ":material/warning:", "info": ":material/info:"}
_TRENDS = {
    "lag": ("Lag of {place}, records", "Records of this partition that the group has not committed"),
    "held back": ("Held back in {place}, records", "Records of this partition beyond the last stable offset"),
    "latency": ("Slowest answer, ms", "Of the exchanges that show it"),
    "times": ("Exchanges that show it", "So far"),
}


def draw_cards(rows: Sequence[dict[str, Any]]) -> dict[str, DeltaGenerator]:
    """Draw incidents that are not over, in full; gives the place of what grows of each, by its id."""
    places = {}
    for row in rows:
        with st.container(border=True):
            left, right = st.columns([3, 1])
            with left:
                draw_head(row)
                _people(row)
                draw_text(row["impact"])
                st.markdown(f"**Now.** {prose(row['immediate_action'])}")
                _links(row)
            places[row["incident_id"]] = right.empty()
    return places


def draw_trend(place: DeltaGenerator, trend: Trend) -> None:
    """Draw what grows, with its last value; of latencies the greatest."""
    label, help_ = (text.format(place=plain(trend.place)) for text in _TRENDS[trend.kind])
    values = [value for _, value in trend.points]
    shown = max(values) if trend.kind == "latency" else values[-1]
    times = between(trend.points[0][0], trend.points[-1][0])
    with place.container():
        st.metric(label, number(round(shown)), help=f"{help_}, {times}. Most: {number(round(max(values)))}.")
        st.caption(f"As of {moment(trend.points[-1][0])}{_beside(trend)}")
        draw_chart(trend_picture(trend, label, dark=is_dark()), alt=f"{label}, {times}: {number(round(shown))}")


def _beside(trend: Trend) -> str:
    """What distinguishes records from the offsets between them."""
    records = round(trend.points[-1][1])
    if trend.offsets is None or trend.offsets <= records:
        return ""
    others = pluralize(
        trend.offsets - records, "transaction marker or removed offset", "transaction markers or removed offsets"
    )
    return f": {pluralize(trend.offsets, 'offset')} less {others}"


def draw_over(rows: Sequence[dict[str, Any]]) -> None:
    """Draw incidents that are over, a line each that opens."""
    for row in rows:
        with st.expander(f"{moment(row['last_ts'])}, over: {plain(row['headline'])}"):
            _people(row)
            draw_words(row)
            _links(row)


def draw_head(row: dict[str, Any]) -> None:
    """Draw how severe it is, since when, and its headline."""
    head = st.container(horizontal=True, vertical_alignment="center")
    head.badge(row["severity"], color=COLOURS.get(row["severity"], "gray"), icon=ICONS.get(row["severity"]))  # type: ignore[arg-type]
    if state := STATE_WORDS.get(row["state"]):
        head.caption(state, width="content")
    head.caption(f"since {moment(row['first_ts'])}", width="content")
    st.markdown(f"**{plain(row['headline'])}**")


def draw_words(row: dict[str, Any]) -> None:
    """Draw its impact, what to do now, the fix, and the confidence."""
    draw_text(row["impact"])
    st.markdown(f"**Now.** {prose(row['immediate_action'])}")
    st.markdown(f"**Fix.** {prose(row['remediation'])}")
    st.caption(f"**{row['confidence'].capitalize()}.** {prose(row['reasoning'])}")


def _people(row: dict[str, Any]) -> None:
    named = [f"{label}: {name}" for label, name in (("Source", row["source"]), ("Affected", row["affected"])) if name]
    if named:
        draw_text(*named)


def _links(row: dict[str, Any]) -> None:
    with st.container(horizontal=True):
        link("incident", "What happened", "troubleshoot", incident=row["incident_id"])
        if row["topic"] is not None and row["partition"] is not None:
            link(
                "partitions", "Offsets over time", "stacked_line_chart", cluster=row["cluster"], group=row["group_id"],
                topic=row["topic"], partition=row["partition"],
            )  # fmt: skip
        link(
            "exchanges",
            f"Evidence of {pluralize(row['findings'], 'finding')}",
            "swap_horiz",
            incident=row["incident_id"],
        )
