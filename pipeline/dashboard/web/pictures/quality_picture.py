"""How many expectations failed in each run of ``wirelake check``: a bar for each run, critical ones at the bottom."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt

from pipeline.dashboard.queries.quality import CheckRun
from pipeline.dashboard.queries.scope import Scope
from pipeline.dashboard.web.pictures.colours import palette
from pipeline.dashboard.web.pictures.picture import data, label_axis, time_axis
from pipeline.dashboard.web.zone import zoned

_HEIGHT = 110
_BAR = 7
"""Pixels."""
CRITICAL, OTHER, NONE = "critical", "warning", "none failed"


def quality_picture(runs: Sequence[CheckRun], *, dark: bool) -> alt.LayerChart:
    """Runs as a chart.

    Args:
        runs: the oldest first, at least one.
        dark: whether it is drawn on a dark background.
    """
    colours = palette(dark=dark)
    failed = [
        {"ts": run.run_time, "kind": kind, "order": order, "count": count, "expectations": run.expectations}
        for run in runs
        for order, (kind, count) in enumerate(((CRITICAL, run.critical), (OTHER, run.warnings)))
        if count
    ]
    sound = [
        {"ts": run.run_time, "kind": NONE, "order": 0, "count": 0, "expectations": run.expectations}
        for run in runs
        if not run.critical and not run.warnings
    ]
    base = alt.Chart(data([*failed, *sound])).encode(
        time_axis(Scope(runs[0].run_time, runs[-1].run_time)),
        alt.Y("count:Q", title="failed", axis=label_axis(tickMinStep=1, format="d"), scale=alt.Scale(domainMin=0)),
        alt.Color(
            "kind:N",
            title=None,
            scale=alt.Scale(
                domain=[CRITICAL, OTHER, NONE], range=[colours.members[1], colours.members[4], colours.faint]
            ),
            legend=alt.Legend(orient="top"),
        ),
        order="order:Q",
        tooltip=[
            alt.Tooltip("ts_text:N", title=zoned("checked")),
            alt.Tooltip("kind:N", title="severity"),
            alt.Tooltip("count:Q", title="failed", format=",d"),
            alt.Tooltip("expectations:Q", title="of", format=",d"),
        ],
    )
    bars = base.transform_filter("datum.count > 0").mark_bar(size=_BAR, clip=False)
    ticks = base.transform_filter("datum.count == 0").mark_point(shape="circle", filled=True, size=24, opacity=1)
    return alt.layer(bars, ticks).properties(height=_HEIGHT)


def in_words(runs: Sequence[CheckRun]) -> str:
    """What the picture has in it, for those who do not see it."""
    bad = sum(bool(run.critical) for run in runs)
    mild = sum(bool(run.warnings) and not run.critical for run in runs)
    return f"{len(runs)} runs: critical expectations failed in {bad}, only others in {mild}."
