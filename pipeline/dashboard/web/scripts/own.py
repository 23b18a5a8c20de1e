"""The page's own scripts: the browser knows each by its hash, and runs no other that is inline."""

from __future__ import annotations

from importlib.resources import files

import streamlit as st


def _script(name: str) -> str:
    return files("pipeline.dashboard.web.scripts").joinpath(f"{name}.js").read_text(encoding="utf-8")


COMPLETION, BRUSHES = _script("completion"), _script("brushes")
SCRIPTS = (COMPLETION, BRUSHES)


def run_script(script: str, before: str = "") -> None:
    """Have the browser run one of ``SCRIPTS``.

    Args:
        script: which.
        before: HTML of ours that it reads, which is not shown.
    """
    st.html(f"{before or '<div hidden></div>'}<script>{script}</script>", unsafe_allow_javascript=True)


def leave_brushes_unread() -> None:
    """Have nobody's screen reader come upon the areas that are dragged over a picture, which have no name."""
    run_script(BRUSHES)
