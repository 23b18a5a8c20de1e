"""The page of TCP connections: who ended them, and in what state; with a search by address."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from pipeline.dashboard.queries.terms import Term
from pipeline.dashboard.queries.traffic.connections import COLUMNS, MOST, connections, counts
from pipeline.dashboard.web.page_context import PageContext, run
from pipeline.dashboard.web.parts.grid import Column
from pipeline.dashboard.web.parts.table import Address, table
from pipeline.dashboard.web.parts.table_terms import link_without, terms_here
from pipeline.humanize import number, pluralize

_COLUMNS = (
    Column("ended", "state", help="How it ended; open: nothing ended it in what was captured."),
    Column("client", "client"),
    Column("server", "server"),
    Column("first_ts", "since", "time"),
    Column("last_ts", "last packet", "time"),
    Column("lasted_s", "lasted", "duration"),
    Column("speaks", "speaks"),
    Column("requests", "requests", "number"),
    Column("unanswered", "unanswered", "number", "Requests without a response."),
    Column("client_bytes", "bytes of the client", "size", "TCP payload, what was sent again included."),
    Column("server_bytes", "bytes of the server", "size", "TCP payload, what was sent again included."),
    Column("sent_again", "sent again", "number", "Segments with data that either side sent once more."),
    Column("reset_by", "reset by"),
    Column("stalled_s", "did not read", "duration", "For how long a side had closed its receive window."),
    Column("silence_s", "longest silence", "duration"),
    Column("round_trip_us", "round trip (ms)", "ms", "From SYN to SYN-ACK."),
    Column("alert", "TLS alert"),
    Column("connections", "connections", "number", "More than one: of a flood or a scan, only counted."),
    Column("connection_id", "id"),
)


def draw(here: PageContext) -> None:
    """Draw the page."""
    left, right = st.columns([3, 1], vertical_alignment="bottom")
    asked = left.text_input(
        "Address", key="host", bind="query-params", help="Of a client or a server, with or without its port."
    )
    failed = right.toggle("Failed only", key="failed", bind="query-params")
    host = (asked or "").strip() or None
    numbers = counts(here.connection, here.scope, host)
    if not numbers["connections"]:
        st.info("No connection was seen in this time range." if host is None else "No connection has that address.")
        return
    for column, (name, title) in zip(
        st.columns(4),
        (("connections", "Connections"), ("failed", "Failed"), ("open", "Still open"), ("reset", "Reset")),
        strict=True,
    ):
        column.metric(title, number(numbers[name]), border=True)
    terms = terms_here(COLUMNS)
    rows = connections(here.connection, here.scope, host, failed=failed, terms=terms)
    if terms and not rows:
        _dead_end(here, terms, host, failed=failed)
        return
    if not rows:
        st.success("None of these connections failed.")
        return
    if len(rows) == MOST:
        st.caption(f"The last {number(MOST)} are shown: search by address, or choose a shorter time range.")
    table(rows, _COLUMNS, name="Connections", key="", to=_exchanges, served=COLUMNS)


def _dead_end(here: PageContext, terms: Sequence[Term], host: str | None, *, failed: bool) -> None:
    """Which term could be dropped, with how many connections match then."""
    st.info("No connection matches all of these filters.")
    for one in terms:
        rest = [term for term in terms if term != one]
        count = len(connections(here.connection, here.scope, host, failed=failed, terms=rest))
        if not count:
            continue
        at_least = "at least " if count == MOST else ""
        link_without("connections", terms, one, _COLUMNS, f"{at_least}{pluralize(count, 'connection')}")


def _exchanges(row: dict[str, Any]) -> Address | None:
    """What was exchanged on it, if anything was."""
    return ("exchanges", {"connection": row["connection_id"]}) if row["requests"] else None


run(draw)
