"""How quickly were apis and commands answered, and with which errors?"""

from __future__ import annotations

from typing import Any

import streamlit as st

from pipeline.dashboard.queries import latency
from pipeline.dashboard.web import latency_picture
from pipeline.dashboard.web.grid import Column, grid
from pipeline.dashboard.web.here import Here, choose, link, run
from pipeline.dashboard.web.words import between, code

_APIS = (
    Column("api_name", "api or command"),
    Column("protocol", "protocol"),
    Column("exchanges", "exchanges", "number"),
    Column("errors", "errors", "number"),
    Column("unanswered", "unanswered", "number"),
    Column("p50_us", "p50, ms", "ms"),
    Column("p95_us", "p95, ms", "ms"),
    Column("p99_us", "p99, ms", "ms"),
    Column("max_us", "longest, ms", "ms"),
    Column("bytes", "traffic", "size", "Requests and responses."),
)
_ERRORS = (
    Column("error_name", "error"),
    Column("api_name", "api or command"),
    Column("protocol", "protocol"),
    Column("exchanges", "exchanges", "number"),
    Column("clients", "clients", "number"),
    Column("some_clients", "among them"),
    Column("first_ts", "first", "time"),
    Column("last_ts", "last", "time"),
)


def draw(here: Here) -> None:
    """Draw the page."""
    latency.demand_few(here.connection, here.scope)
    apis = latency.apis(here.connection, here.scope)
    if not apis:
        st.info(f"Nothing was asked from {between(here.scope.start, here.scope.end)}.")
        return
    _over_time(here, apis)
    st.subheader("All apis and commands", anchor=False)
    st.caption(
        "From the last byte of the request to the first byte of the response. A Fetch, and some of MongoDB's commands, "
        "wait by design for something to happen."
    )
    grid(apis, _APIS, key="apis")
    _errors(here)


def _over_time(here: Here, apis: list[dict[str, Any]]) -> None:
    names = {f"{row['api_name']} ({row['protocol']})": row for row in apis}
    name = choose(st, "Api or command", "api", list(names), None, ("api",))
    row = names[name]
    span = latency.span(here.connection, here.scope, row["protocol"], row["api_name"])
    points = latency.over_time(here.connection, span, row["protocol"], row["api_name"])
    width, words = latency.step(span)
    left, right = st.columns(2)
    with left:
        st.markdown(f"**Latency of {code(row['api_name'])}**, each {words}")
        st.altair_chart(latency_picture.latency(span, points), key="percentiles")
    with right:
        st.markdown(f"**Answers to {code(row['api_name'])}**, each {words}")
        st.altair_chart(latency_picture.answers(span, points, width), key="answers")


def _errors(here: Here) -> None:
    st.subheader("Errors", anchor=False)
    failed = latency.errors(here.connection, here.scope)
    if not failed:
        st.success("No error was answered in this time range.")
        return
    chosen = grid(failed, _ERRORS, key="errors", selectable=True)
    if chosen is None:
        st.caption("Select a row to see its exchanges.")
        return
    link(
        "exchanges", "Exchanges with this error", "swap_horiz", error=failed[chosen]["error_name"],
        api=failed[chosen]["api_name"],
    )  # fmt: skip


run(draw)
