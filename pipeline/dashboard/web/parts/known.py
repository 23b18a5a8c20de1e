"""The names that this session knows: looked up once for each look at the lake, and for each span."""

from __future__ import annotations

from typing import cast

import streamlit as st

from pipeline.dashboard.queries.overview.names import Name, names
from pipeline.dashboard.web.here import Here

_KEY = "names that are known"


def names_here(here: Here) -> list[Name]:
    """All names of the span that is looked at."""
    of = here.taken, here.scope
    known = st.session_state.get(_KEY)
    if known is None or known[0] != of:
        known = st.session_state[_KEY] = (of, names(here.connection, here.scope))
    return cast("list[Name]", known[1])
