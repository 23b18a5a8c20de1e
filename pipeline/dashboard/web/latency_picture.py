"""How an api was answered over time, as Altair charts: percentiles of its latency, answers with and without error."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import pyarrow as pa

from pipeline.dashboard.queries.scope import Scope
from pipeline.dashboard.web.picture import data, milliseconds, time_axis
from pipeline.dashboard.web.zone import zoned

_PERCENTILES = {"p50": "#22c55e", "p95": "#f59e0b", "p99": "#dc2626"}
_MANY_MARKS = 10
"""Marks on a logarithmic axis, beyond which the powers of ten suffice."""


def latency(scope: Scope, over_time: pa.Table) -> alt.LayerChart:
    """Percentiles of one api over time, in milliseconds on a logarithmic scale."""
    rows = [
        {"ts": row["ts"], "percentile": name, "ms": max(row[name], 1) / 1000, "exchanges": row["exchanges"]}
        for row in over_time.to_pylist()
        for name in _PERCENTILES
        if row[name] is not None
    ]
    colours = alt.Scale(domain=list(_PERCENTILES), range=list(_PERCENTILES.values()))
    marks = _marks([row["ms"] for row in rows])
    base = alt.Chart(data(rows)).encode(color=alt.Color("percentile:N", scale=colours, title=None))
    lines = base.mark_line(strokeWidth=2).encode(
        x=time_axis(scope),
        y=alt.Y(
            "ms:Q", title="ms", scale=alt.Scale(type="log", domain=[marks[0], marks[-1]], nice=False),
            axis=alt.Axis(format="~g", values=marks),
        ),
    )  # fmt: skip
    dots = base.mark_circle(size=36, opacity=1).encode(
        x="ts:T",
        y="ms:Q",
        tooltip=[
            alt.Tooltip("percentile:N"),
            alt.Tooltip("ms:Q", title="ms", format=",.1f"),
            alt.Tooltip("exchanges:Q", title="exchanges", format=","),
            alt.Tooltip("ts_text:N", title=zoned("from")),
        ],
    )
    return alt.layer(lines, dots).properties(height=280).configure_legend(orient="top")


def _marks(values: Sequence[float]) -> list[float]:
    """1, 2, 5, 10 … of any magnitude, from just below the least value to just above the greatest; at least two."""
    least, greatest = min(values, default=1.0), max(values, default=1.0)
    steps = [factor * 10.0**power for power in range(-4, 9) for factor in (1, 2, 5)]
    first = max((step for step in steps if step <= least), default=steps[0])
    last = min((step for step in steps if step > greatest), default=steps[-1])
    found = [step for step in steps if first <= step <= last]
    return found if len(found) < _MANY_MARKS else [step for step in found if f"{step:e}"[0] == "1" or step == last]


def answers(scope: Scope, over_time: pa.Table, width_seconds: float) -> alt.Chart:
    """Exchanges of one api over time, those with an error on top in red, as bars ``width_seconds`` wide."""
    rows = []
    for row in over_time.to_pylist():
        end, good = milliseconds(row["ts"]) + width_seconds * 1000, row["exchanges"] - row["errors"]
        for name, low, high in (("without error", 0, good), ("with an error", good, row["exchanges"])):
            if high > low:
                rows.append({"ts": row["ts"], "end": end, "answer": name, "from": low, "to": high, "n": high - low})
    colours = alt.Scale(domain=["without error", "with an error"], range=["#60a5fa", "#dc2626"])
    return (
        alt.Chart(data(rows))
        .mark_rect(clip=True, stroke="white", strokeWidth=0.5)
        .encode(
            x=time_axis(scope),
            x2="end:T",
            y=alt.Y("from:Q", title="exchanges", axis=alt.Axis(format=",d", tickMinStep=1, tickCount=5)),
            y2="to:Q",
            color=alt.Color("answer:N", scale=colours, title=None),
            tooltip=[
                alt.Tooltip("answer:N", title="answers"),
                alt.Tooltip("n:Q", title="exchanges", format=","),
                alt.Tooltip("ts_text:N", title=zoned("from")),
            ],
        )
        .properties(height=280)
        .configure_legend(orient="top")
    )
