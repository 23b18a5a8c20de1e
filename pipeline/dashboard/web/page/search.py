"""The page of a search: groups, topics, clients, hosts, transactions and more that match, each with its page."""

from __future__ import annotations

from itertools import groupby

import streamlit as st

from pipeline.dashboard.queries.overview.incidents import incidents
from pipeline.dashboard.queries.overview.names import Name, ids_like, matching, names
from pipeline.dashboard.web.format import between, code, of_one_zone, plain
from pipeline.dashboard.web.page_context import PageContext, link, run
from pipeline.dashboard.web.parts.addresses import address_of
from pipeline.humanize import number, pluralize

_TITLES = {
    "group": "Consumer groups", "topic": "Topics", "partition": "Partitions", "client": "Clients", "host": "Hosts",
    "transaction": "Transactional ids", "namespace": "MongoDB namespaces", "server": "Servers",
    "connection": "Connections", "exchange": "Exchanges",
}  # fmt: skip
_MOST_TEXT = 300
_FIRST, _MOST = 12, 200
"""Matches of a kind that are shown at once, and behind a click."""


def draw(here: PageContext) -> None:
    """Draw the page: what matches the name of the address."""
    text = (st.query_params.get("q") or "").strip()[:_MOST_TEXT]
    if not text:
        st.info("Type a name above: of a group, topic, client, host, transaction, MongoDB namespace, or a connection.")
        return
    found = matching(here.once(names), text) + ids_like(here.connection, here.scope, text)
    wanted = text.casefold()
    troubles = [
        row
        for row in map(of_one_zone, incidents(here.connection, here.scope))
        if any(wanted in (row[part] or "").casefold() for part in ("headline", "source", "affected"))
    ]
    if not found and not troubles:
        st.info(
            f"No name has {code(text)} in it, from {between(here.scope.start, here.scope.end)}. "
            "A longer time range, or both protocols, may know it."
        )
        return
    st.caption(
        f"{pluralize(len(found) + len(troubles), 'match', 'matches')}, {between(here.scope.start, here.scope.end)}"
    )
    if troubles:
        st.header("Incidents", anchor=False)
        for row in troubles:
            link("incident", plain(row["headline"]), "troubleshoot", incident=row["incident_id"])
    for kind, some in groupby(found, key=lambda name: name.kind):
        st.header(_TITLES[kind], anchor=False)
        _matches(list(some))


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
