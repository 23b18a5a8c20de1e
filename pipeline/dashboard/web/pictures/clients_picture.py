"""Which client breaks on which release of Kafka, as an Altair chart: a row a client, a column a release."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt

from pipeline.dashboard.queries.clients import Verdict
from pipeline.dashboard.web.pictures.colours import palette, readable_on
from pipeline.dashboard.web.pictures.picture import data
from pipeline.terminal.console import printable

MOST = 60
"""Clients in one picture: those that break on most releases."""
_ROW, _ROOM, _LABEL = 24, 60, 320


def matrix(verdicts: Sequence[Verdict], *, dark: bool) -> alt.LayerChart:
    """The chart; a cell that is filled says how many versions of requests the release refuses.

    Args:
        verdicts: at least one; the first ``MOST`` are shown.
        dark: whether it is on a dark page.
    """
    colours = palette(dark=dark)
    breaks = colours.members[1]
    rows = [
        {
            "client": printable(one.client), "release": release, "refused": len(versions),
            "text": str(len(versions)) if versions else "answered", "versions": ", ".join(versions) or "none",
            "fill": breaks if versions else colours.background,
            "ink": readable_on(breaks) if versions else colours.others,
        }
        for one in verdicts[:MOST]
        for release, versions in one.refused.items()
    ]  # fmt: skip
    clients = list(dict.fromkeys(row["client"] for row in rows))
    releases = list(dict.fromkeys(row["release"] for row in rows))
    base = alt.Chart(data(rows)).encode(
        x=alt.X("release:O", title=None, scale=alt.Scale(domain=releases), axis=alt.Axis(orient="top", labelAngle=0)),
        y=alt.Y(
            "client:N",
            title=None,
            scale=alt.Scale(domain=clients),
            axis=alt.Axis(labelLimit=_LABEL, labelOverlap=False, labelFlush=False),
        ),
        tooltip=[
            alt.Tooltip("client:N", title="client"),
            alt.Tooltip("release:N", title="Kafka"),
            alt.Tooltip("versions:N", title="refuses"),
        ],
    )
    cells = base.mark_rect(stroke=colours.faint, strokeWidth=0.5).encode(
        fill=alt.Fill("fill:N", scale=None, legend=None)
    )
    words = base.mark_text(fontSize=11).encode(text="text:N", color=alt.Color("ink:N", scale=None, legend=None))
    return alt.layer(cells, words).properties(height=len(clients) * _ROW + _ROOM)
