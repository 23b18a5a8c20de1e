"""The picture of a partition and a group over time, as Altair charts: offsets above, who owned the partition below.

The log is drawn in ink: lines that differ by their dashes. A member has a colour and a symbol: steps and points of its
commits, its bars in the band below, and, dashed, how far it has fetched. Commits that do not hold are hollow: refused
ones crossed, those of an aborted transaction struck through, those of an open one neither.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import altair as alt

from pipeline.dashboard.queries.progress.held import longest, outline, stripes
from pipeline.dashboard.queries.progress.lanes import lanes
from pipeline.dashboard.queries.progress.members import OTHERS
from pipeline.dashboard.queries.progress.offsets import Offsets
from pipeline.dashboard.web.pictures.colours import CROSSED, STRUCK, Palette, looks, palette, readable_on
from pipeline.dashboard.web.pictures.lives_and_silence import deaths, deaths_of, longest_silence, silence
from pipeline.dashboard.web.pictures.owner_bars import bar_tooltips, bar_words, with_room
from pipeline.dashboard.web.pictures.picture import data, label_axis, readable, time_axis
from pipeline.dashboard.web.zone import zoned
from pipeline.humanize import duration, pluralize, size
from pipeline.terminal.console import printable

OPEN, ZOOM = "open", "zoom"
"""Names of the selections: the commit that is clicked (``exchange_id``), the times that are dragged over (``ts``)."""

_LINES = {
    "high_watermark": ("high watermark", [1, 0], 2.5),
    "last_stable_offset": ("last stable offset", [7, 4], 2),
    "log_start_offset": ("log start", [2, 3], 2),
    "committed_offset": ("committed", [10, 3, 2, 3], 1.5),
}
IN_TRANSACTION = ("pending", "aborted")
"""Outcomes of commits that are in a transaction."""
_FEW, _LARGE, _SMALL = 200, 70, 36
"""Up to this many points are large, in square pixels; more are small."""
_LANE, _PADDING = 26, 14
"""Pixels of the band: a lane, and what the page takes around it."""
_LONG_NAME = 0.18
"""Part of the width from which on a bar has room for a member's name and its generation."""
_NAMED_HOLD = 0.12
_COLUMNS = alt.ExprRef("width < 360 ? 1 : 4")
"""Of the legend above: on a phone its entries are below each other."""
_BELOW = {"orient": "bottom", "columns": 2, "labelLimit": 420, "symbolSize": 90}


def offsets_picture(
    shown: Offsets, *, dark: bool, select: Collection[str] = ()
) -> tuple[alt.LayerChart, alt.LayerChart | None]:
    """The picture of a partition and a group.

    Args:
        shown: what it shows.
        dark: whether it is on a dark page.
        select: what is reported to the page: ``OPEN``, a commit that is clicked, ``ZOOM``, times that are dragged over.

    Returns:
        Two charts of one width whose times are below each other; the second is None if no owner of the partition is
        known, and no rebalance was seen.
    """
    colours = palette(dark=dark)
    members = _Members(shown, colours)
    layers = [
        *_losses(shown, colours),
        *_held(shown, colours),
        *_rebalances(shown, colours, in_band=False),
        _log(shown, colours, select=select),
        *_positions(shown, members),
        *_commits(shown, members, colours, select=select),
        *deaths(shown, members.stroke, colours),
        *silence(shown, colours),
    ]
    own = {"color": "independent", "shape": "independent", "strokeDash": "independent"}
    above = alt.layer(*layers).resolve_scale(**own).properties(height=400)
    above = above.configure_legend(orient="top", titleOrient="left", labelLimit=240, columns=_COLUMNS)
    below = _band(shown, members, colours) if shown.owners or shown.rebalances else None
    return above, below


