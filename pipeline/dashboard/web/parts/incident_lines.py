"""Draws incidents as a list: a line each, which opens in place, and beside it a band of what grows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import streamlit as st

from pipeline.analysis.rules.kafka.records_behind import less_markers, less_others
from pipeline.analysis.rules.model import STATE_WORDS
from pipeline.dashboard.queries.overview.trends import Trend
from pipeline.dashboard.web.format import between, moment, plain
from pipeline.dashboard.web.page_context import draw_text
from pipeline.dashboard.web.parts.draw_chart import is_dark
from pipeline.dashboard.web.parts.incidents import COLOURS, ICONS, draw_links, draw_now, draw_people
from pipeline.dashboard.web.parts.story import draw_lines
from pipeline.dashboard.web.pictures.trend_picture import trend_picture
from pipeline.humanize import duration, number, pluralize
from pipeline.terminal.console import printable

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

LIST = "incidents"
"""Begin of the keys of lists, which the style names."""
_LINE, _OPENED = 26, 64
"""CSS pixels of a band: beside a line, and in what a line opens."""
_TRENDS = {
    "lag": ("Lag of {place}, records", "Records of this partition that the group has not committed"),
    "held back": ("Held back in {place}, records", "Records of this partition beyond the last stable offset"),
    "latency": ("Slowest answer, ms", "Of the exchanges that show it"),
    "times": ("Exchanges that show it", "So far"),
}
_ROW = f"[class*=st-key-{LIST}]"
_STYLE = f"""
{_ROW} [data-testid=stExpander] summary {{ padding-block: 0.45rem; }}
{_ROW} [data-testid=stExpander] summary p {{
  display: grid; grid-template-columns: auto minmax(0, 1fr); column-gap: 0.4rem; align-items: center; width: 100%;
}}
{_ROW} [data-testid=stExpander] summary [data-testid=stMarkdownContainer] {{ width: 100%; }}
{_ROW} [data-testid=stExpander] summary p > * {{ min-width: 0; }}
{_ROW} [data-testid=stExpander] summary p > :last-child {{ grid-column: 2; }}
{_ROW} [data-testid=stExpander] details:not([open]) summary p > * {{
  overflow: hidden; text-overflow: ellipsis; white-space: nowrap;
}}
@media not (min-width: 640px) {{
  {_ROW} [data-testid=stExpander] details:not([open]) summary p > * {{ white-space: normal; }}
}}
"""
"""A line is the headline, cut to one line until it is opened, and below it in small letters since when and how much."""


@dataclass(frozen=True, slots=True)
class Places:
    """Where what grows is drawn of an incident: beside its line, and in what the line opens."""

    beside: DeltaGenerator
    opened: DeltaGenerator


def draw_lines_of(rows: Sequence[dict[str, Any]], key: str = "") -> dict[str, Places]:
    """Draw a line for each incident; gives the places of what grows, by the id of the incident.

    Args:
        rows: of ``gold.incidents``.
        key: distinguishes several lists of a page.
    """
    places = {}
    st.html(f"<style>{_STYLE}</style>")
    with st.container(key=f"{LIST}{key}", gap="xsmall"):
        for row in rows:
            line, beside = st.columns([7, 1], gap="small", vertical_alignment="top")
            with line.expander(_label(row)):
                words, figure = st.columns([3, 1])
                with words:
                    draw_people(row)
                    draw_text(row["impact"])
                    draw_now(row)
                draw_lines(row)
                places[row["incident_id"]] = Places(beside.empty(), figure.empty())
                draw_links(row)
    return places


def _label(row: dict[str, Any]) -> str:
    """A line of Markdown: severity, headline, and in small letters the rest."""
    colour, icon = COLOURS.get(row["severity"], "gray"), ICONS.get(row["severity"], "")
    return f":{colour}[{icon}] **{plain(row['headline'])}** :small[{plain(about(row))}]"


def about(row: dict[str, Any]) -> str:
    """Severity, since when and how long, how many records, the state, and who is affected: in a line."""
    span = duration((row["last_ts"] - row["first_ts"]).total_seconds())
    is_over = row["state"] == "resolved"
    words = [row["severity"]]
    words.append(f"over since {moment(row['last_ts'])}" if is_over else f"since {moment(row['first_ts'])}")
    words.append(f"for {span}" if span else "")
    words.append(pluralize(row["records"], "record") if row["records"] else "")
    words.append("" if is_over else STATE_WORDS.get(row["state"]) or "")
    words.append(row["affected"] or row["source"] or "")
    return printable(" · ".join(one for one in words if one))


def draw_trend(places: Places, trend: Trend) -> None:
    """Draw what grows: a band beside the line, and the last value where it is opened; of latencies the greatest."""
    label, help_ = (text.format(place=plain(trend.place)) for text in _TRENDS[trend.kind])
    values = [value for _, value in trend.points]
    shown = max(values) if trend.kind == "latency" else values[-1]
    times = between(trend.points[0][0], trend.points[-1][0])
    words = f"{_TRENDS[trend.kind][0].format(place=printable(trend.place))}, {times}: {number(round(shown))}"
    with places.beside.container():
        st.html(trend_picture(trend, words, height=_LINE, dark=is_dark()))
    with places.opened.container():
        most = max((high for _, high in trend.band), default=max(values))
        st.metric(label, number(round(shown)), help=f"{help_}, {times}. Most: {number(round(most))}.")
        st.caption(f"As of {moment(trend.points[-1][0])}{_beside(trend)}")
        st.html(trend_picture(trend, words, height=_OPENED, dark=is_dark()))


def _beside(trend: Trend) -> str:
    """What distinguishes records from the offsets between them."""
    records = round(trend.points[-1][1])
    others = 0 if trend.offsets is None else trend.offsets - records
    return less_markers(records, others) if trend.kind == "held back" else less_others(records, others)
