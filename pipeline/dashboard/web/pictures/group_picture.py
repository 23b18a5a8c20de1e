"""The picture of a group over time, as Altair charts below each other: owners, waiting members, lag, pauses of commits.

A member has one colour in all of them. Lag is shown by lightness, which means more of the same and not good or bad.
"""

from __future__ import annotations

from typing import Any

import altair as alt

from pipeline.dashboard.queries.progress.groups import MOST_PARTITIONS, GroupSeen
from pipeline.dashboard.queries.progress.members import ends_of_lives
from pipeline.dashboard.web.pictures.colours import CROSSED, Palette, looks, palette, readable_on
from pipeline.dashboard.web.pictures.owner_bars import bar_tooltips, bar_words, with_room
from pipeline.dashboard.web.pictures.picture import below_each_other, data, label_axis, name_axis, shade, time_axis
from pipeline.dashboard.web.zone import zoned
from pipeline.humanize import duration, pluralize
from pipeline.terminal.console import printable

MOST_WAITING = 40
"""Members in the picture of who waited: those that waited longest."""
_LANE = 22
_LONG_NAME = 0.12
"""Part of the width from which on a bar has room for a member's name."""
PARTS = ("owners", "waits", "lag", "gaps")
"""Names of the parts, from top to bottom."""
_ROOM = {"owners": 148, "waits": 104, "lag": 188, "gaps": 104}
"""Pixels that title, axis and legend of each part take; of owners without the rows of members' names."""
_LEGEND_ROW, _LEGEND_WIDTH, _LEGEND_LETTER, _LEGEND_SYMBOL, _LONGEST = 28, 700, 8, 40, 320
"""Of the legend on a page, pixels: a row, all of a row, a character, what is beside a name, the longest name."""
_TITLES = {
    "owners": "Who owned which partition; shaded: a rebalance; crossed: a member ended, and its client came again",
    "waits": "JoinGroup, from question to answer; a dash: who was waited for",
    "lag": "Lag: records that the group has not committed",
    "gaps": "Seconds between two commits of a member on a partition, the longest of each moment",
}


def group_picture(shown: GroupSeen, *, dark: bool) -> dict[str, alt.LayerChart | alt.Chart]:
    """The charts of a group, of one axis of time each: ``owners``, ``waits``, ``lag``, ``gaps``, as far as known.

    Args:
        shown: what was seen of it.
        dark: whether it is on a dark page.
    """
    colours = palette(dark=dark)
    found: dict[str, alt.LayerChart | alt.Chart | None] = {
        "owners": _owners(shown, colours),
        "waits": _waits(shown, colours),
        "lag": _lag(shown, dark=dark),
        "gaps": _gaps(shown, colours),
    }
    return {name: chart.properties(title=_title(name, colours)) for name, chart in found.items() if chart is not None}


def one_group_chart(shown: GroupSeen, *, dark: bool, width: int) -> alt.VConcatChart:
    """All parts as one chart, ``width`` pixels wide, e.g. for a notebook."""
    parts = list(group_picture(shown, dark=dark).values())
    return below_each_other(parts, "color", "shape", dark=dark, width=width)


def in_words(shown: GroupSeen) -> str:
    """What the picture has in it, for those who do not see it, and for its caption."""
    phrases = [f"Group {shown.group.group_id}: members {', '.join(shown.labels) or 'not seen'}"]
    if shown.rebalances:
        longest = max(shown.rebalances, key=lambda one: one.seconds)
        phrases.append(f"{pluralize(len(shown.rebalances), 'rebalance')}, the longest took {duration(longest.seconds)}")
    if len(shown.partitions) == MOST_PARTITIONS:
        phrases.append(f"of its partitions the {MOST_PARTITIONS} with most lag")
    return printable("; ".join(phrases)) + "."


def _title(name: str, colours: Palette) -> alt.TitleParams:
    return alt.TitleParams(_TITLES[name], anchor="start", fontSize=13, fontWeight="normal", color=colours.ink)


def _colour(shown: GroupSeen, colours: Palette, *, legend: bool) -> alt.Color:
    return alt.Color(
        "member:N", scale=_scale(shown, colours, 0), title="members", legend=_legend(shown) if legend else None
    )


def _scale(shown: GroupSeen, colours: Palette, which: int) -> alt.Scale:
    found = {printable(label): look for label, look in looks(shown.labels, colours).items()}
    return alt.Scale(domain=list(found), range=[look[which] for look in found.values()])


def _legend(shown: GroupSeen) -> alt.Legend:
    return alt.Legend(orient="bottom", columns=_legend_columns(shown), labelLimit=_LONGEST, symbolSize=90)


