"""Draws the findings of an incident: one by one below their cause, and many that are alike as one table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import Any

import streamlit as st

from pipeline.analysis.rules.case.entities import details_of
from pipeline.dashboard.queries.overview.incidents import IncidentFinding, software_of
from pipeline.dashboard.web.format import code, plain
from pipeline.dashboard.web.page_context import PageContext, draw_text, link, part
from pipeline.dashboard.web.parts.exchange_addresses import sequence_address
from pipeline.dashboard.web.parts.grid import Column
from pipeline.dashboard.web.parts.rules import rule_title
from pipeline.dashboard.web.parts.table import table
from pipeline.humanize import pluralize

ALIKE = 3
"""From this many on, findings of one rule and one cause are a table."""
_COLUMNS = (
    Column("subject", "about"),
    Column("library", "library"),
    Column("versions", "versions"),
    Column("first_ts", "first seen", "time"),
    Column("last_ts", "last seen", "time"),
    Column("exchanges", "evidence", "number", "Exchanges that show it."),
)
_SUMMARY = Column("summary", "seen", width="large")


def draw_findings(here: PageContext, findings: Sequence[IncidentFinding]) -> None:
    """Draw them in their order.

    Args:
        here: what is looked at.
        findings: of an incident, the root first.
    """
    for rows in alike(findings):
        if len(rows) < ALIKE:
            for one in rows:
                part(partial(_finding, one))
        else:
            part(partial(_table, here, rows))


def alike(findings: Sequence[IncidentFinding]) -> Iterator[list[IncidentFinding]]:
    """Those of one rule that follow from the same, in their order; each of the others by itself."""

    def kind(one: IncidentFinding) -> tuple[object, ...]:
        return one.finding["rule"], one.depth, one.because

    order = {key: at for at, key in reversed(list(enumerate(map(kind, findings))))}
    for _, rows in groupby(sorted(findings, key=lambda one: order[kind(one)]), key=kind):
        yield list(rows)


def _heading(one: IncidentFinding, about: str) -> str:
    because = f" because {plain(one.because)}" if one.because else ""
    arrow = "↳ " if one.depth else ""
    return f"{arrow}**{plain(rule_title(one.finding['rule']))}** {about}{because}"


def _finding(one: IncidentFinding) -> None:
    """A finding, further right the further it is from the cause, with the way to its evidence."""
    box = st.container() if not one.depth else st.columns([one.depth, 24 - one.depth])[1]
    with box.container(border=True, gap="small"):
        st.markdown(_heading(one, code(one.finding["subject"])), help=code(one.finding["rule"]))
        draw_text(one.finding["summary"])
        if one.finding["evidence"]:
            with st.container(horizontal=True):
                link(
                    "exchanges", f"Evidence: {pluralize(len(one.finding['evidence']), 'exchange')}", "swap_horiz",
                    finding=one.finding["finding_id"],
                )  # fmt: skip
                address = sequence_address(one.finding["evidence"][0], one.finding["first_ts"])
                link("sequence", "Its connection as a sequence", "swap_vert", **address)


def _table(here: PageContext, rows: list[IncidentFinding]) -> None:
    first = rows[0]
    with st.container(border=True, gap="small"):
        st.markdown(_heading(first, f"{pluralize(len(rows), 'time')}"), help=code(first.finding["rule"]))
        shown = table_rows(rows, software_of(here.connection, [one.finding["subject"] for one in rows]))
        columns = [one for one in _COLUMNS if any(row[one.field] not in ("", None) for row in shown)]
        if not any(row["library"] or row["versions"] for row in shown):
            columns.insert(1, _SUMMARY)
        named = [{**row, "finding_id": one.finding["finding_id"]} for row, one in zip(shown, rows, strict=True)]
        table(named, columns, name="Similar findings", to=lambda row: ("exchanges", {"finding": row["finding_id"]}))


def table_rows(rows: Sequence[IncidentFinding], software: dict[tuple[str, str], list[str]]) -> list[dict[str, Any]]:
    """A row for each finding: what it is about, with which library and versions, and when it was seen.

    Args:
        rows: findings of one rule.
        software: as :func:`pipeline.dashboard.queries.overview.incidents.software_of`.
    """
    found = []
    for one in rows:
        finding, details = one.finding, details_of(one.finding)
        named = software.get((finding["cluster"], finding["subject"])) or [details.get("library") or ""]
        found.append({
            **{name: finding[name] for name in ("subject", "summary", "first_ts", "last_ts")},
            "library": ", ".join(filter(None, map(str, named))), "exchanges": len(finding["evidence"] or ()),
            "versions": ", ".join(map(str, details.get("apis") or [f"v{n}" for n in details.get("magics") or ()])),
        })  # fmt: skip
    return found
