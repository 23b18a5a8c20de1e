"""A search on the page: boxes whose values are in the address, and counts that narrow by a click."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from pipeline.config.durations import microseconds
from pipeline.dashboard.queries.traffic import exchanges
from pipeline.dashboard.queries.traffic.exchange_search import ANY_ERROR, COLUMNS, Search
from pipeline.dashboard.web.format import plain
from pipeline.dashboard.web.page_context import PageContext
from pipeline.dashboard.web.parts.table_terms import terms_here
from pipeline.humanize import number

_STATUSES = ("paired", "unanswered", "no_response_expected", "orphan_response", "following_response")
_KEYS = {"api_name": "api", "client_id": "client", "error": "error", "status": "status", "host": "host"}
_LABELS = {"api_name": "Api", "client_id": "Client", "error": "Error", "status": "Status", "host": "Server"}
ADDRESS_KEYS = {
    **_KEYS, "topic": "topic", "partition": "partition", "group_id": "group", "slower_than_us": "slower",
    "connection_id": "connection", "transactional_id": "transaction", "namespace": "namespace",
}  # fmt: skip
"""Of each attribute of a search its name in the address."""
LABELS = {
    "api_name": "api or command", "client_id": "client", "error": "error", "status": "status", "host": "host",
    "topic": "topic", "partition": "partition", "group_id": "group", "slower_than_us": "slower than",
    "connection_id": "connection", "transactional_id": "transactional id", "namespace": "MongoDB namespace",
}  # fmt: skip
"""And what a person calls it."""
_SELDOM = ("host", "slower", "status", "connection", "transaction", "namespace")
"""Of the address: what is behind a click while nothing is searched by it."""
_LONG = 40
"""Characters of a value that a count shows."""
_NAMES = "A name; `*` stands for anything, `?` for one character."


def controls(here: PageContext) -> Search | None:
    """Draw the boxes, and what they state; None: one states what cannot be searched by, which the page states."""
    often = st.columns(6)
    seldom = st.expander("More to search by", expanded=any(name in st.query_params for name in _SELDOM))
    with seldom:
        rows = [*st.columns(3), *st.columns(3)]
    unread: list[str] = []
    given: dict[str, Any] = {
        "topic": _text(often[0], "Topic", "topic", f"{_NAMES} Or a topic's id."),
        "partition": _number(_text(often[1], "Partition", "partition", "Its number."), unread),
        "group_id": _text(often[2], "Group", "group", _NAMES),
        "api_name": _choice(often[3], "Api or command", "api", exchanges.apis(here.connection, here.scope)),
        "client_id": _text(often[4], "Client id contains", "client", "In any case; or a name with `*` and `?`."),
        "error": _choice(often[5], "Error", "error", [ANY_ERROR, *st.session_state.get("errors seen", ())]),
        "host": _text(rows[0], "Host", "host", "An address, or one with its port, of client or server."),
        "slower_than_us": _slower(_text(rows[1], "Slower than", "slower", "E.g. 20ms or 1.5s."), unread),
        "status": _choice(rows[2], "Status", "status", _STATUSES),
        "connection_id": _text(rows[3], "Connection", "connection", "Its id, or how that begins."),
        "transactional_id": _text(rows[4], "Transactional id", "transaction", _NAMES),
        "namespace": _text(rows[5], "MongoDB namespace", "namespace", "A database, or `database.collection`."),
    }
    for sentence in unread:
        st.warning(sentence)
    return None if unread else Search(**given, terms=terms_here(COLUMNS))


def facets(counts: Mapping[str, Sequence[tuple[str, int]]]) -> None:
    """Draw what could narrow the search: of each kind the most frequent values, with how many matches have them."""
    st.session_state["errors seen"] = [value for value, _ in counts.get("error", ())]
    folded = st.expander("Narrow the results", icon=":material/filter_alt:")
    for name, values in counts.items():
        asked = st.session_state.get(_KEYS[name])
        if not values or (len(values) == 1 and name != "error") or (asked and asked != ANY_ERROR):
            continue
        labels = {value: f"{plain(_short(value))} · {number(count)}" for value, count in values}
        folded.pills(
            f"Narrow by {_LABELS[name].lower()}", list(labels), key=f"narrow {name}", format_func=labels.__getitem__,
            on_change=_narrow, args=(name,),
        )  # fmt: skip


def _narrow(name: str) -> None:
    st.session_state[_KEYS[name]] = st.session_state.pop(f"narrow {name}")
    for gone in ("before", "exchange"):
        st.query_params.pop(gone, None)


def _text(place: Any, label: str, key: str, more: str) -> str | None:
    return (place.text_input(label, key=key, bind="query-params", help=more, on_change=_anew) or "").strip() or None


def _choice(place: Any, label: str, key: str, options: Sequence[str]) -> str | None:
    """A box to choose from, in which a name may be written, too."""
    asked = st.session_state.get(key) or st.query_params.get(key)
    known = [*options] if asked is None or asked in options else [*options, asked]
    chosen: str | None = place.selectbox(
        label, known, index=None, key=key, bind="query-params", placeholder="any", on_change=_anew
    )
    return chosen


def _anew() -> None:
    """Another search begins with its first page."""
    st.query_params.pop("before", None)


def _number(text: str | None, unread: list[str]) -> int | None:
    if text is None or (text.isdecimal() and len(text) < 10):
        return None if text is None else int(text)
    unread.append(f"Not a partition's number: {plain(text)}.")
    return None


def _slower(text: str | None, unread: list[str]) -> int | None:
    found = None if text is None else microseconds(text)
    if text is not None and found is None:
        unread.append(f"Not a duration: {plain(text)}. Write it as 250us, 20ms or 1.5s.")
    return found


def _short(value: str) -> str:
    return value if len(value) <= _LONG else f"{value[:_LONG]}…"
