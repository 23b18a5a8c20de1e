"""The page of data quality: the last run of ``wirelake check``, of the whole lake, and how many failed in each."""

from __future__ import annotations

from shlex import quote

import streamlit as st

from pipeline.dashboard.queries import quality
from pipeline.dashboard.web.format import code, moment
from pipeline.dashboard.web.page_context import PageContext, lake_place, run
from pipeline.dashboard.web.parts.draw_chart import draw_chart, is_dark
from pipeline.dashboard.web.parts.grid import Column
from pipeline.dashboard.web.parts.table import table
from pipeline.dashboard.web.pictures.quality_picture import in_words, quality_picture
from pipeline.humanize import number, pluralize
from pipeline.lake.path_checks import is_of_diagnose

_FAILED = (
    Column("severity", "severity"),
    Column("table_name", "table"),
    Column("column_name", "column"),
    Column("message", "expected", width="large"),
    Column("rows_failed", "rows that fail", "number"),
    Column("rows_checked", "of", "number"),
    Column("failed_since", "fails since", "time"),
    Column("runs", "runs in which it did", "number"),
    Column("rows_sql", "SQL that lists those rows"),
)
_TABLES = (
    Column("table_name", "table"),
    Column("rows_checked", "rows", "number"),
    Column("expectations", "expectations", "number"),
    Column("critical", "critical ones that fail", "number"),
    Column("warnings", "others that fail", "number"),
)


def draw(here: PageContext) -> None:
    """Draw the page."""
    tables = quality.checked(here.connection)
    if not tables:
        st.info(_nothing_yet(lake_place()))
        return
    total = sum(row["expectations"] for row in tables)
    broken = quality.failed(here.connection)
    when = moment(max(row["run_time"] for row in tables))
    summary = f"Checked at {when}: {pluralize(total, 'expectation')} of {pluralize(len(tables), 'table')}"
    if broken:
        st.warning(f"{summary}; {number(len(broken))} fail.")
        table(broken, _FAILED, name="Failed")
    else:
        st.success(f"{summary}, and all hold.")
    if len(before := quality.runs(here.connection)) > 1:
        st.header("Runs", anchor=False)
        draw_chart(quality_picture(before, dark=is_dark()), alt=in_words(before))
        st.caption(in_words(before))
    st.header("Tables", anchor=False)
    table(tables, _TABLES, name="Tables")


def _nothing_yet(place: str) -> str:
    if is_of_diagnose(place):
        return "`wirelake diagnose` wrote this lake. Quality checks run on lakes of `wirelake stream` only."
    return f"No quality check has run on this lake. Run {code(f'wirelake check --lake {quote(place)}')}."


run(draw)
