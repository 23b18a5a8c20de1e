"""The page of latency: how quickly apis and commands were answered, and with which errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import streamlit as st

from pipeline.dashboard.queries import latency
from pipeline.dashboard.queries.latency import Asked, Row
from pipeline.dashboard.queries.scope import Scope
from pipeline.dashboard.web.format import between, code
from pipeline.dashboard.web.page_context import PageContext, choose, part, run, say_absent
from pipeline.dashboard.web.parts.draw_chart import draw_chart, is_dark
from pipeline.dashboard.web.parts.grid import Column
from pipeline.dashboard.web.parts.table import table
from pipeline.dashboard.web.pictures import latency_picture
from pipeline.dashboard.web.pictures.traffic_picture import traffic
from pipeline.terminal.console import printable

_ANY = "any"
_ROWS: tuple[Row, ...] = ("api", "broker", "client")
_KEYS = ("api", "server", "client")

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
    Column("longest_wait_us", "longest wait, ms", "ms", "Behind earlier requests of the same connection."),
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


_OF_EVERY_START = frozenset({
    ("JoinGroup", "MEMBER_ID_REQUIRED"), ("FindCoordinator", "COORDINATOR_NOT_AVAILABLE"),
    ("Metadata", "LEADER_NOT_AVAILABLE"), ("ApiVersions", "UNSUPPORTED_VERSION"),
    ("Heartbeat", "REBALANCE_IN_PROGRESS"), ("Fetch", "FETCH_SESSION_ID_NOT_FOUND"),
})  # fmt: skip
"""Errors that clients get as they start and answer by themselves: shown fainter."""


def draw(here: PageContext) -> None:
    """Draw the page."""
    latency.demand_few(here.connection, here.scope)
    apis = latency.apis(here.connection, here.scope)
    if not apis:
        st.info(f"Nothing was asked from {between(here.scope.start, here.scope.end)}.")
        return
    asked = _asked(here, apis)
    if asked is not None:
        part(lambda: _over_time(here, asked))
        part(lambda: _heat_by(here, asked))
    st.header("All apis and commands", anchor=False)
    st.caption(
        "From the last byte of the request to the first byte of the response. A server answers the requests of one "
        "connection in order, so waiting behind an earlier request, such as a long poll, is not included: it has a "
        "column of its own. A Fetch, and some of MongoDB's commands, wait by design for something to happen."
    )
    table(apis, _APIS, name="All apis and commands", to=lambda row: ("exchanges", {"api": row["api_name"]}))
    part(lambda: _errors(here))


def _asked(here: PageContext, apis: list[dict[str, Any]]) -> Asked | None:
    """What is chosen: an api or command, and of those that ask for it a broker and a client.

    None: the address names one that is not there, which the page states.
    """
    names = _names(apis)
    boxes = st.columns([2, 1, 1])
    name = choose(boxes[0], "Api or command", "api", list(names), None, _KEYS)
    if name is None:
        say_absent(here, "latency", "api or command", "api", lambda whole: _names(latency.apis(here.connection, whole)))
        return None
    asked = Asked(names[name]["protocol"], names[name]["api_name"])
    of_both: tuple[tuple[str, str, Row], ...] = (
        ("Broker or server", "server", "broker"), ("Client", "client", "client"),
    )  # fmt: skip
    for box, (label, key, row) in zip(boxes[1:], of_both, strict=True):
        there = [_ANY, *latency.names(here.connection, here.scope, asked, row)]
        chosen = choose(box, label, key, there, None, _KEYS)
        if chosen is None:
            say_absent(
                here, "latency", f"{label.lower()} of {code(name)} named", key,
                partial(_names_of, here, asked, row),
            )  # fmt: skip
            return None
        asked = replace(asked, **{key: None if chosen == _ANY else chosen})
    return asked


def _names(apis: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {f"{row['api_name']} ({row['protocol']})": row for row in apis}


def _names_of(here: PageContext, asked: Asked, row: Row, whole: Scope) -> Sequence[str]:
    return latency.names(here.connection, whole, asked, row)


def _over_time(here: PageContext, asked: Asked) -> None:
    span = latency.span(here.connection, here.scope, asked)
    dark = is_dark()
    points = latency.over_time(here.connection, span, asked)
    before = latency.day_before(here.connection, span, asked)
    width, words = latency.step(span)
    api = printable(asked.api_name or "")
    name = code(api)
    st.markdown(
        f"**How long {name} took**: how many each {latency.step(span, latency.HEAT_BUCKETS)[1]}, "
        f"percentiles each {words}"
    )
    cells = latency.heat(here.connection, span, asked)
    draw_chart(
        latency_picture.heat(span, cells, points, before, dark=dark), key="heat",
        alt=f"How many exchanges of {api} took how long, and their percentiles, over time",
    )  # fmt: skip
    if before.num_rows:
        st.caption("Broad and faint: the percentiles of the same hours a day earlier.")
    else:
        st.caption("Of the same hours a day earlier there are no data.")
    st.markdown(f"**Answers to {name}**, each {words}")
    draw_chart(
        latency_picture.answers(span, points, width, dark=dark), key="answers",
        alt=f"Answers to {api} over time, with and without an error",
    )  # fmt: skip


def _heat_by(here: PageContext, asked: Asked) -> None:
    """Who is slow, and who is large? All apis, brokers or clients beside each other, of what is chosen above."""
    chosen = st.segmented_control(
        "99th percentile and traffic by", _ROWS, default=_ROWS[0], key="by", bind="query-params"
    )
    row = chosen or _ROWS[0]
    # By api, all of them; else those of the api that is chosen.
    of = Asked(server=asked.server, client=asked.client) if row == "api" else asked
    span = latency.span(here.connection, here.scope, of)
    cells = latency.heat_by(here.connection, span, of, row)
    if cells.num_rows:
        chart = latency_picture.heat_by(span, cells, row, dark=is_dark())
        draw_chart(chart, key="heat by", alt=f"99th percentile of latency by {row} over time")
    chart = traffic(span, latency.traffic_by(here.connection, span, of, row), row, dark=is_dark())
    st.markdown(f"**Traffic by {row}**, each {latency.step(span, latency.HEAT_BUCKETS)[1]}")
    draw_chart(chart, key="traffic by", alt=f"Bytes of requests and responses by {row} over time")


def _errors(here: PageContext) -> None:
    st.header("Errors", anchor=False)
    failed = latency.errors(here.connection, here.scope)
    if not failed:
        st.success("No error was answered in this time range.")
        return
    table(
        failed, _ERRORS, name="Errors", muted=lambda row: (row["api_name"], row["error_name"]) in _OF_EVERY_START,
        to=lambda row: ("exchanges", {"error": row["error_name"], "api": row["api_name"]}),
    )  # fmt: skip


run(draw)
