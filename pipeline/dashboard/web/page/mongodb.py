"""The page of MongoDB: what applications ask, what is slow, what fails, and who leaves cursors open."""

from __future__ import annotations

from typing import Any

import streamlit as st

from pipeline.dashboard.queries import latency, mongodb
from pipeline.dashboard.queries.latency import Asked
from pipeline.dashboard.web.format import between
from pipeline.dashboard.web.page_context import PageContext, part, run
from pipeline.dashboard.web.parts.draw_chart import draw_chart, is_dark
from pipeline.dashboard.web.parts.grid import Column
from pipeline.dashboard.web.parts.table import table
from pipeline.dashboard.web.pictures import latency_picture

_APPLICATIONS = (
    Column("application", "application", help="appName of its handshake."),
    Column("commands", "commands", "number"),
    Column("errors", "failed", "number"),
    Column("connections", "connections", "number"),
    Column("drivers", "driver"),
    Column("hosts", "from"),
    Column("first_ts", "first seen", "time"),
    Column("last_ts", "last seen", "time"),
)
_COMMANDS = (
    Column("application", "application"),
    Column("command", "command"),
    Column("namespace", "namespace"),
    Column("commands", "commands", "number"),
    Column("errors", "failed", "number"),
    Column("unanswered", "unanswered", "number"),
    Column("p50_us", "p50, ms", "ms", "Of those that do not wait by design, as for new data of a tailable cursor."),
    Column("p99_us", "p99, ms", "ms"),
    Column("max_us", "longest, ms", "ms"),
    Column("documents_in", "documents in", "number"),
    Column("documents_out", "documents out", "number"),
)
_CURSORS = (
    Column("application", "application"),
    Column("opened", "opened", "number"),
    Column("exhausted", "read to the end", "number"),
    Column("killed", "killed", "number", "By killCursors, as drivers do when a loop is left early."),
    Column("failed", "failed", "number", "The last getMore was answered with an error."),
    Column("open", "open", "number", "No end was seen in this time range."),
    Column("longest_open", "the longest for", "duration"),
    Column("opened_before", "opened before", "number", "Only reads were seen."),
)
_OPEN = (
    Column("application", "application"),
    Column("namespace", "namespace"),
    Column("command", "opened by"),
    Column("seconds", "open for", "duration", "Up to the end of the time range."),
    Column("reads", "reads", "number", "getMore."),
    Column("opened_ts", "opened", "time"),
    Column("read_ts", "last read", "time"),
    Column("server", "server"),
    Column("cursor", "cursor"),
)
_SLOW = (
    Column("ts", "time", "time"),
    Column("latency_us", "took, ms", "ms"),
    Column("application", "application"),
    Column("command", "command"),
    Column("namespace", "namespace"),
    Column("documents_out", "documents", "number"),
    Column("response_size", "reply", "size"),
    Column("client", "client"),
    Column("server", "server"),
)
_ERRORS = (
    Column("error_name", "error"),
    Column("application", "application"),
    Column("command", "command"),
    Column("namespace", "namespace"),
    Column("commands", "commands", "number"),
    Column("write_errors", "failed writes", "number"),
    Column("first_ts", "first", "time"),
    Column("last_ts", "last", "time"),
)


def draw(here: PageContext) -> None:
    """Draw the page."""
    if not here.scope.has("mongodb"):
        st.info("These are MongoDB's commands: choose MongoDB, or no protocol.")
        return
    applications = mongodb.applications(here.connection, here.scope)
    if not applications:
        st.info(f"MongoDB was asked nothing from {between(here.scope.start, here.scope.end)}.")
        return
    table(applications, _APPLICATIONS, name="Applications")
    part(lambda: _latency(here))
    st.header("Commands", anchor=False)
    table(mongodb.commands(here.connection, here.scope), _COMMANDS, name="Commands")
    part(lambda: _cursors(here))
    st.header("Slowest", anchor=False)
    _chosen(mongodb.slow(here.connection, here.scope), _SLOW, "slow", "No command was answered in this time range.")
    st.header("Errors", anchor=False)
    _chosen(mongodb.errors(here.connection, here.scope), _ERRORS, "errors", "No command failed in this time range.")


def _latency(here: PageContext) -> None:
    asked = Asked("mongodb")
    span = latency.span(here.connection, here.scope, asked)
    cells = latency.heat_by(here.connection, span, asked, "api")
    if cells.num_rows:
        st.markdown("**99th percentile of latency by command**")
        chart = latency_picture.heat_by(span, cells, "api", dark=is_dark())
        draw_chart(chart, key="heat", alt="99th percentile of latency by command over time")


def _cursors(here: PageContext) -> None:
    st.header("Cursors", anchor=False)
    found = mongodb.cursors(here.connection, here.scope)
    if not found:
        st.info("No cursor stayed open after its first reply.")
        return
    table(found, _CURSORS, name="Cursors")
    open_ = mongodb.open_cursors(here.connection, here.scope)
    if open_:
        st.markdown("**Open at the end**")
        _chosen(open_, _OPEN, "open", "")


def _chosen(rows: list[dict[str, Any]], columns: tuple[Column, ...], key: str, nothing: str) -> None:
    """A table, and the way from a row of it to its exchange."""
    if not rows:
        st.success(nothing)
        return
    table(rows, columns, name=key, to=lambda row: ("exchanges", {"exchange": row["exchange_id"]}))


run(draw)
