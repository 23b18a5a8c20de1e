"""The page of clients: with which software, and which of them break when the brokers become Kafka 4."""

from __future__ import annotations

from typing import Any

import streamlit as st

from pipeline.dashboard.queries.clients import MOST, clients, counts, verdicts
from pipeline.dashboard.web.page_context import PageContext, run
from pipeline.dashboard.web.parts.draw_chart import draw_chart, is_dark
from pipeline.dashboard.web.parts.grid import Column
from pipeline.dashboard.web.parts.table import Address, table
from pipeline.dashboard.web.pictures.clients_picture import MOST as MOST_SHOWN
from pipeline.dashboard.web.pictures.clients_picture import matrix
from pipeline.humanize import pluralize

_VERDICTS = {"breaks": "yes", "unknown": "not known"}
_BREAKING = (
    Column(
        "known", "breaks", help="Not known: it took the newest version that its broker has, and may know newer ones."
    ),
    Column("client_id", "client"),
    Column("client_ip", "address"),
    Column("removed_versions", "uses, and Kafka 4 has not"),
    Column("software", "software", help="As the client names itself (KIP-511); older ones do not."),
    Column("last_ts", "last seen", "time"),
    Column("cluster", "cluster"),
)
_ALL = (
    Column("client_id", "client", help="client_id of Kafka, appName of MongoDB."),
    Column("client_ip", "address"),
    Column("protocol", "protocol"),
    Column("software", "software"),
    Column("breaks_on_kafka_4", "uses versions removed in Kafka 4", "yes"),
    Column("api_versions", "uses"),
    Column("first_ts", "first seen", "time"),
    Column("last_ts", "last seen", "time"),
    Column("cluster", "cluster"),
)


def draw(here: PageContext) -> None:
    """Draw the page."""
    rows = clients(here.connection, here.scope)
    if not rows:
        st.info("No client was seen in this time range.")
        return
    numbers = counts(here.connection, here.scope)
    breaking = [
        {**row, "known": _VERDICTS.get(row["verdict"], "not known")}
        for row in rows
        if row["protocol"] == "kafka" and row["breaks_on_kafka_4"]
    ]
    columns = st.columns(3)
    columns[0].metric("Break on Kafka 4", numbers["breaking"], border=True)
    columns[1].metric("Kafka clients", numbers["kafka"], border=True)
    columns[2].metric("MongoDB clients", numbers["mongodb"], border=True)
    if len(rows) == MOST:
        st.caption(f"The first {MOST} are shown: choose a shorter time range to see others.")
    if breaking:
        st.header("Use versions that Kafka 4 has removed", anchor=False)
        st.markdown(
            f"By client id, {pluralize(numbers['breaking'], 'client breaks', 'clients break')} on Kafka 4 (KIP-896). "
            "Update the libraries first: kafka-clients 2.1 or later, librdkafka 1.0 or later, others of 2019 or later. "
            f"Of {pluralize(numbers['unknown'], 'more client')} it is not known: a client that asks its broker for "
            "versions "
            "uses no newer ones than an old broker has, and may know newer ones."
        )
        table(breaking, _BREAKING, name="Clients that use removed versions", to=_exchanges_of)
    elif numbers["kafka"]:
        st.success(f"None of {pluralize(numbers['kafka'], 'Kafka client')} uses a version that Kafka 4 has removed.")
    _matrix(rows)
    st.header("All", anchor=False)
    table(rows, _ALL, name="All clients", key="", to=_exchanges_of)


def _exchanges_of(row: dict[str, Any]) -> Address:
    return "exchanges", {"client": row["client_id"] or None, "host": row["client_ip"], "range": "all"}


def _matrix(rows: list[dict[str, Any]]) -> None:
    """On which releases they break; nothing if they break on none."""
    found = [one for one in verdicts(rows) if one.breaks]
    if not found:
        return
    st.header("Versions in use that a release of Kafka has removed", anchor=False)
    draw_chart(
        matrix(found, dark=is_dark()),
        key="matrix",
        alt="How many versions of each client each release of Kafka removed",
    )
    more = f" The {MOST_SHOWN} that break on most." if len(found) > MOST_SHOWN else ""
    st.caption(
        f"Number of request versions this client uses that the release no longer supports, by id and host.{more}"
    )


run(draw)