def one_chart(shown: Offsets, *, dark: bool, width: int) -> alt.VConcatChart | alt.LayerChart:
    """Both parts as one chart, ``width`` pixels wide, e.g. for a notebook."""
    above, below = offsets_picture(shown, dark=dark)
    settings = above.config
    above.config = alt.Undefined
    above = above.properties(width=width)
    whole = above if below is None else alt.vconcat(above, below.properties(width=width), spacing=4)
    whole.config = settings
    return readable(whole.properties(background=palette(dark=dark).background), dark=dark)


def in_words(shown: Offsets) -> str:
    """What the picture has in it, for those who do not see it, and for its caption."""
    place = shown.place
    committed = shown.commits.column("outcome").to_pylist()
    phrases = [f"Offsets of {place.topic}-{place.partition} over time"]
    if place.group_id:
        phrases.append(f"commits of group {place.group_id} by {', '.join(shown.labels) or 'nobody'}")
    if "rejected" in committed:
        phrases.append("refused commits are hollow and crossed")
    if any(outcome in IN_TRANSACTION for outcome in committed):
        phrases.append("commits inside a transaction are hollow, and struck through if it was aborted")
    if shown.held:
        who = list(dict.fromkeys(hold.producer for hold in sorted(shown.held, key=lambda hold: -hold.seconds)))
        more = f" and {len(who) - 3} more" if len(who) > 3 else ""
        phrases.append(f"hatched: an open transaction holds readers back ({', '.join(who[:3])}{more})")
    if ends := deaths_of(shown):
        clients = ", ".join(dict.fromkeys(end.client_id for end in ends))
        phrases.append(f"large crosses: {pluralize(len(ends), 'member')} of {clients} that ended, and came again")
    if (gap := longest_silence(shown)) is not None:
        phrases.append(f"no commit for {duration((gap[1] - gap[0]).total_seconds())}")
    if shown.losses:
        phrases.append("shaded: the capture lost bytes")
    if shown.positions.num_rows:
        phrases.append("dashed: fetched up to")
    return printable("; ".join(phrases)) + "."


class _Members:
    """Scales of colour and symbol, the same in all layers."""

    def __init__(self, shown: Offsets, colours: Palette) -> None:
        found = looks(shown.labels, colours)
        self.of = {printable(label): look for label, look in found.items()}
        names = list(self.of)
        self.colour = alt.Scale(domain=names, range=[colour for colour, _ in self.of.values()])
        self.symbol = alt.Scale(domain=names, range=[symbol for _, symbol in self.of.values()])

    def stroke(self, label: str) -> str:
        return self.of[printable(label)][0]


def _offset_axis(field: str, shown: Offsets) -> alt.Y:
    low, high = _heights(shown)
    scale = alt.Scale(domain=[low, high], zero=False, nice=False)
    return alt.Y(field, title=None, scale=scale, axis=label_axis(format=",d", tickMinStep=1))


