"""The page of exchanges: search, the evidence of a finding, and both bodies."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

import streamlit as st

from pipeline.dashboard.queries.overview.findings import finding
from pipeline.dashboard.queries.overview.incidents import findings_of, incident
from pipeline.dashboard.queries.terms import Term
from pipeline.dashboard.queries.traffic import exchanges
from pipeline.dashboard.queries.traffic.exchange_search import COLUMNS, Search, search, without_one
from pipeline.dashboard.web.format import code, moment, of_one_zone
from pipeline.dashboard.web.page_context import PageContext, draw_text, link, link_exactly, run
from pipeline.dashboard.web.parts.exchange_addresses import compare_address, in_address, moment_of, sequence_address
from pipeline.dashboard.web.parts.exchange_columns import EXCHANGE_COLUMNS
from pipeline.dashboard.web.parts.filters import ADDRESS_KEYS, LABELS, controls, facets
from pipeline.dashboard.web.parts.one_exchange import show_exchange
from pipeline.dashboard.web.parts.table import Address, table
from pipeline.dashboard.web.parts.table_terms import link_without
from pipeline.humanize import number, pluralize

_FURTHER_SECONDS = 10.0
"""How long a search that was asked to continue looks further back."""


def draw(here: PageContext) -> None:
    """Draw the page; the exchange that the address names comes above a search, and below evidence."""
    named = st.container()
    finding_id, incident_id = st.query_params.get("finding"), st.query_params.get("incident")
    if finding_id:
        rows = _evidence(here, finding_id)
    else:
        rows = _evidence_of_incident(here, incident_id) if incident_id else _found(here)
    if rows:
        is_search = not (finding_id or incident_id)
        table(rows, EXCHANGE_COLUMNS, name="Exchanges", key="", to=_opened, served=COLUMNS if is_search else None)
    exchange_id = st.query_params.get("exchange")
    is_evidence = bool(finding_id or incident_id)
    if exchange_id is None and is_evidence and rows:
        exchange_id = rows[0]["exchange_id"]
    times = {row["exchange_id"]: row["ts"] for row in rows}
    if exchange_id is None:
        return
    exchange = exchanges.one(here.connection, exchange_id, times.get(exchange_id))
    if exchange is None:
        st.info(f"There is no exchange {code(exchange_id)} in this lake; it may be older than the lake keeps.")
        return
    with named if not is_evidence else st.container():
        show_exchange(here.connection, exchange)


def _opened(row: dict[str, Any]) -> Address:
    """The same search or evidence with this exchange opened."""
    return "exchanges", {**st.query_params.to_dict(), "exchange": row["exchange_id"]}


def _evidence(here: PageContext, finding_id: str) -> list[dict[str, Any]]:
    """The exchanges that show a finding."""
    shown = finding(here.connection, finding_id)
    st.button("Search all exchanges instead", icon=":material/search:", on_click=_leave, args=("finding", "exchange"))
    if shown is None:
        st.info("There is no such finding in this lake, or not any more.")
        return []
    st.markdown(f"Evidence of **{shown['rule']}** {code(shown['subject'])}")
    draw_text(of_one_zone(shown)["summary"])
    rows = exchanges.by_ids(here.connection, shown["evidence"], shown["first_ts"], shown["last_ts"])
    if not rows:
        st.info("Its exchanges are older than the lake keeps.")
        return []
    link(
        "sequence", "Its connection as a sequence", "swap_vert",
        **sequence_address(rows[0]["exchange_id"], rows[0]["ts"]),
    )  # fmt: skip
    if len(rows) > 1:
        first, second = (row["exchange_id"] for row in rows[:2])
        link("compare", "Its first two side by side", "compare", **compare_address(second, first, rows[1]["ts"]))
    return rows


def _evidence_of_incident(here: PageContext, incident_id: str) -> list[dict[str, Any]]:
    """The exchanges that show the findings of an incident, of all of them."""
    shown = incident(here.connection, incident_id)
    st.button("Search all exchanges instead", icon=":material/search:", on_click=_leave, args=("incident", "exchange"))
    if shown is None:
        st.info("There is no such incident in this lake, or not any more.")
        return []
    found = findings_of(here.connection, shown)
    rules = ", ".join(dict.fromkeys(one.finding["rule"] for one in found))
    st.markdown(f"Evidence of {pluralize(len(found), 'finding')}: **{rules}**")
    draw_text(of_one_zone(shown)["headline"])
    ids = list(dict.fromkeys(name for one in found for name in one.finding["evidence"] or ()))
    rows = exchanges.by_ids(here.connection, ids, shown["first_ts"], shown["last_ts"]) if ids else []
    if not rows:
        st.info("Its exchanges are older than the lake keeps." if ids else "Its findings name no exchange.")
    return rows


def _leave(*names: str) -> None:
    for name in names:
        st.query_params.pop(name, None)


def _found(here: PageContext) -> list[dict[str, Any]]:
    wanted = controls(here)
    if wanted is None:
        return []
    before = moment_of(st.query_params.get("before"))
    seconds = {} if before is None else {"seconds": _FURTHER_SECONDS}
    found = search(here.connection, here.scope, wanted, before, **seconds)
    until = f" before {moment(before)}" if before else ""
    if found.rows:
        facets(found.facets)
        all_of = found.is_all and len(found.rows) == found.counted
        first = "" if all_of else f"The newest {number(len(found.rows))} of "
        since = "" if found.is_all else f" since {moment(found.counted_from)}, and older ones that were not counted"
        st.caption(f"{first}{pluralize(found.counted, 'exchange')}{since}{until}, the newest first.")
    elif found.is_all:
        st.info(f"No exchange matches in this time range{until}.")
        _dead_end(here, wanted)
    else:
        st.info(f"No exchange matches from {moment(found.counted_from)} on{until}; before that nothing was read yet.")
    _pages(found.older, before, "Older" if found.rows else "Search further back")
    return found.rows


def _dead_end(here: PageContext, wanted: Search) -> None:
    """Which filter could be dropped, with how many exchanges match then; or the time range."""
    here_now = st.query_params.to_dict()
    for one, count, is_all in without_one(here.connection, here.scope, wanted):
        how_many = f"{'' if is_all else 'at least '}{pluralize(count, 'exchange')}"
        if isinstance(one, Term):
            link_without("exchanges", wanted.terms, one, EXCHANGE_COLUMNS, how_many)
            continue
        left = {key: value for key, value in here_now.items() if key != ADDRESS_KEYS[one]}
        link_exactly("exchanges", f"Without {LABELS[one]}: {how_many}", **left)
    whole = replace(here.scope, start=here.oldest, end=here.newest)
    if whole != here.scope and search(here.connection, whole, wanted).counted:
        link_exactly("exchanges", "In the whole lake", **{**here_now, "range": "all"})


def _pages(older: datetime | None, before: datetime | None, label: str) -> None:
    left, right = st.columns(2)
    if before is not None:
        left.button("Newest", icon=":material/first_page:", on_click=_leave, args=("before", "exchange"))
    if older is not None:
        right.button(label, icon=":material/navigate_next:", on_click=_turn, args=(older,))


def _turn(older: datetime) -> None:
    _leave("exchange")
    st.query_params["before"] = in_address(older)


run(draw)
