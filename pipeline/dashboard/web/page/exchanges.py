"""Which exchanges match, and what stands in one of them? Search, the evidence of a finding, and both bodies."""

from __future__ import annotations

from typing import Any

import streamlit as st

from pipeline.dashboard.queries import exchanges
from pipeline.dashboard.queries.exchanges import ANY_ERROR, MOST, Search
from pipeline.dashboard.queries.findings import finding
from pipeline.dashboard.web.grid import Column, grid
from pipeline.dashboard.web.here import Here, run
from pipeline.dashboard.web.one_exchange import show_exchange
from pipeline.dashboard.web.words import code, many, number

_EXCHANGES = (
    Column("ts", "time", "time"),
    Column("api_name", "api or command"),
    Column("api_version", "version", "number"),
    Column("client_id", "client"),
    Column("latency_us", "latency, ms", "ms"),
    Column("error_names", "errors", width="medium"),
    Column("status", "status"),
    Column("request_size", "request", "size"),
    Column("response_size", "response", "size"),
    Column("client", "from"),
    Column("server", "to"),
    Column("connection_id", "connection"),
    Column("exchange_id", "exchange"),
)
_STATUSES = ("paired", "unanswered", "no_response_expected", "orphan_response", "following_response")


def draw(here: Here) -> None:
    """Draw the page."""
    finding_id = st.query_params.get("finding")
    rows = _evidence(here, finding_id) if finding_id else _found(here)
    chosen = grid(rows, _EXCHANGES, key="exchanges", selectable=True) if rows else None
    exchange_id = rows[chosen]["exchange_id"] if chosen is not None else st.query_params.get("exchange")
    if exchange_id is None and finding_id and rows:
        exchange_id = rows[0]["exchange_id"]
    times = {row["exchange_id"]: row["ts"] for row in rows}
    if exchange_id is None:
        if rows:
            st.caption("Select a row to see its request and response.")
        return
    if chosen is not None:
        st.query_params["exchange"] = exchange_id
    exchange = exchanges.one(here.connection, exchange_id, times.get(exchange_id))
    if exchange is None:
        st.info(f"There is no exchange {code(exchange_id)} in this lake; it may be older than the lake keeps.")
        return
    show_exchange(here.connection, exchange)


def _evidence(here: Here, finding_id: str) -> list[dict[str, Any]]:
    """The exchanges that show a finding."""
    shown = finding(here.connection, finding_id)
    st.button("Search all exchanges instead", icon=":material/search:", on_click=_leave_finding)
    if shown is None:
        st.info("There is no such finding in this lake, or not any more.")
        return []
    st.markdown(f"Evidence of **{shown['rule']}** {code(shown['subject'])}")
    st.text(shown["summary"])
    rows = exchanges.by_ids(here.connection, shown["evidence"], shown["first_ts"], shown["last_ts"])
    if not rows:
        st.info("Its exchanges are older than the lake keeps.")
    return rows


def _leave_finding() -> None:
    for name in ("finding", "exchange"):
        st.query_params.pop(name, None)


def _found(here: Here) -> list[dict[str, Any]]:
    apis, errors = exchanges.names(here.connection, here.scope)
    first, second, third, fourth, fifth = st.columns([2, 2, 2, 2, 2])
    wanted = Search(
        api_name=first.selectbox("Api or command", apis, index=None, key="api", bind="query-params", placeholder="any"),
        client_id=second.text_input("Client id contains", key="client", bind="query-params") or None,
        error=third.selectbox(
            "Error", [ANY_ERROR, *errors], index=None, key="error", bind="query-params", placeholder="with or without"
        ),
        status=fourth.selectbox("Status", _STATUSES, index=None, key="status", bind="query-params", placeholder="any"),
        connection_id=(fifth.text_input("Connection", key="connection", bind="query-params") or "").strip() or None,
    )
    rows, total = exchanges.search(here.connection, here.scope, wanted)
    if not rows:
        st.info("No exchange matches in this time range.")
    elif total > MOST:
        st.caption(f"The newest {MOST} of {many(total, 'exchange')}: choose a shorter time range to see others.")
    else:
        st.caption(f"{number(total)} {'exchange' if total == 1 else 'exchanges'}, the newest first.")
    return rows


run(draw)
