"""The page of transactions: which are open, how long, and whose last stable offset they hold."""

from __future__ import annotations

from typing import Any

import streamlit as st

from pipeline.analysis.rules.kafka.records_behind import less_markers
from pipeline.dashboard.queries.progress import transactions
from pipeline.dashboard.web.format import clock, code, moment
from pipeline.dashboard.web.page_context import PageContext, link, part, run, say_absent
from pipeline.dashboard.web.parts.exchange_addresses import sequence_address
from pipeline.dashboard.web.parts.grid import Column
from pipeline.dashboard.web.parts.table import Address, table
from pipeline.humanize import duration, number, pluralize

_OPEN = (
    Column("transactional_id", "transactional id"),
    Column("open_seconds", "open for at least", "duration", "From its first request to the time in the next column."),
    Column("known_until", "as of", "time", "When its cluster was seen last, without a break: later nothing is known."),
    Column("partitions", "partitions"),
    Column("groups", "groups", help="Groups whose offsets it commits."),
    Column("records", "records", "number"),
    Column("client_id", "client"),
    Column("client", "address"),
    Column("producer_id", "producer id", "number"),
    Column("producer_epoch", "epoch", "number"),
    Column("first_ts", "began", "time"),
    Column("last_ts", "last request", "time"),
    Column("state", "state"),
    Column("cluster", "cluster"),
)
_ENDED = (
    Column("transactional_id", "transactional id"),
    Column("seconds", "was open for", "duration"),
    Column("state", "state"),
    Column("partitions", "partitions"),
    Column("groups", "groups"),
    Column("records", "records", "number"),
    Column("client_id", "client"),
    Column("first_ts", "began", "time"),
    Column("end_ts", "ended", "time"),
    Column("producer_id", "producer id", "number"),
    Column("producer_epoch", "epoch", "number"),
    Column("cluster", "cluster"),
)
_CARDS = 20
"""Held partitions that are described in words."""


def draw(here: PageContext) -> None:
    """Draw the page."""
    if not here.scope.has("kafka"):
        st.info("These are Kafka's transactions: choose Kafka, or no protocol.")
        return
    name = st.query_params.get("transaction")
    if name:
        st.markdown(f"Of the transactional id {code(name)} alone.")
        link("transactions", "All transactions", "lock_clock")
        if name not in transactions.names(here.connection, here.scope):
            say_absent(
                here, "transactions", "transactional id", "transaction",
                lambda whole: transactions.names(here.connection, whole),
            )  # fmt: skip
            return
    part(lambda: _held(here, name))
    st.header("Open", anchor=False)
    still_open = transactions.open_transactions(here.connection, here.scope, name)
    if still_open:
        table(still_open, _OPEN, name="Open transactions", to=_first)
    else:
        st.info(f"No transaction was open at {moment(here.scope.end)}.")
    st.header("Ended", anchor=False)
    ended = transactions.ended_transactions(here.connection, here.scope, name)
    if not ended:
        st.info("No transaction ended in this time range.")
        return
    aborted = sum(row["state"] in ("aborted", "aborting") for row in ended)
    most = (
        f"The {number(transactions.MOST)} longest"
        if len(ended) == transactions.MOST
        else pluralize(len(ended), "transaction")
    )
    st.caption(f"{most}, {number(aborted)} of them aborted; the longest first.")
    table(ended, _ENDED, name="Ended transactions", to=_first)


def _first(row: dict[str, Any]) -> Address:
    """The connection, from the request that begins the transaction."""
    return "sequence", sequence_address(row["first_exchange_id"], row["first_ts"])


def _held(here: PageContext, name: str | None) -> None:
    """Each partition whose readers of committed records wait, in words."""
    held = transactions.held_partitions(here.connection, here.scope, name)
    st.header("Partitions that are held back", anchor=False)
    if not held:
        who = f" by {code(name)}" if name else ": readers of committed records see all that was written"
        st.success(f"No last stable offset is held back{who}.")
        return
    for row in held[:_CARDS]:
        with st.container(border=True):
            partition = code(f"{row['topic']}-{row['partition']}")
            st.markdown(
                f"{partition} stays at {number(row['last_stable_offset'])} for at least "
                f"**{duration(row['held_seconds'])}**: {_culprit(row)} is open. "
                f"**{pluralize(row['records_held_back'], 'record')}**"
                f"{less_markers(row['records_held_back'], row['transaction_markers'])} up to "
                f"{number(row['high_watermark'])} wait for readers with `isolation.level=read_committed`."
            )
            st.caption(f"Since {clock(row['since'])}, last seen {moment(row['last_seen'])}")
            link(
                "partitions", "Offsets over time", "stacked_line_chart", cluster=row["cluster"], topic=row["topic"],
                partition=row["partition"],
            )  # fmt: skip
    if len(held) > _CARDS:
        st.caption(f"and {pluralize(len(held) - _CARDS, 'more partition')}")


def _culprit(row: dict[str, Any]) -> str:
    if row["transactional_id"] is not None:
        return f"the transaction {code(row['transactional_id'])} of {code(row['client_id'] or '')}"
    if row["producer_id"] is not None:
        return f"a transaction of producer {row['producer_id']}, whose transactional id was not seen,"
    return "a transaction whose producer was not seen"


run(draw)
