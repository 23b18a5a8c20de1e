"""The page of one connection's sequence: the exchange of the address, and those around it."""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import Any

import streamlit as st

from pipeline.dashboard.queries.traffic import exchanges
from pipeline.dashboard.queries.traffic.connections import life_of
from pipeline.dashboard.queries.traffic.sequence import Around, around
from pipeline.dashboard.queries.traffic.steps import sequence
from pipeline.dashboard.web.format import code, plain, seen
from pipeline.dashboard.web.page_context import PageContext, go, link, run
from pipeline.dashboard.web.parts.draw_chart import draw_chart, is_dark
from pipeline.dashboard.web.parts.exchange_addresses import compare_address, in_address, moment_of, sequence_address
from pipeline.dashboard.web.parts.exchange_columns import EXCHANGE_COLUMNS
from pipeline.dashboard.web.parts.table import Address, table
from pipeline.dashboard.web.parts.tcp_text import tcp_in_words
from pipeline.dashboard.web.pictures.sequence_picture import OPEN, in_words, sequence_picture


def draw(here: PageContext) -> None:
    """Draw the page."""
    asked = st.query_params.get("exchange")
    if asked is None:
        st.info("Open this page from an exchange, or from a finding's evidence.")
        return
    near = moment_of(st.query_params.get("near"))
    exchange = exchanges.one(here.connection, asked, near)
    if exchange is None:
        st.info(f"There is no exchange {code(asked)} in this lake; it may be older than the lake keeps.")
        return
    at = moment_of(st.query_params.get("at")) or exchange["ts"]
    part = around(here.connection, exchange["connection_id"], at)
    if not sequence(part.exchanges, []).steps:
        st.info("Nothing of this connection was seen around this time.")
        return
    life = life_of(here.connection, exchange["connection_id"], here.scope)
    _draw_part(part, exchange, life)
    if life is not None:
        st.caption(tcp_in_words(life))
    link(
        "exchanges", "Open the marked exchange, field by field", "data_object", exchange=asked,
        connection=exchange["connection_id"],
    )  # fmt: skip
    link("compare", "Compare it with the one of its api before it", "compare", **compare_address(asked, None, near))


def _draw_part(part: Around, exchange: dict[str, Any], life: dict[str, Any] | None) -> None:
    asked = exchange["exchange_id"]
    shown = sequence(
        part.exchanges, part.losses, life, is_first=part.earlier is None, is_last=part.later is None
    )  # fmt: skip
    in_text = in_words(shown, part.ends)
    span = seen(shown.steps[0].ts, shown.steps[-1].ts)
    st.caption(
        f"Connection {code(exchange['connection_id'])}. {plain(in_text)} Shown: {span}. Time runs down, not to scale."
    )
    _turns(part, asked, exchange["ts"])
    chart = sequence_picture(shown, part.ends, {asked}, dark=is_dark())
    key = f"sequence {hashlib.sha256(repr((asked, shown.steps[0].ts)).encode(errors='backslashreplace')).hexdigest()}"
    event = draw_chart(chart, key=key, on_select="rerun", selection_mode=OPEN, alt=in_text)
    if (clicked := event["selection"].get(OPEN)) and clicked[0]["exchange_id"]:
        _open(part, clicked[0]["exchange_id"])
    with st.expander("The same as a list"):
        rows = part.exchanges
        table(rows, EXCHANGE_COLUMNS, name="Exchanges of the connection", to=_complete)


def _complete(row: dict[str, Any]) -> Address | None:
    """Its page; of one whose other half is awaited there is none yet."""
    if row["status"] == "pending":
        return None
    return "exchanges", {"exchange": row["exchange_id"], "connection": row["connection_id"]}


def _open(part: Around, exchange_id: str) -> None:
    row = next(row for row in part.exchanges if row["exchange_id"] == exchange_id)
    if row["status"] == "pending":
        st.info("This exchange is not complete yet: its other half is awaited.")
        return
    go("exchanges", exchange=exchange_id, connection=row["connection_id"])


def _turns(part: Around, asked: str, ts: datetime) -> None:
    """Ways to what comes before and after."""
    left, middle, right = st.columns(3)
    for place, at, label, icon in (
        (left, part.earlier, "Earlier", "arrow_upward"), (right, part.later, "Later", "arrow_downward"),
    ):  # fmt: skip
        if at is not None:
            with place:
                link("sequence", label, icon, **sequence_address(asked, ts), at=in_address(at))
    if st.query_params.get("at"):
        with middle:
            link("sequence", "Back to the marked exchange", "my_location", **sequence_address(asked, ts))


run(draw)
