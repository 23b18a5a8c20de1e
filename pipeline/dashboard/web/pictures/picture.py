"""What all pictures share: rows as data of a chart, the axis of time, the margin left of a plot, and shades."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, TypeVar

import altair as alt
import pyarrow as pa

from pipeline.dashboard.queries.scope import Scope
from pipeline.dashboard.web.pictures.colours import palette
from pipeline.dashboard.web.zone import in_zone, scale_type, zone_name
from pipeline.terminal.console import printable

Chart = TypeVar("Chart", alt.Chart, alt.LayerChart, alt.VConcatChart)
_MARGIN = 120
"""Pixels left of a plot, for labels."""


def milliseconds(ts: datetime) -> float:
    """Since the epoch, as a chart takes times."""
    return ts.timestamp() * 1000


def time_text(ts: datetime) -> str:
    """Date and time to the millisecond, in the zone that is chosen."""
    return in_zone(ts).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]


def data(rows: Sequence[dict[str, Any]]) -> pa.Table:
    """Rows for a chart: times as ms since the epoch, each also as text in the zone that is chosen.

    A table of Arrow's, since Altair copies and checks each value of other data several times.
    """
    values = []
    for row in rows:
        plain: dict[str, Any] = {}
        for name, value in row.items():
            if isinstance(value, datetime):
                plain[name] = milliseconds(value)
                plain[f"{name}_text"] = time_text(value)
            else:
                plain[name] = printable(value) if isinstance(value, str) else value
        values.append(plain)
    return pa.Table.from_pylist(values)


def time_axis(scope: Scope, field: str = "ts", *, axis: bool = True) -> alt.X:
    """The horizontal axis, in the zone that is chosen, from the begin of ``scope`` to its end, for times ``field``."""
    # As texts: numbers are taken for something else unless a mark has two ends.
    domain = [ts.isoformat() for ts in (scope.start, max(scope.end, scope.start + timedelta(milliseconds=1)))]
    return alt.X(
        f"{field}:T",
        title=zone_name() if axis else None,
        scale=alt.Scale(type=scale_type(), domain=domain, nice=False),
        axis=alt.Axis(
            format=_format(scope),
            labelOverlap=True,
            labelBound=True,
            tickCount=8,
            titleAnchor="end",
            titleAlign="right",
            titleFontSize=11,
            titleFontWeight="normal",
            titlePadding=0,
        )
        if axis
        else None,
    )


def _format(scope: Scope) -> str:
    seconds = (scope.end - scope.start).total_seconds()
    if seconds < 5:
        return "%H:%M:%S.%L"
    return "%H:%M:%S" if seconds < 900 else "%H:%M" if seconds < 2 * 86_400 else "%b %d %H:%M"


def label_axis(**axis: Any) -> alt.Axis:
    """A vertical axis of one width in all charts, so that times are below each other."""
    return alt.Axis(minExtent=_MARGIN, maxExtent=_MARGIN, labelLimit=_MARGIN - 8, **axis)


IN_UNITS = (
    "datum.value < 1 ? format(datum.value * 1000, '~g') + ' µs' : "
    "datum.value < 1000 ? format(datum.value, '~g') + ' ms' : format(datum.value / 1000, '~g') + ' s'"
)
"""Of an axis or legend of milliseconds: each label in the unit that suits it."""


def name_axis() -> alt.Axis:
    """The same of names: each row has its label, at its own height."""
    return label_axis(labelOverlap=False, labelFlush=False)


def readable(chart: Chart, *, dark: bool) -> Chart:
    """The chart with its words in ink, on a grid that is behind.

    What draws a chart has a theme of its own, whose grey is too faint on white (WCAG 2 AA), or whose black is not seen
    on a dark page.

    Args:
        chart: a whole one, not a part of another.
        dark: whether it is on a dark page.
    """
    colours = palette(dark=dark)
    words = {"labelColor": colours.ink, "titleColor": colours.ink}
    lines = {"domainColor": colours.faint, "tickColor": colours.faint, "gridColor": colours.faint, "gridOpacity": 0.25}
    known = {} if chart.config is alt.Undefined else chart.config.to_dict()
    own = {
        **known, "axis": {**words, **lines, **known.get("axis", {})}, "legend": {**words, **known.get("legend", {})},
        "view": {"stroke": colours.faint, "strokeOpacity": 0.25, **known.get("view", {})},
    }  # fmt: skip
    return chart.properties(config=alt.Config.from_dict(own))


def shade(
    field: str, title: str, domain: tuple[float, float], *, dark: bool, form: str = "~g", **legend: Any
) -> alt.Color:
    """More of something as a stronger shade of one hue, from nearly the background on, on a logarithmic scale.

    Args:
        field: what has the numbers, above zero.
        title: of the legend.
        domain: the least and the greatest.
        dark: whether it is on a dark page.
        form: how the legend writes numbers.
        legend: what else it is to have.
    """
    shades = list(palette(dark=dark).shades)
    return alt.Color(
        field, title=title, scale=alt.Scale(type="log", domain=list(domain), range=shades, interpolate="lab"),
        legend=alt.Legend(orient="bottom", gradientLength=240, format=form, tickCount=3, **legend),
    )  # fmt: skip


def below_each_other(
    parts: Sequence[alt.Chart | alt.LayerChart], *own: str, dark: bool, width: int
) -> alt.VConcatChart:
    """Several pictures as one, e.g. for a notebook.

    Args:
        parts: from top to bottom.
        own: channels that each have a scale of their own.
        dark: whether it is drawn on a dark background.
        width: pixels of each plot.
    """
    whole = alt.vconcat(*(part.properties(width=width) for part in parts), spacing=12)
    apart = whole.resolve_scale(**dict.fromkeys(own, "independent"))
    return readable(apart.properties(background=palette(dark=dark).background), dark=dark)
