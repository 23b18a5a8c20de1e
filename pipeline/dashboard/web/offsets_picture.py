"""The picture of a partition and a group over time, as Altair charts: offsets, commits, and owners as bars below."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt
import pyarrow as pa

from pipeline.dashboard.queries.scope import Scope
from pipeline.dashboard.web.picture import data, label_axis, time_axis
from pipeline.terminal import printable

_LINES = {
    "high_watermark": ("high watermark", "#3b82f6"),
    "last_stable_offset": ("last stable offset", "#f59e0b"),
    "log_start_offset": ("log start", "#94a3b8"),
    "committed_offset": ("committed", "#8b5cf6"),
}
_CLIENTS = ("#059669", "#dc2626", "#0891b2", "#db2777", "#65a30d", "#92400e", "#475569", "#ca8a04")
_SHAPES = {"accepted": "circle", "rejected": "cross", "pending": "diamond", "aborted": "triangle-down"}
_BAR = 32
"""Height of an owner's bar, in pixels."""
_BELOW = alt.Legend(orient="bottom", columns=4)
"""Of clients, whose names may be long."""


def offsets(
    scope: Scope, lines: pa.Table, positions: pa.Table, commits: pa.Table, owners: Sequence[dict[str, Any]]
) -> tuple[alt.LayerChart, alt.LayerChart | None]:
    """The picture of a partition and a group: who committed what, and where the log stood; owners as bars below.

    Args:
        scope: the span of the picture.
        lines: as :func:`pipeline.dashboard.queries.partitions.lines` gives them, and the others alike.
        positions: how far each client has fetched.
        commits: points.
        owners: bars.

    Returns:
        Two charts of one width whose times lie below each other; the second is None if nobody owned the partition.
    """
    clients = _client_colours(positions, commits, owners)
    layers = [_log(scope, lines)]
    if positions.num_rows:
        layers.append(_positions(positions, clients, legend=not commits.num_rows))
    if commits.num_rows:
        layers.append(_commits(commits, clients))
    above = alt.layer(*layers).resolve_scale(color="independent").properties(height=400)
    above = above.configure_legend(orient="top", titleOrient="left", labelLimit=240, symbolLimit=20, columns=8)
    return above, _owners(scope, owners, clients) if owners else None


def _client_colours(positions: pa.Table, commits: pa.Table, owners: Sequence[dict[str, Any]]) -> alt.Scale:
    names = [*commits.column("client_id").to_pylist(), *positions.column("client_id").to_pylist()]
    distinct = list(dict.fromkeys(printable(name) for name in (*names, *(owner["client_id"] for owner in owners))))
    return alt.Scale(domain=distinct, range=[_CLIENTS[index % len(_CLIENTS)] for index in range(len(distinct))])


def _log(scope: Scope, lines: pa.Table) -> alt.Chart:
    rows = [{**row, "line": _LINES[row["line"]][0]} for row in lines.to_pylist()]
    there = [name for name in _LINES.values() if any(row["line"] == name[0] for row in rows)]
    colours = alt.Scale(domain=[name for name, _ in there], range=[colour for _, colour in there])
    return (
        alt.Chart(data(rows))
        .mark_line(interpolate="step-after", strokeWidth=2, clip=True)
        .encode(
            x=time_axis(scope),
            y=alt.Y("value:Q", title=None, scale=alt.Scale(zero=False), axis=label_axis(format=",d", tickMinStep=1)),
            color=alt.Color("line:N", scale=colours, title="offsets"),
            detail="incarnation:N",
            tooltip=[
                alt.Tooltip("line:N", title="what"),
                alt.Tooltip("value:Q", title="offset", format=",d"),
                alt.Tooltip("ts_text:N", title="time, UTC"),
            ],
        )
    )


def _positions(positions: pa.Table, clients: alt.Scale, *, legend: bool) -> alt.Chart:
    return (
        alt.Chart(data(positions.to_pylist()))
        .mark_line(interpolate="step-after", strokeDash=[3, 3], strokeWidth=1.5, opacity=0.8, clip=True)
        .encode(
            x="ts:T",
            y="value:Q",
            color=alt.Color("client_id:N", scale=clients, title="clients", legend=_BELOW if legend else None),
            tooltip=[
                alt.Tooltip("client_id:N", title="client"),
                alt.Tooltip("value:Q", title="fetched up to", format=",d"),
                alt.Tooltip("ts_text:N", title="time, UTC"),
            ],
        )
    )


def _commits(commits: pa.Table, clients: alt.Scale) -> alt.Chart:
    rows = commits.to_pylist()
    there = [name for name in _SHAPES if any(row["outcome"] == name for row in rows)]
    return (
        alt.Chart(data(rows))
        .mark_point(size=64, filled=True, opacity=0.9, clip=True)
        .encode(
            x="ts:T",
            y="value:Q",
            color=alt.Color("client_id:N", scale=clients, title="clients", legend=_BELOW),
            shape=alt.Shape(
                "outcome:N", title="commits", scale=alt.Scale(domain=there, range=[_SHAPES[name] for name in there])
            ),
            tooltip=[
                alt.Tooltip("client_id:N", title="client"),
                alt.Tooltip("member_id:N", title="member"),
                alt.Tooltip("generation:Q", title="generation"),
                alt.Tooltip("outcome:N", title="commit"),
                alt.Tooltip("value:Q", title="offset", format=",d"),
                alt.Tooltip("error_name:N", title="error"),
                alt.Tooltip("ts_text:N", title="time, UTC"),
                alt.Tooltip("exchange_id:N", title="exchange"),
            ],
        )
    )


def _owners(scope: Scope, owners: Sequence[dict[str, Any]], clients: alt.Scale) -> alt.LayerChart:
    rows = [{**owner, "label": str(owner["generation"])} for owner in owners]
    bars = alt.Chart(data(rows)).encode(
        x=time_axis(scope, "owned_from", axis=False),
        y=alt.Y("client_id:N", title=None, axis=label_axis(), sort=None),
    )
    tooltip = [
        alt.Tooltip("client_id:N", title="client"),
        alt.Tooltip("member_id:N", title="member"),
        alt.Tooltip("generation:Q", title="generation"),
        alt.Tooltip("owned_from_text:N", title="from, UTC"),
        alt.Tooltip("owned_until_text:N", title="until, UTC"),
    ]
    drawn = bars.mark_bar(height=_BAR - 12, clip=True, stroke="white").encode(
        x2="owned_until:T", color=alt.Color("client_id:N", scale=clients, legend=None), tooltip=tooltip
    )
    names = bars.mark_text(align="left", dx=6, color="white", fontSize=11, clip=True).encode(text="label:N")
    height = len({owner["client_id"] for owner in owners}) * _BAR + _BAR // 2
    return alt.layer(drawn, names).properties(height=height)
