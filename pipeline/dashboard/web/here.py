"""What every page has: its session's connection, the span that is looked at, links that keep it, and its errors."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any, cast

import duckdb
import streamlit as st

from decoder.protocols import protocols
from pipeline.dashboard.queries.scope import Extent, Scope, extent
from pipeline.dashboard.sql import connect
from pipeline.dashboard.web.words import clock, plain
from pipeline.errors import UserError
from pipeline.settings import load_settings

LAKE = "WIRELAKE_LAKE"
"""The environment variable that names the lake."""
FRESH_SECONDS = 60
"""A session reads the lake as it was when it looked; after so long the next click looks again."""

RANGES = ("last day", "last hour", "last 15 minutes", "last 7 days", "all", "from … to")
REFRESHES = {"off": 0, "every 10 s": 10, "every 30 s": 30, "every minute": 60, "every 5 minutes": 300}
PROTOCOLS = {protocol.title: name for name, protocol in protocols().items()}
_SPANS = {
    "last hour": timedelta(hours=1),
    "last 15 minutes": timedelta(minutes=15),
    "last 7 days": timedelta(days=7),
}
_KEPT = ("range", "from", "to", "protocol", "refresh")
"""Parameters of the address that go with every link."""


@dataclass(frozen=True, slots=True)
class Here:
    """What is looked at in this run of the page."""

    connection: duckdb.DuckDBPyConnection
    scope: Scope


def lake_of_session(*, anew: bool) -> tuple[duckdb.DuckDBPyConnection, datetime]:
    """The session's view of the lake, and when it was taken.

    Raises:
        UserError: there is no lake.
    """
    state = st.session_state
    taken = state.get("taken", 0.0)
    if anew or "lake" not in state or time.time() - taken > FRESH_SECONDS:
        fresh = connect(os.environ[LAKE], load_settings().sql)
        if "lake" in state:
            state["lake"].close()
        state["lake"], state["taken"] = fresh, time.time()
    return state["lake"], datetime.fromtimestamp(state["taken"], timezone.utc)


def sidebar() -> None:
    """Draw the controls that all pages share, and keep what they state for :func:`run`."""
    st.session_state.pop("here", None)
    with st.sidebar:
        chosen = st.selectbox("Time range", RANGES, key="range", bind="query-params") or RANGES[0]
        controls = st.container()
        protocol = st.segmented_control("Protocol", tuple(PROTOCOLS), key="protocol", bind="query-params")
        refresh = st.selectbox("Refresh", tuple(REFRESHES), key="refresh", bind="query-params") or "off"
        anew = st.button("Refresh now", icon=":material/refresh:")
        try:
            connection, taken = lake_of_session(anew=anew or _is_due(REFRESHES[refresh]))
            there = extent(connection)
        except UserError as error:
            st.session_state["trouble"] = str(error)
            return
        st.session_state["trouble"] = None
        if there is not None:
            with controls:
                scope = _scope(there, chosen, PROTOCOLS.get(protocol or ""))
            st.session_state["here"] = Here(connection, scope)
            st.caption(f"{clock(scope.start)} to  \n{clock(scope.end)}")
        st.caption(f"All times are UTC.  \nLake as of {taken:%H:%M:%S}.")
    if seconds := REFRESHES[refresh]:
        _tick(seconds)


def _is_due(seconds: int) -> bool:
    return seconds > 0 and time.time() - st.session_state.get("taken", 0.0) >= seconds - 1


def _tick(seconds: int) -> None:
    """Run the whole page again after ``seconds``."""

    @st.fragment(run_every=seconds)
    def again() -> None:
        if _is_due(seconds):
            st.rerun()

    again()


def _scope(there: Extent, chosen: str, protocol: str | None) -> Scope:
    match chosen:
        case "all":
            return Scope(there.first, there.last, protocol)
        case "from … to":
            return Scope(
                _moment("From (UTC)", "from", there.last_day_first), _moment("To (UTC)", "to", there.last), protocol
            )
        case name if name in _SPANS:
            return Scope(max(there.last - _SPANS[name], there.first), there.last, protocol)
        case _:
            return Scope(there.last_day_first, there.last, protocol)


def _moment(label: str, key: str, default: datetime) -> datetime:
    text = st.text_input(
        label, key=key, bind="query-params", placeholder=clock(default), help="e.g. 2026-11-21 04:46:00"
    )
    if not text:
        return default
    try:
        moment = datetime.fromisoformat(text.strip().replace("Z", "+00:00"))
        return moment.replace(tzinfo=timezone.utc) if moment.tzinfo is None else moment.astimezone(timezone.utc)
    except (ValueError, OverflowError):
        st.warning(f"Not a time: {plain(text)}. Write it as {clock(default)}.")
        return default


def run(draw: Callable[[Here], None]) -> None:
    """Draw a page, or explain in plain words why there is nothing to draw."""
    if trouble := st.session_state.get("trouble"):
        st.error(plain(trouble))
        return
    here = cast("Here | None", st.session_state.get("here"))
    if here is None:
        st.info("This lake has no exchanges yet. They come with `wirelake stream --landing DIR --lake DIR`.")
        return
    if here.scope.start > here.scope.end:
        st.warning("The time range ends before it begins.")
        return
    try:
        draw(here)
    except UserError as error:
        st.info(plain(str(error)))


def choose(place: Any, label: str, key: str, options: Sequence[str], first: str | None, keys: Sequence[str]) -> str:
    """A box to choose from, whose choice stands in the address once somebody made it.

    Streamlit's own binding leaves out what is chosen at first, which here follows from the data and may be another one
    tomorrow. What nobody chose stays out: each change of the address is a step of the browser's way back.

    Args:
        place: where the box goes, e.g. a column.
        label: what is chosen.
        key: name in the address.
        options: not empty.
        first: what is chosen while the address states nothing, if it is one of them.
        keys: those of all boxes that belong together, whose choices go into the address with this one.
    """
    state, asked = st.session_state, st.query_params.get(key)
    is_new = asked != state.get(f"in address {key}")  # a link, or the browser's way back
    state[f"in address {key}"] = asked
    if asked in options and (is_new or key not in state):
        state[key] = asked
    elif state.get(key) not in options:
        state[key] = first if first in options else options[0]
    chosen: str = place.selectbox(label, options, key=key, on_change=put_in_address, args=(keys,))
    return chosen


def put_in_address(keys: Sequence[str]) -> None:
    """Put what is chosen in the boxes of these keys into the address."""
    for key in keys:
        if key in st.session_state:
            st.query_params[key] = st.session_state[f"in address {key}"] = st.session_state[key]


def fixed(scope: Scope) -> dict[str, str]:
    """Parameters of the address for exactly this span, whatever comes later."""
    return {
        "range": "from … to",
        "from": f"{scope.start:%Y-%m-%d %H:%M:%S.%f}",
        "to": f"{scope.end:%Y-%m-%d %H:%M:%S.%f}",
    }


def link(page: str, label: str, icon: str, **parameters: str | int | None) -> None:
    """A link to another page that keeps the time range and states what to show there.

    Args:
        page: name of its file, without ``.py``.
        label: what is clicked; ours, not the wire's.
        icon: a name of Material's icons.
        parameters: of its address; None: not set.
    """
    kept = {name: value for name in _KEPT if (value := st.query_params.get(name))}
    given = {name: str(value) for name, value in parameters.items() if value is not None}
    st.page_link(f"page/{page}.py", label=label, icon=f":material/{icon}:", query_params={**kept, **given})


def go(page: str, **parameters: str) -> None:
    """Go to another page and state what to show there; the controls keep the time range and put it into the address."""
    st.switch_page(f"page/{page}.py", query_params=parameters)


def look_at(scope: Scope) -> None:
    """Make this span the time range; for callbacks, which run before the controls are drawn."""
    times = fixed(scope)
    if st.session_state.get("range") != times["range"]:  # the boxes of both times, which keep the address, come anew
        st.query_params.update({name: times[name] for name in ("from", "to")})
    st.session_state.update(times)