def _legend_columns(shown: GroupSeen) -> int:
    """As many as the names have room for, three at most."""
    longest = max((len(printable(label)) for label in shown.labels), default=0)
    width = min(longest * _LEGEND_LETTER, _LONGEST) + _LEGEND_SYMBOL
    return max(1, min(3, _LEGEND_WIDTH // width))


def room(name: str, shown: GroupSeen) -> int:
    """Pixels that a part takes beside its plot: a page fits title, axis and legend into a chart's height.

    Args:
        name: one of ``PARTS``.
        shown: what it shows; the legend of owners has a row for some of its members each.
    """
    rows = -(-len(shown.labels) // _legend_columns(shown)) if name == "owners" else 0
    return _ROOM[name] + rows * _LEGEND_ROW


def _places(shown: GroupSeen) -> alt.Y:
    names = [_place(*place) for place in shown.partitions]
    return alt.Y("place:N", title=None, scale=alt.Scale(domain=names), axis=name_axis())


def _place(topic: str, partition: int) -> str:
    return printable(f"{topic}-{partition}")


def _lanes(count: int) -> int:
    return max(1, count) * _LANE


def _owners(shown: GroupSeen, colours: Palette) -> alt.LayerChart | None:
    places = set(shown.partitions)
    look = looks(shown.labels, colours)
    rows = []
    for owned in shown.owned:
        if (owned["topic"], owned["partition"]) not in places:
            continue
        member = shown.label(owned["client_id"], owned["member_id"])
        own = shown.name(owned["client_id"], owned["member_id"])
        rows.append(
            {
                **owned, **bar_words(owned, shown.scope, own, _LONG_NAME), "owner": own, "member": member,
                "place": _place(owned["topic"], owned["partition"]), "text_colour": readable_on(look[member][0]),
            }
        )  # fmt: skip
    if not rows:
        return None
    bars = (
        alt.Chart(data(rows))
        .mark_bar(clip=True, stroke=colours.background, strokeWidth=1, height={"band": 0.85})
        .encode(
            x=time_axis(shown.scope, "owned_from"), x2="owned_until:T", y=_places(shown),
            color=_colour(shown, colours, legend=True),
            tooltip=[alt.Tooltip("place:N", title="partition"), *bar_tooltips("owner")],
        )
    )  # fmt: skip
    texts = alt.Chart(data([row for row in rows if row["name"]] or rows[:1]))
    named = (
        with_room(texts)
        .mark_text(align="left", dx=5, fontSize=11, clip=True)
        .encode(x="owned_from:T", y="place:N", text="name:N", color=alt.Color("text_colour:N", scale=None, legend=None))
    )
    layers = alt.layer(bars, named, *_shades(shown, colours), *_ends(shown, colours)).resolve_scale(color="independent")
    return layers.properties(height=_lanes(len(shown.partitions)))


def _ends(shown: GroupSeen, colours: Palette) -> list[alt.Chart]:
    """A cross where a member ended whose client came again, on each of its partitions."""
    ends = set(ends_of_lives(shown.owned))
    places = set(shown.partitions)
    rows: list[dict[str, Any]] = [
        {
            "ts": owned["owned_until"], "place": _place(owned["topic"], owned["partition"]),
            "who": owned["client_id"], "member_id": owned["member_id"],
        }
        for owned in shown.owned
        if (owned["owned_until"], owned["client_id"], owned["member_id"]) in ends
        and (owned["topic"], owned["partition"]) in places
    ]  # fmt: skip
    if not rows:
        return []
    base = alt.Chart(data(rows)).encode(
        x="ts:T", y="place:N",
        tooltip=[
            alt.Tooltip("who:N", title="ended, and came again"),
            alt.Tooltip("member_id:N", title="member id"),
            alt.Tooltip("ts_text:N", title=zoned("time")),
        ],
    )  # fmt: skip
    halo = base.mark_point(shape=CROSSED, size=120, strokeWidth=6, color=colours.background, opacity=1, clip=True)
    return [halo, base.mark_point(shape=CROSSED, size=120, strokeWidth=2.5, color=colours.ink, opacity=1, clip=True)]


def _shades(shown: GroupSeen, colours: Palette) -> list[alt.Chart]:
    """Each rebalance from its first word to the last assignment."""
    if not shown.rebalances:
        return []
    rows: list[dict[str, Any]] = [
        {
            "began": one.began, "until": max(one.ended, one.began + shown.scope.bucket), "generation": one.generation,
            "took": duration(one.seconds), "members": one.members, "waited": duration(one.waited),
            "culprit": f"{shown.name(*one.culprit)} {one.why}" if one.culprit else "no one",
        }
        for one in shown.rebalances
    ]  # fmt: skip
    return [
        alt.Chart(data(rows))
        .mark_rect(color=colours.faint, opacity=0.35, clip=True)
        .encode(
            x="began:T", x2="until:T",
            tooltip=[
                alt.Tooltip("generation:Q", title="rebalance to generation"),
                alt.Tooltip("took:N", title="took"),
                alt.Tooltip("members:Q", title="members that took part"),
                alt.Tooltip("waited:N", title="they waited, together"),
                alt.Tooltip("culprit:N", title="waited for"),
                alt.Tooltip("began_text:N", title=zoned("began")),
            ],
        )
    ]  # fmt: skip


def _waits(shown: GroupSeen, colours: Palette) -> alt.LayerChart | None:
    rows: list[dict[str, Any]] = [
        {
            "who": printable(shown.name(wait.client_id, wait.member_id)), "asked": wait.asked,
            "answered": wait.answered, "member": shown.label(wait.client_id, wait.member_id),
            "generation": one.generation, "waited": duration(wait.seconds), "seconds": wait.seconds,
            "why": one.why if one.culprit == (wait.client_id, wait.member_id) else "",
        }
        for one in shown.rebalances
        for wait in one.waits
    ]  # fmt: skip
    if not rows:
        return None
    most: dict[str, float] = {}
    for row in rows:
        most[row["who"]] = most.get(row["who"], 0) + row["seconds"]
    named = sorted(sorted(most, key=lambda name: -most[name])[:MOST_WAITING])
    kept = [row for row in rows if row["who"] in set(named)]
    bars = (
        alt.Chart(data(kept))
        .mark_bar(clip=True, height={"band": 0.7}, minBandSize=3, strokeWidth=2)
        .encode(
            x=time_axis(shown.scope, "asked"), x2="answered:T",
            y=alt.Y("who:N", title=None, scale=alt.Scale(domain=named), axis=name_axis()),
            color=_colour(shown, colours, legend=False),
            tooltip=[
                alt.Tooltip("who:N", title="member"),
                alt.Tooltip("generation:Q", title="to generation"),
                alt.Tooltip("waited:N", title="waited"),
                alt.Tooltip("asked_text:N", title=zoned("asked")),
                alt.Tooltip("answered_text:N", title=zoned("answered")),
                alt.Tooltip("why:N", title="and"),
            ],
        )
    )  # fmt: skip
    late = [row for row in kept if row["why"]]
    outlined = (
        alt.Chart(data(late))
        .mark_point(shape="stroke", angle=90, size=300, strokeWidth=3, color=colours.ink, clip=True)
        .encode(x="asked:T", y="who:N", tooltip=[alt.Tooltip("who:N", title="waited for"), alt.Tooltip("why:N")])
    )
    layers = [bars, *([outlined] if late else []), *_shades(shown, colours)]
    return alt.layer(*layers).properties(height=_lanes(len(named)))


def _lag(shown: GroupSeen, *, dark: bool) -> alt.Chart | None:
    places = set(shown.partitions)
    rows = [
        {
            **row, "place": _place(row["topic"], row["partition"]), "shade": float(max(row["lag"], 1)),
            "behind": duration(row["lag_seconds"]) or "not known",
        }
        for row in shown.lag.to_pylist()
        if (row["topic"], row["partition"]) in places
    ]  # fmt: skip
    if not rows:
        return None
    top = max(row["shade"] for row in rows)
    return (
        alt.Chart(data(rows))
        .mark_rect(clip=True)
        .encode(
            x=time_axis(shown.scope, "began"), x2="ended:T", y=_places(shown),
            color=shade("shade:Q", "records behind", (1, max(top, 10)), dark=dark, form="~s"),
            tooltip=[
                alt.Tooltip("place:N", title="partition"),
                alt.Tooltip("lag:Q", title="lag, records", format=",d"),
                alt.Tooltip("behind:N", title="oldest waits for"),
                alt.Tooltip("began_text:N", title=zoned("from")),
            ],
        )
        .properties(height=_lanes(len(shown.partitions)))
    )  # fmt: skip


def _gaps(shown: GroupSeen, colours: Palette) -> alt.Chart | None:
    rows = [
        {
            **row,
            "member": shown.label(row["client_id"], row["member_id"]),
            "place": _place(row["topic"], row["partition"]),
        }
        for row in shown.gaps.to_pylist()
    ]
    if not rows:
        return None
    return (
        alt.Chart(data(rows))
        .mark_point(filled=True, size=36, opacity=0.9, stroke=colours.ink, strokeWidth=0.4, clip=True)
        .encode(
            x=time_axis(shown.scope),
            y=alt.Y("gap:Q", title=None, scale=alt.Scale(type="log"), axis=label_axis(format="~g", tickCount=5)),
            color=_colour(shown, colours, legend=False),
            shape=alt.Shape("member:N", scale=_scale(shown, colours, 1), legend=None),
            tooltip=[
                alt.Tooltip("member:N", title="member"),
                alt.Tooltip("place:N", title="partition"),
                alt.Tooltip("gap:Q", title="seconds since its commit before", format=",.3f"),
                alt.Tooltip("n:Q", title="commits here", format=",d"),
                alt.Tooltip("ts_text:N", title=zoned("time")),
            ],
        )
        .properties(height=180)
    )
