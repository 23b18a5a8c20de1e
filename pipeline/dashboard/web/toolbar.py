"""What is on every page: the search for a name, and the controls of what is looked at."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

import streamlit as st

from decoder.protocols import protocols
from pipeline.config.settings import load_settings
from pipeline.dashboard.clusters import clusters, show_only
from pipeline.dashboard.queries.scope import Extent, Scope, extent
from pipeline.dashboard.sql import Readable, connect_readable
from pipeline.dashboard.web.format import between, clock, moment, plain
from pipeline.dashboard.web.page_context import HERE, LAKE, TROUBLE, PageContext
from pipeline.dashboard.web.sticky_header import BAR, keep_bar_in_view
from pipeline.dashboard.web.zone import of_zone, whose_times, write_times_in, zone_name, zoned
from pipeline.errors import UserError
from pipeline.terminal.console import printable

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

FRESH_SECONDS = 60
"""A session reads the lake as it was when it looked; after so long the next click looks again."""
RANGES = ("last day", "last hour", "last 15 minutes", "last 7 days", "all", "from … to")
REFRESHES = {"off": 0, "every 10 s": 10, "every 30 s": 30, "every minute": 60, "every 5 minutes": 300}
PROTOCOLS = {protocol.title: name for name, protocol in protocols().items()}
LOCAL = "local"
_SPANS = {
    "last hour": timedelta(hours=1),
    "last 15 minutes": timedelta(minutes=15),
    "last 7 days": timedelta(days=7),
}
_SOUGHT, _TYPED, _SHOWN = "what is sought", "name that was typed", "name of the address"
_UNKNOWN = "cluster that is not there"
INCIDENT = "incident"
"""Path of the page whose heading is what it shows."""
SEARCH_PAGE = "page/search.py"


def top(title: str, *, is_heading: bool = True) -> None:
    """Draw the title of a page and the search, which leads to the page of what it finds; both stay in view.

    Args:
        title: of the page.
        is_heading: whether it is the page's heading; a page that has another names itself in small letters.
    """
    state, asked = st.session_state, st.query_params.get("q")
    if asked != state.get(_SHOWN):  # a link, or the browser's way back
        state[_SHOWN] = asked
        if asked is not None:
            state[_SOUGHT] = asked
    keep_bar_in_view()
    with st.container(key=BAR, horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        if is_heading:
            st.title(title, anchor=False, width="content")
        else:
            st.markdown(f"**{title}**", width="content")
        st.text_input(
            "Search for a name", key=_SOUGHT, on_change=_note_typed, label_visibility="collapsed", width=420,
            placeholder="Search: group, topic, client, host, transaction, …", icon=":material/search:",
        )  # fmt: skip


def follow_search() -> None:
    """Go to the page of what was typed, if it was: after the controls, which keep their place in the address."""
    typed = (st.session_state.pop(_TYPED, None) or "").strip()
    if typed:
        st.switch_page(SEARCH_PAGE, query_params={"q": typed})


def _note_typed() -> None:
    st.session_state[_TYPED] = st.session_state[_SOUGHT]


def choose_zone() -> None:
    """Write times as the address asks, before anything is drawn."""
    write_times_in(st.context.timezone if st.query_params.get("times") == LOCAL else None)


def sidebar() -> None:
    """Draw the controls that all pages share, and keep what they state for the page."""
    st.session_state.pop(HERE, None)
    with st.sidebar:
        chosen = st.selectbox("Time range", RANGES, key="range", bind="query-params") or RANGES[0]
        controls = st.container()
        which = st.container()
        protocol = st.segmented_control("Protocol", tuple(PROTOCOLS), key="protocol", bind="query-params")
        local = st.segmented_control("Times", ("UTC", LOCAL), key="times", bind="query-params", default="UTC") == LOCAL
        write_times_in(st.context.timezone if local else None)
        refresh = st.selectbox("Refresh", tuple(REFRESHES), key="refresh", bind="query-params") or "off"
        anew = st.button("Refresh now", icon=":material/refresh:")
        try:
            lake, taken = _lake_of_session(anew=anew or _is_due(REFRESHES[refresh]))
            show_only(lake.connection, None)
            there = lake.answers.once(extent, lake.connection)
            cluster = _cluster(lake, which)
        except UserError as error:
            st.session_state[TROUBLE] = str(error)
            return
        st.session_state[TROUBLE] = None
        if there is not None:
            with controls:
                scope = replace(_span(there, chosen), protocol=PROTOCOLS.get(protocol or ""), cluster=cluster)
            st.session_state[HERE] = PageContext(
                lake.connection, scope, there.first, there.last, taken, lake.unreadable, lake.answers
            )  # fmt: skip
            st.caption(between(scope.start, scope.end) if scope.start <= scope.end else "")
        st.caption(f"{whose_times()}  \nLake as of {clock(taken)}.")
    if seconds := REFRESHES[refresh]:
        _tick(seconds)


def _lake_of_session(*, anew: bool) -> tuple[Readable, datetime]:
    """The session's view of the lake, and when it was taken.

    Raises:
        UserError: there is no lake, or nothing of it can be read.
    """
    state = st.session_state
    if anew or "lake" not in state or time.time() - state.get("taken", 0.0) > FRESH_SECONDS:
        fresh = connect_readable(os.environ[LAKE], load_settings().sql)
        if "lake" in state:
            state["lake"].connection.close()
        state["lake"], state["taken"] = fresh, time.time()
    return state["lake"], datetime.fromtimestamp(state["taken"], timezone.utc)


def _is_due(seconds: int) -> bool:
    return seconds > 0 and time.time() - st.session_state.get("taken", 0.0) >= seconds - 1


def _tick(seconds: int) -> None:
    """Run the whole page again after ``seconds``."""

    @st.fragment(run_every=seconds)
    def again() -> None:
        if _is_due(seconds):
            st.rerun()

    again()


def _cluster(lake: Readable, place: DeltaGenerator) -> str | None:
    """Let somebody choose a cluster, if there are several, and limit the session's view of the lake to it.

    Raises:
        UserError: the address names one that is not there.
    """
    there = lake.answers.once(clusters, lake.connection)
    asked, chosen = st.query_params.get("only"), None
    if asked is not None and asked not in there:
        st.session_state[_UNKNOWN] = asked  # Streamlit takes it out of the address
    if len(there) > 1:
        chosen = place.selectbox(
            "Cluster", there, index=None, placeholder="all", key="only", bind="query-params", format_func=printable,
            on_change=_forget_unknown,
        )  # fmt: skip
    if chosen is None and (unknown := st.session_state.get(_UNKNOWN)) is not None:
        raise UserError(f"There is no cluster {unknown} in this lake. It has {', '.join(there) or 'none'}.")
    show_only(lake.connection, chosen)
    return chosen


def _forget_unknown() -> None:
    st.session_state.pop(_UNKNOWN, None)


def _span(there: Extent, chosen: str) -> Scope:
    match chosen:
        case "all":
            return Scope(there.first, there.last)
        case "from … to":
            return Scope(_moment("From", "from", there.last_day_first), _moment("To", "to", there.last))
        case name if name in _SPANS:
            return Scope(max(there.last - _SPANS[name], there.first), there.last)
        case _:
            return Scope(there.last_day_first, there.last)


def _moment(label: str, key: str, default: datetime) -> datetime:
    """A time that somebody wrote. In the address it has its zone, and without one it is UTC, whoever looks."""
    text = st.text_input(
        zoned(label), key=key, bind="query-params", placeholder=clock(default), on_change=_with_zone, args=(key,),
        help="e.g. 2026-11-21 04:46:00, or with its zone: 2026-11-21 04:46:00+00:00",
    )  # fmt: skip
    if not text:
        return default
    try:
        written = _read(text)
        return written.replace(tzinfo=timezone.utc) if written.tzinfo is None else written.astimezone(timezone.utc)
    except (ValueError, OverflowError):
        st.warning(f"Not a time: {plain(text)}. Write it as {moment(default)[:19]}.")
        return default


def _read(text: str) -> datetime:
    return datetime.fromisoformat(text.strip().replace("Z", "+00:00"))


def _with_zone(key: str) -> None:
    """Add the zone to a time that was typed without one while times are local; callbacks run before all else."""
    choose_zone()
    text = st.session_state.get(key) or ""
    try:
        written = _read(text)
    except ValueError:
        return
    if written.tzinfo is None and zone_name() != "UTC":
        st.session_state[key] = of_zone(written).isoformat(sep=" ")
