"""What all pictures share: rows as data of a chart, the axis of time, and the margin left of a plot."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import altair as alt
import pyarrow as pa

from pipeline.dashboard.queries.scope import Scope
from pipeline.dashboard.web.zone import in_zone, scale_type
from pipeline.terminal import printable

_MARGIN = 120
"""Pixels left of a plot, for labels."""


def milliseconds(ts: datetime) -> float:
    """Since the epoch, as a chart takes times."""
    return ts.timestamp() * 1000


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
                plain[f"{name}_text"] = in_zone(value).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
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
        title=None,
        scale=alt.Scale(type=scale_type(), domain=domain, nice=False),
        axis=alt.Axis(format=_format(scope), labelOverlap=True, labelBound=True, tickCount=8) if axis else None,
    )


def _format(scope: Scope) -> str:
    seconds = (scope.end - scope.start).total_seconds()
    if seconds < 5:
        return "%H:%M:%S.%L"
    return "%H:%M:%S" if seconds < 900 else "%H:%M" if seconds < 2 * 86_400 else "%b %d %H:%M"


def label_axis(**axis: Any) -> alt.Axis:
    """A vertical axis of one width in all charts, so that times lie below each other."""
    return alt.Axis(minExtent=_MARGIN, maxExtent=_MARGIN, labelLimit=_MARGIN - 8, **axis)
