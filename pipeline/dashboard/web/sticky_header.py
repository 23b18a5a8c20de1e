"""Keeps the bar above each page in view while somebody scrolls, by a style of ours that names its container.

Where the window has room, title and search stay; on a phone the search alone, so that the page keeps its height. Both
are below Streamlit's header where that shows something, and what is jumped to, or gets the focus, comes to be below.
"""

from __future__ import annotations

import streamlit as st

from pipeline.dashboard.web.pictures.colours import DARK, LIGHT

BAR = "bar"
"""Key of the container."""
_PHONE = "640px"
"""From this width on, in CSS pixels, title and search are beside each other."""
_STAYS = f"""
  position: sticky; top: var(--below-header); z-index: 999980;
  padding: 0.5rem 0; margin: -0.5rem 0;
  background: Canvas; background: light-dark({LIGHT.background}, {DARK.background});
  box-shadow: 0 1px 0 light-dark({LIGHT.faint}55, {DARK.faint}55);
"""
_STYLE = f"""
body {{ --below-header: 0px; }}
body:has([data-testid=stHeader]:not(:empty)) {{ --below-header: 3.75rem; }}
[data-testid=stMain] {{ scroll-padding-top: calc(var(--below-header) + 4rem); }}
@media (min-width: {_PHONE}) {{
  [data-testid=stLayoutWrapper]:has(> .st-key-{BAR}) {{ {_STAYS} }}
}}
@media not (min-width: {_PHONE}) {{
  [data-testid=stLayoutWrapper]:has(> .st-key-{BAR}), .st-key-{BAR} {{ display: contents; }}
  .st-key-{BAR} > :last-child {{ {_STAYS} flex: none; width: 100%; }}
}}
"""


def keep_bar_in_view() -> None:
    """Have the browser keep the container ``BAR`` of the page's main part in view."""
    st.html(f"<style>{_STYLE}</style>")
