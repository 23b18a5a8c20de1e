"""How was something answered over time, as Altair charts: heat maps, percentiles beside yesterday's, errors.

Lightness shows how many, or how long; percentiles differ by their dashes as well; nothing is red or green.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import altair as alt
import pyarrow as pa

from pipeline.dashboard.queries.latency import BANDS, HEAT_BUCKETS, Row, step
from pipeline.dashboard.queries.scope import Scope
from pipeline.dashboard.web.pictures.colours import palette
from pipeline.dashboard.web.pictures.picture import data, milliseconds, name_axis, shade, time_axis
from pipeline.dashboard.web.zone import zoned
from pipeline.terminal.console import printable

_PERCENTILES = ("p50", "p95", "p99")
_DASHES = {"p50": [1, 0], "p95": [6, 3], "p99": [2, 2]}
_MANY_MARKS = 10
"""Marks on a logarithmic axis, beyond which the powers of ten suffice."""
_LANE, _ROOM = 22, 130
"""Pixels of a row, and of what a page takes around all of them."""


def heat(scope: Scope, cells: pa.Table, *, dark: bool) -> alt.Chart:
    """How many exchanges took how long when: the darker (on a dark page the lighter), the more.

    Args:
        scope: the span.
        cells: as :func:`pipeline.dashboard.queries.latency.heat`.
        dark: whether it stands on a dark page.
    """
    width = timedelta(seconds=step(scope, HEAT_BUCKETS)[0])
    rows = [
        {
            "ts": row["ts"], "end": row["ts"] + width, "low": _ms(row["band"]), "high": _ms(row["band"] + 1),
            "exchanges": row["exchanges"],
        }
        for row in cells.to_pylist()
    ]  # fmt: skip
    marks = _marks([*(row["low"] for row in rows), *(row["high"] * 0.999 for row in rows)])
    most = max((row["exchanges"] for row in rows), default=1)
    return (
        alt.Chart(data(rows))
        .mark_rect(clip=True)
        .encode(
            x=time_axis(scope),
            x2="end:T",
            y=alt.Y(
                "low:Q", title="ms", scale=alt.Scale(type="log", domain=[marks[0], marks[-1]], nice=False),
                axis=alt.Axis(format="~g", values=marks),
            ),
            y2="high:Q",
            color=shade("exchanges:Q", "exchanges", (1, max(most, 2)), dark=dark),
            tooltip=[
                alt.Tooltip("exchanges:Q", title="exchanges", format=",d"),
                alt.Tooltip("low:Q", title="took from, ms", format=",.3~f"),
                alt.Tooltip("high:Q", title="to, ms", format=",.3~f"),
                alt.Tooltip("ts_text:N", title=zoned("from")),
            ],
        )
        .properties(height=320)
    )  # fmt: skip


def heat_by(scope: Scope, cells: pa.Table, row: Row, *, dark: bool) -> alt.Chart:
    """How long it took by api, broker or client: the darker (on a dark page the lighter), the longer its p99.

    Args:
        scope: the span.
        cells: as :func:`pipeline.dashboard.queries.latency.heat_by`.
        row: what a row is.
        dark: whether it stands on a dark page.
    """
    width = timedelta(seconds=step(scope, HEAT_BUCKETS)[0])
    rows = [
        {
            "ts": cell["ts"], "end": cell["ts"] + width, "name": printable(cell["name"]), "p50": cell["p50"] / 1000,
            "p99": max(cell["p99"], 1) / 1000, "longest": cell["longest"] / 1000, "exchanges": cell["exchanges"],
        }
        for cell in cells.to_pylist()
    ]  # fmt: skip
    longest: dict[str, float] = {}
    for one in rows:
        longest[one["name"]] = max(longest.get(one["name"], 0), one["p99"])
    names = sorted(longest, key=lambda name: (-longest[name], name))
    values = [one["p99"] for one in rows] or [1.0]
    return (
        alt.Chart(data(rows))
        .mark_rect(clip=True)
        .encode(
            x=time_axis(scope),
            x2="end:T",
            y=alt.Y("name:N", title=None, scale=alt.Scale(domain=names), axis=name_axis()),
            color=shade("p99:Q", "p99, ms", (min(values), max(*values, min(values) * 2)), dark=dark),
            tooltip=[
                alt.Tooltip("name:N", title=row),
                alt.Tooltip("p50:Q", title="p50, ms", format=",.1f"),
                alt.Tooltip("p99:Q", title="p99, ms", format=",.1f"),
                alt.Tooltip("longest:Q", title="longest, ms", format=",.1f"),
                alt.Tooltip("exchanges:Q", title="exchanges", format=",d"),
                alt.Tooltip("ts_text:N", title=zoned("from")),
            ],
        )
        .properties(height=max(1, len(names)) * _LANE + _ROOM)
    )


def _ms(band: int) -> float:
    return float(10 ** (band / BANDS)) / 1000


def latency(scope: Scope, over_time: pa.Table, before: pa.Table | None = None, *, dark: bool = False) -> alt.LayerChart:
    """Percentiles over time, in milliseconds on a logarithmic scale; no line leads over a time without answers.

    Args:
        scope: the span.
        over_time: as :func:`pipeline.dashboard.queries.latency.over_time`.
        before: the same of the same hours one day earlier, drawn faintly behind.
        dark: whether it stands on a dark page.
    """
    colours = palette(dark=dark)
    width = timedelta(seconds=step(scope)[0])
    rows, old = _percentiles(over_time, width), _percentiles(before, width) if before is not None else []
    scale = alt.Scale(domain=list(_PERCENTILES), range=[colours.members[0], colours.members[2], colours.members[1]])
    dashes = alt.Scale(domain=list(_PERCENTILES), range=list(_DASHES.values()))
    marks = _marks([row["ms"] for row in (*rows, *old)])
    y = alt.Y(
        "ms:Q", title="ms", scale=alt.Scale(type="log", domain=[marks[0], marks[-1]], nice=False),
        axis=alt.Axis(format="~g", values=marks),
    )  # fmt: skip
    dash = alt.StrokeDash("percentile:N", scale=dashes, title=None)
    base = alt.Chart(data(rows)).encode(color=alt.Color("percentile:N", scale=scale, title=None))
    lines = base.mark_line(strokeWidth=2, clip=True).encode(x=time_axis(scope), y=y, strokeDash=dash, detail="run:N")
    dots = base.mark_circle(size=36, opacity=1).encode(x="ts:T", y="ms:Q", tooltip=_percentile_words(zoned("from")))
    yesterday = (
        alt.Chart(data(old))
        .mark_line(strokeWidth=5, opacity=0.35, color=colours.faint, clip=True, point={"size": 30, "opacity": 0.35})
        .encode(
            x="ts:T", y="ms:Q", detail=["percentile:N", "run:N"],
            tooltip=_percentile_words(zoned("a day after it"), "yesterday, "),
        )
    )  # fmt: skip
    layers = [*([yesterday] if old else []), lines, dots]
    return alt.layer(*layers).properties(height=280).configure_legend(orient="top")


def _percentiles(over_time: pa.Table, width: timedelta) -> list[dict[str, Any]]:
    """A row for each percentile; ``run`` numbers the spans in which each point follows the one before."""
    found: list[dict[str, Any]] = []
    run, last = 0, None
    for row in over_time.to_pylist():
        if last is not None and row["ts"] - last > width:
            run += 1
        last = row["ts"]
        found += [
            {
                "ts": row["ts"],
                "percentile": name,
                "ms": max(row[name], 1) / 1000,
                "exchanges": row["exchanges"],
                "run": run,
            }
            for name in _PERCENTILES
            if row[name] is not None
        ]
    return found


def _percentile_words(when: str, whose: str = "") -> list[alt.Tooltip]:
    return [
        alt.Tooltip("percentile:N", title=f"{whose}percentile"),
        alt.Tooltip("ms:Q", title="ms", format=",.1f"),
        alt.Tooltip("exchanges:Q", title="exchanges", format=","),
        alt.Tooltip("ts_text:N", title=when),
    ]


def _marks(values: Sequence[float]) -> list[float]:
    """1, 2, 5, 10 … of any magnitude, from just below the least value to just above the greatest; at least two."""
    least, greatest = min(values, default=1.0), max(values, default=1.0)
    steps = [factor * 10.0**power for power in range(-4, 9) for factor in (1, 2, 5)]
    first = max((step for step in steps if step <= least), default=steps[0])
    last = min((step for step in steps if step > greatest), default=steps[-1])
    found = [step for step in steps if first <= step <= last]
    return found if len(found) < _MANY_MARKS else [step for step in found if f"{step:e}"[0] == "1" or step == last]


def answers(scope: Scope, over_time: pa.Table, width_seconds: float, *, dark: bool = False) -> alt.Chart:
    """Exchanges over time, those with an error on top, as bars ``width_seconds`` wide."""
    look = palette(dark=dark)
    rows = []
    for row in over_time.to_pylist():
        end, good = milliseconds(row["ts"]) + width_seconds * 1000, row["exchanges"] - row["errors"]
        for name, low, high in (("without error", 0, good), ("with an error", good, row["exchanges"])):
            if high > low:
                rows.append({"ts": row["ts"], "end": end, "answer": name, "from": low, "to": high, "n": high - low})
    colours = alt.Scale(domain=["without error", "with an error"], range=[look.faint, look.members[1]])
    return (
        alt.Chart(data(rows))
        .mark_rect(clip=True, stroke=look.background, strokeWidth=0.5)
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
