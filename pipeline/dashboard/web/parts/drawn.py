"""How is what comes from elsewhere put on a page? Charts in the page's own theme, texts as what they are."""

from __future__ import annotations

from typing import Any

import streamlit as st

from pipeline.dashboard.web.pictures.picture import Chart, readable
from pipeline.terminal import printable


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


def draw_text(*lines: str | None) -> None:
    """Draw lines with names of the wire in them, as they are: nothing is read, and no character hides or turns one.

    Args:
        lines: texts; None: what an older release did not write.
    """
    st.text("\n".join(printable(line) for line in lines if line is not None))
