"""The page's own scripts: the browser knows each by its hash, and runs no other that is inline."""

from __future__ import annotations

from html import escape
from importlib.resources import files

import streamlit as st


def _script(name: str) -> str:
    return files("pipeline.dashboard.web.scripts").joinpath(f"{name}.js").read_text(encoding="utf-8")


COMPLETION, BRUSHES, TABLES = _script("completion"), _script("brushes"), _script("tables")
_CROSSHAIR = _script("crosshair")
SCRIPTS = (COMPLETION, BRUSHES, TABLES, _CROSSHAIR)
TOGETHER = "crosshair"
"""Begin of the key of a container whose charts have one axis of time."""


def run_script(script: str, before: str = "") -> None:
    """Have the browser run one of ``SCRIPTS``.

    Args:
        script: which.
        before: HTML of ours that it reads, which is not shown.
    """
    st.html(f"{before or '<div hidden></div>'}<script>{script}</script>", unsafe_allow_javascript=True)


def leave_brushes_unread() -> None:
    """Keep screen readers from the areas that are dragged over a picture, which have no name."""
    run_script(BRUSHES)


def follow_pointer(from_ms: float, to_ms: float, zone: str) -> None:
    """Have a line at the pointer's time lead through all charts of a container whose key begins with ``TOGETHER``.

    Args:
        from_ms: begin of their axis of time, ms since the epoch.
        to_ms: its end.
        zone: in which times are written, as the IANA names it.
    """
    about = f'data-crosshair-from="{from_ms:.0f}" data-crosshair-to="{to_ms:.0f}" data-crosshair-zone="{escape(zone)}"'
    run_script(_CROSSHAIR, f"<div hidden {about}></div>")
