"""Which clients are there, with which software, and which of them break when the brokers become Kafka 4?"""

from __future__ import annotations

from typing import Any

import streamlit as st

from pipeline.dashboard.queries.clients import MOST, clients, counts, verdicts
from pipeline.dashboard.web.here import Here, run
from pipeline.dashboard.web.parts.drawn import draw_chart, is_dark
from pipeline.dashboard.web.parts.grid import Column, grid
from pipeline.dashboard.web.pictures.clients_picture import MOST as MOST_SHOWN
from pipeline.dashboard.web.pictures.clients_picture import matrix
from pipeline.dashboard.web.words import many

_BREAKING = (
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
    Column("breaks_on_kafka_4", "breaks on Kafka 4", "yes"),
    Column("api_versions", "uses"),
    Column("first_ts", "first seen", "time"),
    Column("last_ts", "last seen", "time"),
    Column("cluster", "cluster"),
)


def draw(here: Here) -> None:
    """Draw the page."""
    rows = clients(here.connection, here.scope)
    if not rows:
        st.info("No client was seen in this time range.")
        return
    numbers = counts(here.connection, here.scope)
    breaking = [row for row in rows if row["protocol"] == "kafka" and row["breaks_on_kafka_4"]]
    columns = st.columns(3)
    columns[0].metric("Break on Kafka 4", numbers["breaking"], border=True)
    columns[1].metric("Kafka clients", numbers["kafka"], border=True)
    columns[2].metric("MongoDB clients", numbers["mongodb"], border=True)
    if len(rows) == MOST:
        st.caption(f"The first {MOST} are shown: choose a shorter time range to see others.")
    if breaking:
        st.header("Break on the next upgrade", anchor=False)
        st.markdown(
            "Kafka 4 has removed these versions (KIP-896). Update the libraries first: kafka-clients 2.1 or later, "
            "librdkafka 1.0 or later, others of 2019 or later. A client that asked an old broker for its versions uses "
            "no newer ones than that broker has, and may well know them."
        )
        grid(breaking, _BREAKING, key="breaking")
    elif numbers["kafka"]:
        st.success(f"None of {many(numbers['kafka'], 'Kafka client')} uses a version that Kafka 4 has removed.")
    _matrix(rows)
    st.header("All", anchor=False)
    grid(rows, _ALL, key="clients")


def _matrix(rows: list[dict[str, Any]]) -> None:
    """On which releases they break; nothing if they break on none."""
    found = [one for one in verdicts(rows) if one.breaks]
    if not found:
        return
    st.header("What breaks on which release of Kafka", anchor=False)
    draw_chart(matrix(found, dark=is_dark()), key="matrix", alt="Which client breaks on which release of Kafka")
    more = f" The {MOST_SHOWN} that break on most." if len(found) > MOST_SHOWN else ""
    st.caption(f"A number: so many of the request versions that it uses get no answer from that release.{more}")


run(draw)
