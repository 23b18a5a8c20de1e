"""How much was carried over time, and for whom, as an Altair chart: bytes a second, stacked."""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import datetime, timedelta
from typing import Any

import altair as alt
import pyarrow as pa

from pipeline.dashboard.queries.latency import HEAT_BUCKETS, Row, step
from pipeline.dashboard.queries.progress.members import OTHERS
from pipeline.dashboard.queries.scope import Scope
from pipeline.dashboard.web.pictures.colours import looks, palette
from pipeline.dashboard.web.pictures.cut_time import CutTime
from pipeline.dashboard.web.pictures.picture import data, label_axis
from pipeline.dashboard.web.zone import zoned
from pipeline.terminal.console import printable


def traffic(scope: Scope, cells: pa.Table, row: Row, *, dark: bool) -> alt.LayerChart:
    """KiB a second, requests and responses together, by api, broker or client; who carried most is below.

    Args:
        scope: the span.
        cells: as :func:`pipeline.dashboard.queries.latency.traffic_by`.
        row: what a colour is.
        dark: whether it is on a dark page.
    """
    colours, cut = palette(dark=dark), CutTime(scope)
    rows, names = _stacked(cells, step(scope, HEAT_BUCKETS)[0])
    shown = looks(names, colours)
    scale = alt.Scale(domain=names, range=[shown[name][0] for name in names])
    bars = (
        alt.Chart(data(cut.rows(rows, "ts", "end")))
        .mark_rect(clip=True, stroke=colours.background, strokeWidth=0.5)
        .encode(
            x=cut.x(),
            x2=cut.x2("end"),
            y=alt.Y("from:Q", title="KiB/s, both ways", axis=label_axis(format="~s", tickCount=5)),
            y2="to:Q",
            color=alt.Color("name:N", scale=scale, title=None, legend=alt.Legend(orient="top", labelLimit=240)),
            tooltip=[
                alt.Tooltip("name:N", title=row),
                alt.Tooltip("rate:Q", title="KiB/s", format=",.1f"),
                alt.Tooltip("asked:Q", title="requests/s", format=",.1f"),
                alt.Tooltip("ts_text:N", title=zoned("from")),
            ],
        )
    )
    return alt.layer(bars, *cut.silences(colours)).properties(height=240)


def _stacked(cells: pa.Table, width_seconds: int) -> tuple[list[dict[str, Any]], list[str]]:
    """Rectangles upon each other, and the names from the one with most bytes to the others' share."""
    totals: Counter[str] = Counter()
    at: defaultdict[datetime, dict[str, dict[str, Any]]] = defaultdict(dict)
    for cell in cells.to_pylist():
        name = printable(cell["name"])
        totals[name] += cell["bytes"]
        at[cell["ts"]][name] = cell
    names = sorted(totals, key=lambda name: (name == OTHERS, -totals[name], name))
    rows, width = [], timedelta(seconds=width_seconds)
    for ts, there in sorted(at.items()):
        low = 0.0
        for name in names:
            if name in there:
                rate = there[name]["bytes"] / 1024 / width_seconds
                rows.append({
                    "ts": ts, "end": ts + width, "name": name, "from": low, "to": low + rate, "rate": rate,
                    "asked": there[name]["exchanges"] / width_seconds,
                })  # fmt: skip
                low += rate
    return rows, names
