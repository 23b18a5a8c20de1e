"""The picture of a share-partition over time, as an Altair chart: who held which records, and how that ended (KIP-932).

A bar is a range of offsets from when a member got it until it acknowledged it, in the member's colour; the symbol at
its end says how: accepted is filled, released hollow, rejected crossed, a lock that ran out a cross alone.
"""

from __future__ import annotations

from collections import Counter

import altair as alt

from pipeline.dashboard.queries.progress.members import OTHERS, label_of
from pipeline.dashboard.queries.progress.shares import ENDINGS, SharesSeen
from pipeline.dashboard.web.pictures.colours import CROSSED, looks, palette
from pipeline.dashboard.web.pictures.picture import data, label_axis, time_axis
from pipeline.dashboard.web.zone import zoned
from pipeline.humanize import duration, pluralize
from pipeline.terminal.console import printable

OPEN = "open"
"""Name of the selection: ``exchange_id`` of the answer that gave a range out."""
_SYMBOLS = {
    "accepted": "circle", "released": "diamond", "rejected": "square", "lock ran out": CROSSED,
    "held": "triangle-right",
}  # fmt: skip
_HEIGHT = 380


def share_picture(shown: SharesSeen, *, dark: bool, can_open: bool = False) -> alt.LayerChart:
    """The chart.

    Args:
        shown: what was seen of the share-partition.
        dark: whether it is on a dark page.
        can_open: whether the page is notified of ``OPEN``, a range that is clicked.
    """
    colours = palette(dark=dark)
    labels = [member.label for member in shown.members]
    named = [label_of(shown.members, one.client_id, one.member_id) for one in shown.held]
    look = looks([*labels, *([OTHERS] if OTHERS in named else [])], colours)
    scale = alt.Scale(domain=[printable(name) for name in look], range=[colour for colour, _ in look.values()])
    rows = [
        {
            "began": one.began, "ended": one.ended, "low": one.first - 0.4, "high": one.last + 0.4, "first": one.first,
            "last": one.last, "middle": (one.first + one.last) / 2, "member": member, "deliveries": one.deliveries,
            "how": one.how, "solid": int(one.how == "accepted"), "member_id": one.member_id,
            "lasted": duration((one.ended - one.began).total_seconds()), "exchange_id": one.exchange_id,
        }
        for one, member in zip(shown.held, named, strict=True)
    ]  # fmt: skip
    offsets = [*(one.first for one in shown.held), *(one.last for one in shown.held), *(at for _, at in shown.starts)]
    offsets += [row["value"] for row in shown.lines.to_pylist() if row["line"] == "high_watermark"]
    domain = [min(offsets, default=0) - 1, max(offsets, default=1) + 1]
    y = alt.Y(
        "low:Q", title=None, scale=alt.Scale(domain=domain, zero=False, nice=False),
        axis=label_axis(format=",d", tickMinStep=1),
    )  # fmt: skip
    tooltip = [
        alt.Tooltip("member:N", title="member"),
        alt.Tooltip("first:Q", title="offsets from", format=",d"),
        alt.Tooltip("last:Q", title="to", format=",d"),
        alt.Tooltip("deliveries:Q", title="delivered the time"),
        alt.Tooltip("how:N", title="and then"),
        alt.Tooltip("lasted:N", title="held for"),
        alt.Tooltip("began_text:N", title=zoned("acquired")),
        alt.Tooltip("ended_text:N", title=zoned("until")),
        alt.Tooltip("member_id:N", title="member id"),
        alt.Tooltip("exchange_id:N", title="exchange"),
    ]
    legend = alt.Legend(orient="bottom", columns=3, labelLimit=320)
    colour = alt.Color("member:N", scale=scale, title="members", legend=legend)
    there = [how for how in ENDINGS if any(row["how"] == how for row in rows)]
    shape = alt.Shape(
        "how:N", scale=alt.Scale(domain=there, range=[_SYMBOLS[how] for how in there]), title="ended",
        legend=alt.Legend(orient="top", symbolStrokeColor=colours.ink, symbolFillColor="transparent"),
    )  # fmt: skip
    base = alt.Chart(data(rows))
    bars = base.mark_rect(opacity=0.55, clip=True, tooltip=True).encode(
        x=time_axis(shown.scope, "began"), x2="ended:T", y=y, y2="high:Q", color=colour, tooltip=tooltip
    )
    ends = base.mark_point(size=46, strokeWidth=1.4, clip=True, opacity=1).encode(
        x="ended:T", y="middle:Q", shape=shape, tooltip=tooltip, stroke=alt.value(colours.ink),
        fill=alt.Fill("member:N", scale=scale, legend=None), fillOpacity=alt.FillOpacity("solid:Q", scale=None),
    )  # fmt: skip
    if can_open:
        ends = ends.add_params(alt.selection_point(name=OPEN, fields=["exchange_id"], toggle=False))
    layers = [*([bars, ends] if rows else []), *_lines(shown, colours.ink)]
    return alt.layer(*layers).resolve_scale(color="independent", shape="independent").properties(height=_HEIGHT)


def _lines(shown: SharesSeen, ink: str) -> list[alt.Chart]:
    """The start offset and the high watermark."""
    rows = [{"ts": ts, "value": at, "line": "start of the share-partition"} for ts, at in shown.starts]
    rows += [
        {"ts": row["ts"], "value": row["value"], "line": "high watermark"}
        for row in shown.lines.to_pylist()
        if row["line"] == "high_watermark"
    ]
    if not rows:
        return []
    dash = alt.Scale(domain=["start of the share-partition", "high watermark"], range=[[2, 3], [1, 0]])
    return [
        alt.Chart(data(rows))
        .mark_line(interpolate="step-after", color=ink, strokeWidth=1.8, clip=True)
        .encode(
            x=time_axis(shown.scope),
            y="value:Q",
            strokeDash=alt.StrokeDash(
                "line:N", scale=dash, title="log",
                legend=alt.Legend(orient="top", symbolType="stroke", symbolSize=400, labelLimit=240),
            ),
            tooltip=[
                alt.Tooltip("line:N", title="what"),
                alt.Tooltip("value:Q", title="offset", format=",d"),
                alt.Tooltip("ts_text:N", title=zoned("time")),
            ],
        )
    ]  # fmt: skip


def in_words(shown: SharesSeen) -> str:
    """What the picture has in it, for those who do not see it, and for its caption."""
    ends = Counter(one.how for one in shown.held)
    endings = ", ".join(f"{ends[how]} {how}" for how in ENDINGS if ends[how])
    place = shown.place
    phrases = [
        f"{place.topic}-{place.partition} as share group {place.group} reads it: {endings or 'nothing delivered'}"
    ]
    again = max((one.deliveries for one in shown.held), default=0)
    if again > 1:
        phrases.append(f"a record came up to {again} times")
    if shown.left_out:
        phrases.append(f"{pluralize(shown.left_out, 'earlier range')} left out")
    return printable("; ".join(phrases)) + "."
