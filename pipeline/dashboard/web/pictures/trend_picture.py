"""What grows, as a line without axes: it begins at zero, and the pointer shows times and values."""

from __future__ import annotations

from datetime import timedelta

import altair as alt

from pipeline.dashboard.queries.overview.trends import Trend
from pipeline.dashboard.queries.scope import Scope
from pipeline.dashboard.web.pictures.colours import palette
from pipeline.dashboard.web.pictures.picture import data, time_axis
from pipeline.dashboard.web.zone import zoned

_HEIGHT = 56


def trend_picture(trend: Trend, label: str, *, dark: bool) -> alt.LayerChart:
    """A trend as a chart.

    Args:
        trend: what grows.
        label: what it is.
        dark: whether it is drawn on a dark background.
    """
    colours = palette(dark=dark)
    times = [ts for ts, _ in trend.points]
    scope = Scope(times[0], max(times[-1], times[0] + timedelta(milliseconds=1)))
    base = alt.Chart(data([{"ts": ts, "value": value} for ts, value in trend.points])).encode(
        time_axis(scope, axis=False),
        alt.Y("value:Q", axis=None, scale=alt.Scale(zero=True, nice=False)),
        tooltip=[
            alt.Tooltip("ts_text:N", title=zoned("time")),
            alt.Tooltip("value:Q", title=label, format=",.0f"),
        ],
    )
    filled = base.mark_area(interpolate="step-before", color=colours.faint, opacity=0.25)
    lined = base.mark_line(interpolate="step-before", color=colours.ink, strokeWidth=1.5)
    return (
        alt.layer(filled, lined)
        .properties(height=_HEIGHT, width="container", padding={"left": 0, "right": 0, "top": 2, "bottom": 2})
        .configure_view(strokeWidth=0)
    )
