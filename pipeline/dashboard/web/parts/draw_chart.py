"""Puts a chart on a page, with words that can be read on the theme that the page has."""

from __future__ import annotations

from typing import Any

import streamlit as st

from pipeline.dashboard.web.pictures.picture import Chart, readable


def is_dark() -> bool:
    """Whether whoever looks has a dark page."""
    return st.context.theme.type == "dark"


def draw_chart(chart: Chart, *, alt: str, **how: Any) -> Any:
    """Draw a chart whose words can be read on the page.

    Args:
        chart: a whole one.
        alt: what it shows, for those who do not see it.
        how: as of ``st.altair_chart``.

    Returns:
        What was selected in it, if ``how`` asks for that.
    """
    return st.altair_chart(readable(chart, dark=is_dark()), alt=alt, **how)
