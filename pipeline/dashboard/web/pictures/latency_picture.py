"""How was something answered over time, as Altair charts: heat maps with percentiles and yesterday's, errors.

The strength of one hue shows how many, or how long; percentiles differ by their dashes; nothing is red or green.
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
from pipeline.dashboard.web.pictures.cut_time import CutTime
from pipeline.dashboard.web.pictures.picture import IN_UNITS, data, label_axis, name_axis, shade
from pipeline.dashboard.web.zone import zoned
from pipeline.terminal.console import printable

_PERCENTILES = ("p50", "p95", "p99")
_DASHES = {"p50": [1, 0], "p95": [6, 3], "p99": [2, 2]}
_MANY_MARKS = 10
"""Marks on a logarithmic axis, beyond which the powers of ten suffice."""
_LANE, _ROOM = 22, 130
"""Pixels of a row, and of what a page takes around all of them."""


def heat(
    scope: Scope, cells: pa.Table, over_time: pa.Table | None = None, before: pa.Table | None = None, *, dark: bool
) -> alt.LayerChart:
    """How many exchanges took how long when, and over that percentiles, on one axis.

    The stronger a shade the more exchanges. No line leads over a time without answers; long silences are cut out.

    Args:
        scope: the span.
        cells: as :func:`pipeline.dashboard.queries.latency.heat`.
        over_time: as :func:`pipeline.dashboard.queries.latency.over_time`; None: no percentiles.
        before: the figures of these hours one day earlier, drawn faintly.
        dark: whether it is on a dark page.
    """
    width, cut = timedelta(seconds=step(scope, HEAT_BUCKETS)[0]), CutTime(scope)
    rows = [
        {
            "ts": row["ts"], "end": row["ts"] + width, "low": _ms(row["band"]), "high": _ms(row["band"] + 1),
            "took": f"{_in_units(_ms(row['band']))} to {_in_units(_ms(row['band'] + 1))}",
            "exchanges": row["exchanges"],
        }
        for row in cells.to_pylist()
    ]  # fmt: skip
    answered = [] if over_time is None else [row["ms"] for row in _percentiles(over_time, width)]
    marks = _marks([*(row["low"] for row in rows), *(row["high"] * 0.999 for row in rows), *answered])
    most = max((row["exchanges"] for row in rows), default=1)
    y = alt.Y(
        "low:Q", title=None, scale=alt.Scale(type="log", domain=[marks[0], marks[-1]], nice=False),
        axis=label_axis(values=marks, labelExpr=IN_UNITS),
    )  # fmt: skip
    cells_drawn = (
        alt.Chart(data(cut.rows(rows, "ts", "end")))
        .mark_rect(clip=True)
        .encode(
            x=cut.x(),
            x2=cut.x2("end"),
            y=y,
            y2="high:Q",
            color=shade("exchanges:Q", "exchanges", (1, max(most, 2)), dark=dark),
            tooltip=[
                alt.Tooltip("exchanges:Q", title="exchanges", format=",d"),
                alt.Tooltip("took:N", title="took"),
                alt.Tooltip("ts_text:N", title=zoned("from")),
            ],
        )
    )
    lines = [] if over_time is None else _lines(scope, over_time, before, cut, dark=dark)
    layers = [cells_drawn, *cut.silences(palette(dark=dark)), *lines]
    return alt.layer(*layers).resolve_scale(strokeDash="independent").properties(height=400)


def _lines(scope: Scope, over_time: pa.Table, before: pa.Table | None, cut: CutTime, *, dark: bool) -> list[alt.Chart]:
    """Percentiles, which differ by their dashes, on a halo that sets them off from the shades below."""
    colours, width = palette(dark=dark), timedelta(seconds=step(scope)[0])
    rows = cut.rows(_percentiles(over_time, width), "ts")
    old = cut.rows(_percentiles(before, width), "ts") if before is not None else []
    dashes = alt.Scale(domain=list(_PERCENTILES), range=list(_DASHES.values()))
    dash = alt.StrokeDash(
        "percentile:N", scale=dashes, title=None,
        legend=alt.Legend(orient="top", symbolType="stroke", symbolSize=500, symbolStrokeColor=colours.members[1]),
    )  # fmt: skip
    base = alt.Chart(data(rows)).encode(x=cut.x(), y="ms:Q", detail=["percentile:N", "run:N"])
    halo = base.mark_line(strokeWidth=5, opacity=0.8, color=colours.background, clip=True)
    lines = base.mark_line(strokeWidth=2.2, color=colours.members[1], clip=True).encode(strokeDash=dash)
    dots = base.mark_circle(size=30, opacity=1, color=colours.members[1]).encode(
        tooltip=_percentile_words(zoned("from"))
    )
    yesterday = (
        alt.Chart(data(old))
        .mark_line(strokeWidth=4, opacity=0.5, color=colours.faint, clip=True, point={"size": 30, "opacity": 0.5})
        .encode(
            x=cut.x(), y="ms:Q", detail=["percentile:N", "run:N"],
            tooltip=_percentile_words(zoned("a day after it"), "yesterday, "),
        )
    )  # fmt: skip
    return [*([yesterday] if old else []), *([halo, lines, dots] if rows else [])]


def heat_by(scope: Scope, cells: pa.Table, row: Row, *, dark: bool) -> alt.Chart:
    """How long it took by api, broker or client: the darker (on a dark page the lighter), the longer its p99.

    Args:
        scope: the span.
        cells: as :func:`pipeline.dashboard.queries.latency.heat_by`.
        row: what a row is.
        dark: whether it is on a dark page.
    """
    width, cut = timedelta(seconds=step(scope, HEAT_BUCKETS)[0]), CutTime(scope)
    rows = [
        {
            "ts": cell["ts"], "end": cell["ts"] + width, "name": printable(cell["name"]), "p50": cell["p50"] / 1000,
            "p99": max(cell["p99"], 1) / 1000, "longest": cell["longest"] / 1000, "exchanges": cell["exchanges"],
            **{f"{name}_words": _in_units(cell[name] / 1000) for name in ("p50", "p99", "longest")},
        }
        for cell in cells.to_pylist()
    ]  # fmt: skip
    longest: dict[str, float] = {}
    for one in rows:
        longest[one["name"]] = max(longest.get(one["name"], 0), one["p99"])
    names = sorted(longest, key=lambda name: (-longest[name], name))
    values = [one["p99"] for one in rows] or [1.0]
    drawn = (
        alt.Chart(data(cut.rows(rows, "ts", "end")))
        .mark_rect(clip=True)
        .encode(
            x=cut.x(),
            x2=cut.x2("end"),
            y=alt.Y("name:N", title=None, scale=alt.Scale(domain=names), axis=name_axis()),
            color=shade("p99:Q", "p99", (min(values), max(*values, min(values) * 2)), dark=dark, labelExpr=IN_UNITS),
            tooltip=[
                alt.Tooltip("name:N", title=row),
                *(alt.Tooltip(f"{name}_words:N", title=name) for name in ("p50", "p99", "longest")),
                alt.Tooltip("exchanges:Q", title="exchanges", format=",d"),
                alt.Tooltip("ts_text:N", title=zoned("from")),
            ],
        )
    )
    whole = alt.layer(drawn, *cut.silences(palette(dark=dark)))
    return whole.properties(height=max(1, len(names)) * _LANE + _ROOM)


def _ms(band: int) -> float:
    return float(10 ** (band / BANDS)) / 1000


def _in_units(ms: float) -> str:
    if ms < 1:
        return f"{ms * 1000:.3g} µs"
    return f"{ms:.3g} ms" if ms < 1000 else f"{ms / 1000:.3g} s"


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
                "took": _in_units(max(row[name], 1) / 1000),
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
        alt.Tooltip("took:N", title="took"),
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
    if len(found) < _MANY_MARKS:
        return found
    powers = [step for step in steps if f"{step:e}"[0] == "1"]
    return [max(one for one in powers if one <= first), *(one for one in powers if first < one < last), last]


def answers(scope: Scope, over_time: pa.Table, width_seconds: float, *, dark: bool = False) -> alt.LayerChart:
    """Exchanges over time, those with an error on top, as bars ``width_seconds`` wide."""
    look, cut, width = palette(dark=dark), CutTime(scope), timedelta(seconds=width_seconds)
    rows = []
    for row in over_time.to_pylist():
        good = row["exchanges"] - row["errors"]
        for name, low, high in (("without error", 0, good), ("with an error", good, row["exchanges"])):
            if high > low:
                rows.append({
                    "ts": row["ts"], "end": row["ts"] + width, "answer": name, "from": low, "to": high, "n": high - low,
                })  # fmt: skip
    colours = alt.Scale(domain=["without error", "with an error"], range=[look.faint, look.members[1]])
    bars = (
        alt.Chart(data(cut.rows(rows, "ts", "end")))
        .mark_rect(clip=True, stroke=look.background, strokeWidth=0.5)
        .encode(
            x=cut.x(),
            x2=cut.x2("end"),
            y=alt.Y("from:Q", title=None, axis=label_axis(format=",d", tickMinStep=1, tickCount=4)),
            y2="to:Q",
            color=alt.Color("answer:N", scale=colours, title=None, legend=alt.Legend(orient="top")),
            tooltip=[
                alt.Tooltip("answer:N", title="answers"),
                alt.Tooltip("n:Q", title="exchanges", format=","),
                alt.Tooltip("ts_text:N", title=zoned("from")),
            ],
        )
    )
    return alt.layer(bars, *cut.silences(look)).properties(height=240)
