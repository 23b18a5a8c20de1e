"""The page that compares two exchanges side by side, as they were sent and answered."""

from __future__ import annotations

from typing import Any

import orjson
import streamlit as st

from pipeline.analysis.descriptions import ProtocolDescribers, described
from pipeline.dashboard.queries.traffic import exchanges
from pipeline.dashboard.queries.traffic.differences import Difference, differences
from pipeline.dashboard.queries.traffic.sequence import exchange_before
from pipeline.dashboard.web.format import clock, code
from pipeline.dashboard.web.page_context import PageContext, draw_text, link, run
from pipeline.dashboard.web.parts.exchange_addresses import compare_address, moment_of, sequence_address
from pipeline.dashboard.web.parts.grid import Column
from pipeline.dashboard.web.parts.table import table
from pipeline.dashboard.web.zone import short_zone
from pipeline.humanize import duration, pluralize

_FIELDS = (
    Column("mark", "±", width="small", help="≠ differs, - only on the left, + only on the right"),
    Column("path", "field", width="large"),
    Column("left", "left", width="medium"),
    Column("right", "right", width="medium"),
    Column("change", "change", "number"),
)
_MARKS = {"same": "", "changed": "≠", "left only": "-", "right only": "+"}
_MOST = 2000
"""Fields that are shown."""
_MOST_BODY = 500_000
"""Characters of a body that is compared."""
_OF_EXCHANGE = (
    "api_name", "api_version", "status", "client_id", "latency_us", "request_size", "response_size", "correlation_id",
    "client_ip", "client_port", "server_ip", "server_port", "connection_id",
)  # fmt: skip


def draw(here: PageContext) -> None:
    """Draw the page."""
    asked, near = st.query_params.get("exchange"), moment_of(st.query_params.get("near"))
    if asked is None:
        st.info("Open this page from an exchange: it is compared with another one.")
        return
    right = exchanges.one(here.connection, asked, near)
    if right is None:
        st.info(f"There is no exchange {code(asked)} in this lake; it may be older than the lake keeps.")
        return
    other = (st.query_params.get("other") or "").strip() or exchange_before(here.connection, right)
    left = None if other is None else exchanges.one(here.connection, other, near)
    st.text_input(
        "Compare with the exchange", key="other", bind="query-params", placeholder=other or "its id",
        help="Its id; as long as there is none: the one of the same api before it on its connection.",
    )  # fmt: skip
    if left is None:
        what = "Its connection has no earlier exchange of this api within two hours." if other is None else "Not found."
        st.info(f"{what} Give the id of another one above.")
        return
    _heads(left, right)
    wants_all = st.toggle("Fields that are the same, too", key="same", bind="query-params")
    for title, one, two in _parts(left, right):
        _draw_part(title, differences(one, two), wants_all=wants_all)
    link("compare", "Turn round", "swap_horiz", **compare_address(left["exchange_id"], right["exchange_id"], near))


def _heads(left: dict[str, Any], right: dict[str, Any]) -> None:
    describers = ProtocolDescribers()
    for place, exchange, side in zip(st.columns(2), (left, right), ("Left", "Right"), strict=True):
        with place:
            st.markdown(f"**{side}**: {code(exchange['api_name'] or 'not known')} {code(exchange['exchange_id'])}")
            took = "no answer" if exchange["latency_us"] is None else duration(exchange["latency_us"] / 1e6)
            st.caption(f"{clock(exchange['ts'])}.{exchange['ts']:%f} {short_zone(exchange['ts'])}, {took}")
            draw_text(described(exchange, describers))
            link(
                "sequence", f"{side}: its connection as a sequence", "swap_vert",
                **sequence_address(exchange["exchange_id"], exchange["ts"]),
            )  # fmt: skip


def _parts(left: dict[str, Any], right: dict[str, Any]) -> list[tuple[str, Any, Any]]:
    both = (left, right)
    rows = [{name: one[name] for name in _OF_EXCHANGE} for one in both]
    for row, one in zip(rows, both, strict=True):
        row["errors"] = list(one["error_names"] or ())
    bodies = [(side, *(_body(one[f"{side}_body"]) for one in both)) for side in ("request", "response")]
    return [("The exchange", rows[0], rows[1]), *((side.capitalize(), *values) for side, *values in bodies)]


def _body(text: str | None) -> Any:
    if text is None:
        return {}
    if len(text) > _MOST_BODY:
        return {"length of the body, characters": len(text)}
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return {"text": text}


def _draw_part(title: str, found: list[Difference], *, wants_all: bool) -> None:
    differ = [one for one in found if one.kind != "same"]
    shown = (found if wants_all else differ)[:_MOST]
    st.header(title, anchor=False)
    st.caption(
        f"{pluralize(len(differ), 'field differs', 'fields differ')} of {len(found):,}." if found else "No fields."
    )
    if shown:
        table([_row(one) for one in shown], _FIELDS, name=f"Fields of {title}")


def _row(one: Difference) -> dict[str, Any]:
    return {
        "mark": _MARKS[one.kind], "path": one.path, "left": _value(one.left, one.kind == "right only"),
        "right": _value(one.right, one.kind == "left only"), "change": one.change,
    }  # fmt: skip


def _value(value: Any, is_absent: bool) -> str:
    return "" if is_absent else value if isinstance(value, str) else orjson.dumps(value, default=str).decode()


run(draw)
