"""The page of a search: groups, topics, clients, hosts, transactions and more that match, each with its page."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby

import streamlit as st

from pipeline.dashboard.queries.overview.further_names import (
    Found,
    at_offset,
    errors_seen,
    members_like,
    rules_like,
)
from pipeline.dashboard.queries.overview.incidents import incidents
from pipeline.dashboard.queries.overview.names import Name, ids_like, matching, names
from pipeline.dashboard.queries.traffic.exchanges import apis
from pipeline.dashboard.web.format import between, code, moment, of_one_zone, plain
from pipeline.dashboard.web.page_context import PageContext, link, run
from pipeline.dashboard.web.parts.addresses import address_of
from pipeline.humanize import number, pluralize

_TITLES = {
    "group": "Consumer groups", "topic": "Topics", "partition": "Partitions", "client": "Clients", "host": "Hosts",
    "transaction": "Transactional ids", "namespace": "MongoDB namespaces", "server": "Servers",
    "connection": "Connections", "exchange": "Exchanges",
}  # fmt: skip
_FURTHER = {
    "offset": "What was stated of this offset", "error": "Errors", "api": "Apis and commands", "rule": "Rules",
    "member": "Members",
}  # fmt: skip
_MOST_TEXT = 300
_FIRST, _MOST = 12, 200
"""Matches of a kind that are shown at once, and behind a click."""


def draw(here: PageContext) -> None:
    """Draw the page: what matches the name of the address."""
    text = (st.query_params.get("q") or "").strip()[:_MOST_TEXT]
    if not text:
        st.info(
            "Type a name above: of a group, member, topic, client, host, transaction, MongoDB namespace, connection, "
            "error, api, rule or KIP; or an offset, such as payments-2@24."
        )
        return
    found = matching(here.once(names), text) + ids_like(here.connection, here.scope, text)
    further = _further(here, text)
    wanted = text.casefold()
    troubles = [
        row
        for row in map(of_one_zone, incidents(here.connection, here.scope))
        if any(wanted in (row[part] or "").casefold() for part in ("headline", "source", "affected"))
    ]
    number_found = len(found) + len(further) + len(troubles)
    if not number_found:
        _nothing(here, text)
        return
    st.caption(f"{pluralize(number_found, 'match', 'matches')}, {between(here.scope.start, here.scope.end)}")
    if troubles:
        st.header("Incidents", anchor=False)
        for row in troubles:
            link("incident", plain(row["headline"]), "troubleshoot", incident=row["incident_id"])
    for kind, these in groupby(further, key=lambda one: one.kind):
        st.header(_FURTHER[kind], anchor=False)
        for one in these:
            _match_further(one)
    for kind, some in groupby(found, key=lambda name: name.kind):
        st.header(_TITLES[kind], anchor=False)
        _matches(list(some))


def _further(here: PageContext, text: str) -> list[Found]:
    """Errors, apis, rules, members and offsets that match, by kind."""
    wanted = text.casefold()
    return [
        *at_offset(here.connection, here.scope, text),
        *(one for one in here.once(errors_seen) if wanted in one.text.casefold()),
        *(Found("api", name) for name in here.once(apis) if wanted in name.casefold()),
        *rules_like(here.connection, here.scope, text),
        *members_like(here.connection, here.scope, text),
    ]


def _match_further(one: Found) -> None:
    count = "" if one.count is None else f", {pluralize(one.count, 'exchange')}"
    match one.kind:
        case "error":
            link("exchanges", f"{code(one.text)}{count}", "error", error=one.text)
        case "api":
            link("exchanges", code(one.text), "api", api=one.text)
        case "member":
            label = f"{code(one.text)} of group {plain(one.group_id or '')}"
            link("group", label, "person", group=one.group_id, cluster=one.cluster)
        case "offset":
            when = "" if one.ts is None else f", {moment(one.ts)}"
            link("exchanges", f"{code(one.text)}{when}", "swap_horiz", exchange=one.exchange_id)
        case _ if one.count:
            label = f"{code(one.text)}, {pluralize(one.count, 'finding')}"
            page, named = ("incident", {"incident": one.incident_id}) if one.incident_id else ("findings", {})
            link(page, label, "warning", **named)
        case _:
            st.caption(f"{code(one.text)}: no finding in this time range.")


def _nothing(here: PageContext, text: str) -> None:
    """Which of what limits the search hides the name; that it is nowhere, if none does."""
    st.info(f"No name has {code(text)} in it, from {between(here.scope.start, here.scope.end)}.")
    whole = replace(here.scope, start=here.oldest, end=here.newest)
    for label, icon, scope, dropped in (
        ("Found in the whole lake", "zoom_out", whole, {"range": "all"}),
        (
            "Found with both protocols",
            "filter_alt_off",
            replace(whole, protocol=None),
            {"range": "all", "protocol": ""},
        ),
    ):
        if scope != here.scope and matching(here.answers.once(names, here.connection, scope), text):
            link("search", label, icon, q=text, **dropped)
            return
    if here.scope.cluster:
        st.caption(f"The search is limited to cluster {code(here.scope.cluster)}: choose all clusters to search them.")
    else:
        st.caption("It is nowhere in this lake either.")


def _matches(found: list[Name]) -> None:
    """The first of one kind; the others open."""
    for name in found[:_FIRST]:
        _match(name)
    if more := found[_FIRST:]:
        with st.expander(f"{number(len(more))} more"):
            for name in more[:_MOST]:
                _match(name)
            if len(more) > _MOST:
                st.caption(f"The first {_MOST} of them: more of the name finds fewer.")


def _match(name: Name) -> None:
    page, icon, parameters = address_of(name)
    where = f" in {plain(name.cluster)}" if name.cluster and name.kind != "partition" else ""
    link(page, f"{code(name.text)}{where}", icon, **parameters)


run(draw)
