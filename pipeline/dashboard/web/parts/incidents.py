"""Draws an incident: its headline, its source, who is affected, what to do, where to look."""

from __future__ import annotations

from typing import Any

import streamlit as st

from pipeline.analysis.rules.model import STATE_WORDS
from pipeline.dashboard.web.format import moment, prose
from pipeline.dashboard.web.page_context import draw_text, link
from pipeline.humanize import pluralize

COLOURS = {"critical": "red", "warning": "orange", "info": "blue"}
ICONS = {"critical": ":material/error:", "warning": ":material/warning:", "info": ":material/info:"}


def draw_state(row: dict[str, Any]) -> None:
    """Draw how severe it is, whether it is over, and since when it is so, into a row."""
    st.badge(row["severity"], color=COLOURS.get(row["severity"], "gray"), icon=ICONS.get(row["severity"]))  # type: ignore[arg-type]
    if state := STATE_WORDS.get(row["state"]):
        st.caption(state, width="content")
    st.caption(f"since {moment(row['first_ts'])}", width="content")


def draw_now(row: dict[str, Any]) -> None:
    """Draw what stops the damage."""
    st.markdown(f"**Now.** {prose(row['immediate_action'])}")


def draw_people(row: dict[str, Any]) -> None:
    """Draw who causes it and who is affected, as far as they are named."""
    named = [f"{label}: {name}" for label, name in (("Source", row["source"]), ("Affected", row["affected"])) if name]
    if named:
        draw_text(*named)


def draw_links(row: dict[str, Any]) -> None:
    """Draw the ways from an incident in a list: to its page, its partition and its evidence."""
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
