"""What the capture lost over time: a row for each client, the darker the more."""

from __future__ import annotations

import altair as alt

from pipeline.dashboard.queries.overview.losses import Losses
from pipeline.dashboard.web.pictures.picture import data, name_axis, shade, time_axis
from pipeline.dashboard.web.zone import zoned
from pipeline.humanize import pluralize, size
from pipeline.terminal.console import printable

_ROW = 26
"""Pixels."""
_BUCKETS = 2
"""How wide a loss is, however short it was, so that it is seen."""


def losses_picture(shown: Losses, *, dark: bool) -> alt.Chart:
    """Losses as a chart.

    Args:
        shown: what was lost.
        dark: whether it is drawn on a dark background.
    """
    rows = [
        {**row, "until": row["began"] + _BUCKETS * shown.scope.bucket, "lost": size(row["bytes_lost"])}
        for row in shown.rows
    ]
    most = max(2, *(row["bytes_lost"] for row in rows))
    clients = len({row["client"] for row in rows})
    return (
        alt.Chart(data(rows))
        .transform_calculate(shown="max(datum.bytes_lost, 1)")
        .mark_rect(clip=True)
        .encode(
            x=time_axis(shown.scope, "began"),
            x2="until:T",
            y=alt.Y("client:N", title=None, axis=name_axis()),
            color=shade("shown:Q", "bytes lost", (1, most), dark=dark),
            tooltip=[
                alt.Tooltip("client:N", title="of"),
                alt.Tooltip("lost:N", title="lost"),
                alt.Tooltip("gaps:Q", title="in places", format=",d"),
                alt.Tooltip("began_text:N", title=zoned("from")),
            ],
        )
        .properties(height=_ROW * clients)
    )


def in_words(shown: Losses) -> str:
    """What the picture has in it, for those who do not see it, and for its caption."""
    lost, gaps = (sum(row[name] for row in shown.rows) for name in ("bytes_lost", "gaps"))
    clients = list(dict.fromkeys(row["client"] for row in shown.rows))
    return printable(f"{size(lost)} lost in {pluralize(gaps, 'place')}, of {', '.join(clients)}.")
