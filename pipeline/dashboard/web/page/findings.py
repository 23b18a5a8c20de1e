"""The page of findings: each in plain words, and the way to its evidence."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import streamlit as st

from pipeline.analysis.rules.model import STATE_WORDS
from pipeline.analysis.rules.rule import rule_named
from pipeline.dashboard.queries.overview.findings import MOST, counts, findings
from pipeline.dashboard.queries.overview.incidents import incident_counts
from pipeline.dashboard.web.format import between, code, moment, of_one_zone, plain, prose, seen
from pipeline.dashboard.web.page_context import PageContext, draw_text, link, run
from pipeline.dashboard.web.parts.exchange_addresses import sequence_address
from pipeline.dashboard.web.parts.incidents import COLOURS, ICONS
from pipeline.dashboard.web.parts.rules import rule_page, rule_title
from pipeline.humanize import pluralize

_OPENED = 3
"""Findings that are open when the page is drawn: the first, if they are critical."""
_FURTHER = {"transactions": ("Transactions", "lock_clock"), "clients": ("Clients", "devices")}
"""Of a page that says more its link: label and icon."""


def draw(here: PageContext) -> None:
    """Draw the page."""
    found = [of_one_zone(row) for row in findings(here.connection, here.scope)]
    if not found:
        st.success(
            f"No findings: nothing is wrong in what was seen from {between(here.scope.start, here.scope.end)}.",
            icon=":material/check_circle:",
        )
        return
    _metrics(counts(here.connection, here.scope))
    if how_many := sum(incident_counts(here.connection, here.scope).values()):
        link("home", f"What belongs together: {pluralize(how_many, 'incident')}", "emergency_home")
    if len(found) == MOST:
        st.caption(f"The first {MOST} are shown: choose a shorter time range to see others.")
    holds = [row for row in found if row["state"] != "resolved"]
    over = [row for row in found if row["state"] == "resolved"]
    if not holds:
        st.success("Nothing is wrong any more at the end of this data.", icon=":material/check_circle:")
    for index, (rule, rows) in enumerate(groupby(holds, key=lambda row: (row["severity"], row["rule"]))):
        _rule(*rule, list(rows), opened=index < _OPENED and rule[0] == "critical")
    if over:
        st.header("Resolved", anchor=False, help="Within this time range, and no longer ongoing when the capture ends.")
        for rule, rows in groupby(over, key=lambda row: (row["severity"], row["rule"])):
            _rule(*rule, list(rows), opened=False)


def _metrics(numbers: dict[str, int]) -> None:
    columns = st.columns(4)
    labels = {"critical": "Critical", "warning": "Warnings", "info": "For information", "resolved": "Resolved"}
    for column, (name, label) in zip(columns, labels.items(), strict=True):
        column.metric(label, numbers[name], border=True)


def _rule(severity: str, rule: str, rows: list[dict[str, Any]], *, opened: bool) -> None:
    """All findings of one rule: the name of the rule once, a line each that opens."""
    with st.container(border=True):
        head = st.container(horizontal=True, vertical_alignment="center")
        head.badge(severity, color=COLOURS.get(severity, "gray"), icon=ICONS.get(severity))  # type: ignore[arg-type]
        head.markdown(f"**{plain(rule_title(rule))}**", width="content", help=code(rule))
        if len(rows) > 1:
            head.caption(pluralize(len(rows), "finding"), width="content")
        if page := rule_page(rule):
            with head.popover("What does it mean?", type="tertiary"):
                st.markdown(page)
        for row in rows:
            since = (
                f"since {moment(row['first_ts'])}"
                if row["state"] == "ongoing"
                else seen(row["first_ts"], row["last_ts"])
            )
            since += f", {STATE_WORDS['unknown']}" if row["state"] == "unknown" else ""
            with st.expander(f"{code(row['subject'])} {since}", expanded=opened and len(rows) <= _OPENED):
                _finding(row)


def _finding(row: dict[str, Any]) -> None:
    draw_text(row["summary"])
    st.markdown("**What to do**")
    st.markdown(prose(row["advice"]))
    st.caption(f"Seen {seen(row['first_ts'], row['last_ts'])}. Cluster {code(row['cluster'])}")
    links = st.container(horizontal=True)
    with links:
        if row["evidence"]:
            link(
                "exchanges",
                f"Evidence: {pluralize(len(row['evidence']), 'exchange')}",
                "swap_horiz",
                finding=row["finding_id"],
            )
            address = sequence_address(row["evidence"][0], row["first_ts"])
            link("sequence", "Its connection as a sequence", "swap_vert", **address)
        if row["topic"] is not None and row["partition"] is not None:
            link(
                "partitions", "Offsets over time", "stacked_line_chart", cluster=row["cluster"], group=row["group_id"],
                topic=row["topic"], partition=row["partition"],
            )  # fmt: skip
        if row["incident_id"] is not None:
            link("incident", "Its incident", "troubleshoot", incident=row["incident_id"])
        if further := rule_named(row["rule"]).shown_by.further:
            link(further, *_FURTHER[further])


run(draw)