def _heights(shown: Offsets) -> tuple[int, int]:
    """The least and the greatest offset of the picture; a log that starts far below does not flatten all else."""
    starts: list[int] = []
    others = [*shown.commits.column("value").to_pylist(), *shown.positions.column("value").to_pylist()]
    for line, value in zip(*(shown.lines.column(name).to_pylist() for name in ("line", "value")), strict=True):
        (starts if line == "log_start_offset" else others).append(value)
    low, high = min(others or starts, default=0), max(others or starts, default=1)
    near = [start for start in starts if start >= low - (high - low)]
    low, high = min([low, *near]), max([high, *near])
    room = max(1, (high - low) // 20)  # a symbol at the edge is whole
    return (low - room if low >= room else low), high + room


def _log(shown: Offsets, colours: Palette, *, select: Collection[str] = ()) -> alt.Chart:
    has_commits = shown.commits.num_rows > 0
    rows = [
        {**row, "line": _LINES[row["line"]][0]}
        for row in shown.lines.to_pylist()
        if not (has_commits and row["line"] == "committed_offset")  # its steps are the members' then
    ]
    there = [look for look in _LINES.values() if any(row["line"] == look[0] for row in rows)]
    names = [name for name, *_ in there]
    chart = (
        alt.Chart(data(rows))
        .mark_line(interpolate="step-after", clip=True, color=colours.ink)
        .encode(
            x=time_axis(shown.scope),
            y=_offset_axis("value:Q", shown),
            strokeDash=alt.StrokeDash(
                "line:N", scale=alt.Scale(domain=names, range=[dash for _, dash, _ in there]), title="log",
                legend=alt.Legend(symbolType="stroke", symbolSize=500, symbolStrokeColor=colours.ink),
            ),
            strokeWidth=alt.StrokeWidth(
                "line:O", scale=alt.Scale(domain=names, range=[width for *_, width in there]), legend=None
            ),
            detail="incarnation:N",
            tooltip=[
                alt.Tooltip("line:N", title="what"),
                alt.Tooltip("value:Q", title="offset", format=",d"),
                alt.Tooltip("ts_text:N", title=zoned("time")),
            ],
        )
    )  # fmt: skip
    return chart.add_params(alt.selection_interval(name=ZOOM, encodings=["x"])) if ZOOM in select else chart


def _losses(shown: Offsets, colours: Palette) -> list[alt.Chart]:
    if not shown.losses:
        return []
    rows = [
        {
            "began": row["began"], "until": max(row["ended"], row["began"] + shown.scope.bucket),
            "lost": f"{size(row['bytes_lost'])} of {pluralize(row['connections'], 'connection')}",
        }
        for row in shown.losses
    ]  # fmt: skip
    return [
        alt.Chart(data(rows))
        .mark_rect(color=colours.faint, opacity=0.35, clip=True, stroke=colours.faint, strokeWidth=1)
        .encode(
            x="began:T",
            x2="until:T",
            tooltip=[
                alt.Tooltip("lost:N", title="the capture lost"),
                alt.Tooltip("began_text:N", title=zoned("noticed")),
            ],
        )
    ]


def _held(shown: Offsets, colours: Palette) -> list[alt.Chart]:
    """The area from last stable offset to high watermark while a transaction is open, hatched, with its producer."""
    if not shown.held:
        return []
    area = [
        {
            "ts": one.ts, "low": one.last_stable_offset, "high": one.high_watermark, "hold": number,
            "producer": hold.producer, "held": duration(hold.seconds), "waiting": hold.offsets,
            "since": hold.since, "over": "yes" if hold.is_over else "not seen",
        }
        for number, hold in enumerate(shown.held)
        for one in outline(hold)
    ]  # fmt: skip
    hatching = [
        {"ts": line.ts, "low": line.last_stable_offset, "high": line.high_watermark}
        for line in stripes(shown.held, shown.scope)
    ]
    names = [
        {"ts": hold.since, "low": hold.last_stable_offset, "name": f"open: {hold.producer}"}
        for hold in longest(shown.held, shown.scope, _NAMED_HOLD)
    ]
    y = _offset_axis("low:Q", shown)
    tooltip = [
        alt.Tooltip("producer:N", title="held by"),
        alt.Tooltip("low:Q", title="last stable offset", format=",d"),
        alt.Tooltip("since_text:N", title=zoned("since")),
        alt.Tooltip("held:N", title="for"),
        alt.Tooltip("waiting:Q", title="offsets held back", format=",d"),
        alt.Tooltip("over:N", title="ended"),
    ]
    filled = alt.Chart(data(area)).mark_area(interpolate="step-after", color=colours.faint, opacity=0.18, clip=True)
    lined = alt.Chart(data(hatching)).mark_rule(color=colours.faint, opacity=0.55, strokeWidth=1, clip=True)
    named = alt.Chart(data(names)).mark_text(align="left", dx=6, dy=12, color=colours.ink, fontSize=12, clip=True)
    return [
        filled.encode(x="ts:T", y=y, y2="high:Q", detail="hold:N", tooltip=tooltip),
        lined.encode(x="ts:T", y="low:Q", y2="high:Q"),
        *([named.encode(x="ts:T", y="low:Q", text="name:N")] if names else []),
    ]


def _rebalances(shown: Offsets, colours: Palette, *, in_band: bool) -> list[alt.Chart]:
    """When the group got a new generation: shaded in the band, a thin line through the picture."""
    if not shown.rebalances:
        return []
    rows = [
        {
            **row, "took": duration((row["ended"] - row["began"]).total_seconds()),
            "until": max(row["ended"], row["began"] + shown.scope.bucket),
        }
        for row in shown.rebalances
    ]  # fmt: skip
    tooltip = [
        alt.Tooltip("generation:Q", title="rebalance to generation"),
        alt.Tooltip("began_text:N", title=zoned("first word of it")),
        alt.Tooltip("took:N", title="until the last assignment"),
        alt.Tooltip("members:Q", title="members that joined"),
    ]
    chart = alt.Chart(data(rows))
    if in_band:
        mark = chart.mark_rect(color=colours.faint, opacity=0.45, clip=True)
        x = alt.X("began:T", axis=None) if shown.owners else time_axis(shown.scope, "began", axis=False)
        return [mark.encode(x=x, x2="until:T", tooltip=tooltip)]
    mark = chart.mark_rule(color=colours.faint, strokeDash=[2, 4], opacity=0.8, clip=True)
    return [mark.encode(x="ended:T", tooltip=tooltip)]


def _positions(shown: Offsets, members: _Members) -> list[alt.Chart]:
    if not shown.positions.num_rows:
        return []
    rows = [{**row, "member": shown.label_of_client(row["client_id"])} for row in shown.positions.to_pylist()]
    legend = None if shown.commits.num_rows else alt.Legend(**_BELOW)
    return [
        alt.Chart(data(rows))
        .mark_line(interpolate="step-after", strokeDash=[3, 3], strokeWidth=1.2, opacity=0.7, clip=True)
        .encode(
            x="ts:T",
            y="value:Q",
            detail="client_id:N",
            color=alt.Color("member:N", scale=members.colour, title="members", legend=legend),
            tooltip=[
                alt.Tooltip("client_id:N", title="client"),
                alt.Tooltip("value:Q", title="fetched up to", format=",d"),
                alt.Tooltip("ts_text:N", title=zoned("time")),
            ],
        )
    ]


def _commits(shown: Offsets, members: _Members, colours: Palette, *, select: Collection[str] = ()) -> list[alt.Chart]:
    rows = [_commit(shown, members, colours, row) for row in shown.commits.to_pylist()]
    if not rows:
        return []
    stepped = [row for row in rows if row["outcome"] == "accepted" and row["member"] != OTHERS]
    steps = alt.Chart(data(stepped)).mark_line(interpolate="step-after", strokeWidth=1.5, opacity=0.9, clip=True)
    area = _LARGE if len(rows) <= _FEW else _SMALL
    points = (
        alt.Chart(data(rows))
        .mark_point(filled=True, size=area, strokeWidth=area / 60, opacity=1, clip=True)
        .encode(
            x="ts:T",
            y=_offset_axis("value:Q", shown),
            color=alt.Color("member:N", scale=members.colour, title="members", legend=alt.Legend(**_BELOW)),
            shape=alt.Shape("member:N", scale=members.symbol, title="members", legend=alt.Legend(**_BELOW)),
            fillOpacity=alt.FillOpacity("solid:Q", scale=None, legend=None),
            stroke=alt.Stroke("stroke:N", scale=None, legend=None),
            tooltip=_commit_words(),
        )
    )
    if OPEN in select:
        points = points.add_params(alt.selection_point(name=OPEN, fields=["exchange_id"], toggle=False))
    over = [(CROSSED, "rejected"), (STRUCK, "aborted")]
    return [
        *([steps.encode(x="ts:T", y="value:Q", color=_quiet(members))] if stepped else []),
        *(_struck(of, path, area, colours) for path, outcome in over if (of := _with(rows, outcome))),
        points,  # on top: an empty one is clicked as well
    ]


def _quiet(members: _Members) -> alt.Color:
    return alt.Color("member:N", scale=members.colour, legend=None)


def _commit(shown: Offsets, members: _Members, colours: Palette, row: dict[str, Any]) -> dict[str, Any]:
    member = shown.label(row["client_id"], row["member_id"])
    is_solid = row["outcome"] == "accepted"
    stroke = colours.ink if is_solid else members.stroke(member)
    return {**row, "member": member, "stroke": stroke, "solid": int(is_solid)}


def _commit_words() -> list[alt.Tooltip]:
    return [
        alt.Tooltip("member:N", title="member"),
        alt.Tooltip("outcome:N", title="commit"),
        alt.Tooltip("value:Q", title="offset", format=",d"),
        alt.Tooltip("generation:Q", title="generation"),
        alt.Tooltip("error_name:N", title="error"),
        alt.Tooltip("ts_text:N", title=zoned("time")),
        alt.Tooltip("n:Q", title="commits here", format=",d"),
        alt.Tooltip("member_id:N", title="member id"),
        alt.Tooltip("exchange_id:N", title="exchange (click)"),
    ]


def _with(rows: Sequence[dict[str, Any]], outcome: str) -> list[dict[str, Any]]:
    return [row for row in rows if row["outcome"] == outcome]


def _struck(rows: Sequence[dict[str, Any]], path: str, area: int, colours: Palette) -> alt.Chart:
    """What is drawn through the symbols of commits that did not hold."""
    return (
        alt.Chart(data(rows))
        .mark_point(shape=path, size=area, filled=False, color=colours.ink, strokeWidth=2, clip=True)
        .encode(x="ts:T", y="value:Q")
    )


def _band(shown: Offsets, members: _Members, colours: Palette) -> alt.LayerChart:
    """Who owned the partition: a bar for each member and generation, rebalances shaded."""
    rows = []
    for owner, lane in zip(shown.owners, lanes(shown.owners), strict=True):
        member = shown.label(owner["client_id"], owner["member_id"])
        long = f"{member}, generation {owner['generation']}"
        rows.append(
            {
                **owner, **bar_words(owner, shown.scope, long, _LONG_NAME), "member": member, "lane": lane,
                "next_lane": lane + 0.9, "middle": lane + 0.45, "text_colour": readable_on(members.stroke(member)),
            }
        )  # fmt: skip
    depth = max((row["lane"] for row in rows), default=0) + 1
    y = alt.Y(
        "lane:Q", title=None, scale=alt.Scale(domain=[0, depth], nice=False, reverse=True),
        axis=label_axis(values=[0.45], labelExpr="'owner'", ticks=False, domain=False, grid=False),
    )  # fmt: skip
    bars = (
        alt.Chart(data(rows))
        .mark_rect(clip=True, stroke=colours.background, strokeWidth=1)
        .encode(
            x=alt.X("owned_from:T", axis=None), x2="owned_until:T", y=y, y2="next_lane:Q",
            color=_quiet(members),
            tooltip=bar_tooltips("member"),
        )
    )  # fmt: skip
    texts = alt.Chart(data(rows)).mark_text(align="left", dx=6, fontSize=11, clip=True)
    named = with_room(texts).encode(
        x=time_axis(shown.scope, "owned_from", axis=False), y="middle:Q", text="name:N",
        color=alt.Color("text_colour:N", scale=None, legend=None),
    )  # fmt: skip
    layers = [*([bars, named] if rows else []), *_rebalances(shown, colours, in_band=True)]
    return alt.layer(*layers).resolve_scale(color="independent").properties(height=depth * _LANE + _PADDING)
