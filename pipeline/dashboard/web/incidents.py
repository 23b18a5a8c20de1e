"""How is an incident drawn? Its headline, how bad it is, what to do; what it rests on folds out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from pipeline.dashboard.web.here import link
from pipeline.dashboard.web.words import many, plain, prose

COLOURS = {"critical": "red", "warning": "orange", "info": "blue"}
ICONS = {"critical": ":material/error:", "warning": ":material/warning:", "info": ":material/info:"}
_STATES = {"closed": "over", "unknown": "may go on"}


def draw_incidents(rows: Sequence[dict[str, Any]]) -> None:
    """Draw incidents: in full what is not over, in a line that opens what is."""
    for row in rows:
        if row["state"] == "closed":
            with st.expander(f"over: {plain(row['headline'])}"):
                _incident(row)
        else:
            with st.container(border=True):
                draw_head(row)
                _incident(row)


def draw_head(row: dict[str, Any]) -> None:
    """Draw how severe it is, and its headline."""
    head = st.container(horizontal=True, vertical_alignment="center")
    head.badge(row["severity"], color=COLOURS.get(row["severity"], "gray"), icon=ICONS.get(row["severity"]))  # type: ignore[arg-type]
    if state := _STATES.get(row["state"]):
        head.caption(state, width="content")
    st.markdown(f"**{plain(row['headline'])}**")


def draw_words(row: dict[str, Any]) -> None:
    """Draw how bad it is, what to do now, what to mend, and how sure that is."""
    st.text(row["impact"])
    st.markdown(f"**Now.** {prose(row['do_now'])}")
    st.markdown(f"**Fix.** {prose(row['fix'])}")
    st.caption(f"**{row['certainty'].capitalize()}.** {prose(row['why'])}")


def _incident(row: dict[str, Any]) -> None:
    draw_words(row)
    with st.container(horizontal=True):
        link("incident", "What happened", "troubleshoot", incident=row["incident_id"])
        if row["topic"] is not None and row["partition"] is not None:
            link(
                "partitions", "Offsets over time", "stacked_line_chart", cluster=row["cluster"], group=row["group_id"],
                topic=row["topic"], partition=row["partition"],
            )  # fmt: skip
        link("exchanges", f"Evidence of {many(row['findings'], 'finding')}", "swap_horiz", finding=row["root_id"])
