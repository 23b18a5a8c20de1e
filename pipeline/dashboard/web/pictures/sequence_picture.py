"""A connection as a picture: the client's lane and the server's, time down, requests and responses as arrows.

Steps are of one height whatever time is between them; beside each is when it was and how long after the one
before. Shaded bars at the server's lane are requests that wait. An error has a colour and a cross. Thin arrows are
TCP's: who opened the connection, sent a segment again, asked to be sent nothing, and who ended it.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Any, Literal

import altair as alt

from pipeline.dashboard.queries.traffic.steps import Connection, Step, Wait
from pipeline.dashboard.web.pictures.colours import CROSSED, Palette, palette
from pipeline.dashboard.web.pictures.picture import data
from pipeline.dashboard.web.zone import in_zone, zoned
from pipeline.humanize import duration, pluralize
from pipeline.terminal.console import printable

OPEN = "open"
"""Name of the selection: the exchange that is clicked (``exchange_id``)."""

_STEP = 27
"""Pixels of a step."""
_LEFT, _RIGHT = -0.3, 1.22
"""Where the picture begins and ends; the lanes are at 0 and 1."""
_BAR, _BARS = 0.022, 8
"""Width of a waiting bar, and how many are beside each other; more are drawn over the last."""
_LONG = 110
"""Characters of a text beside an arrow; all of it is shown when one points at it."""
_ROOM = f"width * {1 / (_RIGHT - _LEFT):.2f} - 20"
"""Pixels of a text: as much as is between the lanes."""
_FONT = 12
_TCP = ("opened", "again", "full", "ended")
_ENDINGS = {
    "answered": "answered", "open": "not answered yet", "closed": "not answered before the connection ended",
    "unknown": "no answer seen",
}  # fmt: skip


def sequence_picture(
    shown: Connection, ends: tuple[str, str], marked: Set[str], *, dark: bool, can_open: bool = True
) -> alt.LayerChart:
    """The picture of a part of a connection.

    Args:
        shown: what it shows; not empty.
        ends: client and server, in words.
        marked: ids of the exchanges that are marked.
        dark: whether it is on a dark page.
        can_open: whether the page is notified of ``OPEN``, a step that is clicked.
    """
    colours = palette(dark=dark)
    steps = [_step(step, before) for before, step in zip([None, *shown.steps], shown.steps, strict=False)]
    layers = [
        *_marked(shown, marked, colours),
        *_pauses(shown, colours),
        _lanes(colours, len(steps)),
        *_heads(ends, colours),
        *_waits(shown.waits, colours),
        *_losses(steps, colours),
        *_arrows([step for step in steps if step["kind"] in ("request", "response")], colours),
        *_of_tcp([step for step in steps if step["kind"] in _TCP], colours),
        *_texts(steps, colours),
        _clicked(steps, can_open=can_open),
    ]
    own = alt.layer(*layers).resolve_scale(color="independent", shape="independent")
    return own.properties(height=(len(steps) + 1) * _STEP)


def in_words(shown: Connection, ends: tuple[str, str]) -> str:
    """What the picture has in it, for those who do not see it, and for its caption."""
    requests = sum(step.kind == "request" for step in shown.steps)
    phrases = [f"{pluralize(requests, 'request')} of {ends[0]} to {ends[1]}"]
    wrong = sum(wait.is_wrong for wait in shown.waits)
    waiting = [wait for wait in shown.waits if wait.ending != "answered"]
    longest = max((wait.latency for wait in shown.waits if wait.latency is not None), default=None)
    if longest is not None:
        phrases.append(f"the longest wait was {duration(longest.total_seconds())}")
    if wrong:
        phrases.append(f"{wrong} answered with an error (crossed)")
    if waiting:
        phrases.append(f"{len(waiting)} without an answer (open at the end)")
    if lost := sum(step.kind == "lost" for step in shown.steps):
        phrases.append(f"{pluralize(lost, 'loss', 'losses')} of the capture (dotted)")
    if of_tcp := [step.label or "the end" for step in shown.steps if step.kind in _TCP]:
        *some, last = dict.fromkeys(of_tcp)
        phrases.append(f"TCP: {' and '.join(filter(None, (', '.join(some), last)))} (thin)")
    if any(step.kind == "joined" for step in shown.steps):
        phrases.append("some requests were not seen")
    return printable("; ".join(phrases)) + "."


def _tooltips() -> list[alt.Tooltip]:
    titles = {"words": "says", "time": zoned("at"), "after": "after the step before"}
    return [alt.Tooltip(f"{name}:N", title=title) for name, title in titles.items()]


def _step(step: Step, before: Step | None) -> dict[str, Any]:
    to_server = "request" in (step.kind, step.direction)
    is_next = before is not None and step.kind == "response" and before.exchange_id == step.exchange_id
    words = step.words if is_next and step.words else f"{step.label} {step.words}".strip()
    return {
        "at": step.at, "kind": step.kind, "exchange_id": step.exchange_id or "",
        "text": f"{'✕ ' if step.is_wrong else ''}{words if len(words) <= _LONG else words[:_LONG] + '…'}",
        "words": words, "time": f"{in_zone(step.ts):%H:%M:%S.%f}"[:-3],
        "after": "" if step.after is None else f"+{duration(step.after.total_seconds())}",
        "x": 0.0 if to_server else 1.0, "x2": 1.0 if to_server else 0.0, "is_wrong": step.is_wrong,
        "from_client": step.direction != "response", "direction": step.direction,
    }  # fmt: skip


def _x(field: str = "x") -> alt.X:
    return alt.X(f"{field}:Q", scale=alt.Scale(domain=[_LEFT, _RIGHT], nice=False), axis=None)


def _y(field: str = "at") -> alt.Y:
    return alt.Y(f"{field}:Q", scale=alt.Scale(reverse=True, zero=False, nice=False, padding=0), axis=None)


def _lanes(colours: Palette, steps: int) -> alt.Chart:
    lanes = [{"x": float(lane), "at": -1.0, "end": float(steps) - 0.4} for lane in (0, 1)]
    return alt.Chart(data(lanes)).mark_rule(strokeWidth=2, color=colours.ink).encode(x=_x(), y=_y(), y2="end:Q")


def _heads(ends: tuple[str, str], colours: Palette) -> list[alt.Chart]:
    sides: list[tuple[Literal["left", "right"], float]] = [("left", _LEFT), ("right", _RIGHT)]
    heads = []
    for (align, x), text in zip(sides, ends, strict=True):
        head = alt.Chart(data([{"x": x, "at": -1.0, "text": text}])).mark_text(
            align=align, fontWeight="bold", dy=-10, fontSize=_FONT, limit=alt.expr("width * 0.55"), color=colours.ink
        )
        heads.append(head.encode(x=_x(), y=_y(), text="text:N"))
    return heads


def _marked(shown: Connection, marked: Set[str], colours: Palette) -> list[alt.Chart]:
    places = [step.at for step in shown.steps if step.exchange_id in marked]
    if not places:
        return []
    rows = [{"at": place - 0.75, "end": place + 0.25, "x": _LEFT, "x2": _RIGHT} for place in places]
    band = alt.Chart(data(rows)).mark_rect(color=colours.members[4], opacity=0.28)
    return [band.encode(x=_x(), x2="x2:Q", y=_y(), y2="end:Q")]


def _pauses(shown: Connection, colours: Palette) -> list[alt.Chart]:
    """A line between the lanes where nothing happened for much longer than usual."""
    rows = [{"at": step.at - 0.8, "x": 0.0, "x2": 1.0} for step in shown.steps if step.is_pause]
    if not rows:
        return []
    line = alt.Chart(data(rows)).mark_rule(color=colours.faint, strokeDash=[8, 8], strokeWidth=1)
    return [line.encode(x=_x(), x2="x2:Q", y=_y())]


def _waits(waits: Sequence[Wait], colours: Palette) -> list[alt.Chart]:
    if not waits:
        return []
    rows = [
        {
            "x": 1.01 + min(wait.lane, _BARS - 1) * _BAR, "x2": 1.01 + min(wait.lane, _BARS - 1) * _BAR + _BAR * 0.8,
            "at": float(wait.first), "end": wait.last + (0.0 if wait.ending == "answered" else 0.45),
            "exchange_id": wait.exchange_id, "ending": _ENDINGS[wait.ending],
            "waited": "" if wait.latency is None else duration(wait.latency.total_seconds()),
            "colour": colours.members[1] if wait.is_wrong or wait.ending == "closed" else colours.members[0],
        }
        for wait in waits
    ]  # fmt: skip
    bars = alt.Chart(data(rows)).mark_rect(opacity=0.55).encode(
        x=_x(), x2="x2:Q", y=_y(), y2="end:Q", color=alt.Color("colour:N", scale=None),
        tooltip=[alt.Tooltip("waited:N", title="waited"), alt.Tooltip("ending:N", title="and was")],
    )  # fmt: skip
    open_ends = [row for row in rows if row["ending"] != "answered"]
    if not open_ends:
        return [bars]
    words = alt.Chart(data(open_ends)).mark_text(align="left", dx=4, dy=-4, fontSize=_FONT, color=colours.ink)
    return [bars, words.encode(x=_x("x2"), y=_y("end"), text=alt.value("…"))]


def _arrows(steps: Sequence[dict[str, Any]], colours: Palette) -> list[alt.Chart]:
    if not steps:
        return []
    rows = [{**step, "colour": colours.members[1] if step["is_wrong"] else colours.ink} for step in steps]
    base = alt.Chart(data(rows)).encode(y=_y(), color=alt.Color("colour:N", scale=None))
    lines = base.mark_rule(strokeWidth=1.5).encode(
        x=_x(), x2="x2:Q",
        strokeDash=alt.StrokeDash("kind:N", scale=alt.Scale(domain=["request", "response"], range=[[1, 0], [6, 3]]),
                                  legend=None),
    )  # fmt: skip
    shapes = alt.Scale(domain=["request", "response"], range=["triangle-right", "triangle-left"])
    heads = base.mark_point(filled=True, opacity=1, size=90).encode(
        x=_x("x2"), shape=alt.Shape("kind:N", scale=shapes, legend=None)
    )
    wrong = [row for row in rows if row["is_wrong"]]
    crosses = alt.Chart(data(wrong)).mark_point(
        shape=CROSSED, size=60, strokeWidth=2, opacity=1, color=colours.members[1]
    )
    return [lines, heads, *([crosses.encode(x=_x(), y=_y())] if wrong else [])]


def _of_tcp(steps: Sequence[dict[str, Any]], colours: Palette) -> list[alt.Chart]:
    """An arrow of whoever sent it; a line where that is not known."""
    if not steps:
        return []
    line = alt.Chart(data(steps)).mark_rule(strokeWidth=1, color=colours.faint).encode(x=_x(), x2="x2:Q", y=_y())
    heads = [
        alt.Chart(data(some))
        .mark_point(shape=shape, filled=True, opacity=1, size=60, color=colours.faint)
        .encode(x=_x("x2"), y=_y())
        for direction, shape in (("request", "triangle-right"), ("response", "triangle-left"))
        if (some := [step for step in steps if step["direction"] == direction])
    ]
    return [line, *heads]


def _losses(steps: Sequence[dict[str, Any]], colours: Palette) -> list[alt.Chart]:
    rows = [
        {**step, "low": step["at"] - 0.75, "high": step["at"] + 0.25, "x": 0.0, "x2": 1.0}
        for step in steps
        if step["kind"] in ("lost", "joined")
    ]
    if not rows:
        return []
    base = alt.Chart(data(rows)).encode(x=_x(), x2="x2:Q")
    band = base.mark_rect(color=colours.faint, opacity=0.25).encode(y=_y("low"), y2="high:Q")
    line = base.mark_rule(color=colours.ink, strokeDash=[2, 4]).encode(y=_y())
    return [band, line]


def _texts(steps: Sequence[dict[str, Any]], colours: Palette) -> list[alt.Chart]:
    base = alt.Chart(data(steps)).encode(y=_y())
    time = base.mark_text(align="right", dx=-8, fontSize=_FONT, color=colours.ink).encode(
        x=alt.XDatum(0, scale=alt.Scale(domain=[_LEFT, _RIGHT], nice=False), axis=None), text="time:N"
    )
    after = base.mark_text(align="right", dx=-8, dy=-12, fontSize=_FONT - 1, color=colours.faint).encode(
        x=alt.XDatum(0, scale=alt.Scale(domain=[_LEFT, _RIGHT], nice=False), axis=None), text="after:N"
    )
    words = base.mark_text(align="left", dx=10, dy=-9, fontSize=_FONT, limit=alt.expr(_ROOM), color=colours.ink).encode(
        x=alt.XDatum(0, scale=alt.Scale(domain=[_LEFT, _RIGHT], nice=False), axis=None), text="text:N"
    )
    return [after, time, words]


def _clicked(steps: Sequence[dict[str, Any]], *, can_open: bool) -> alt.Chart:
    """What is pointed at and clicked: a whole step."""
    rows = [
        {**step, "low": step["at"] - 0.75, "high": step["at"] + 0.25, "x": _LEFT, "x2": _RIGHT}
        for step in steps
        if step["exchange_id"]
    ]
    whole = (
        alt.Chart(data(rows) if rows else data([{"low": 0, "high": 0, "x": 0, "x2": 0, "exchange_id": ""}]))
        .mark_rect(opacity=0.001, cursor="pointer" if can_open else "default")
        .encode(x=_x(), x2="x2:Q", y=_y("low"), y2="high:Q", tooltip=_tooltips() if rows else [])
    )
    pick = alt.selection_point(name=OPEN, fields=["exchange_id"], on="click", empty=False)
    return whole.add_params(pick) if can_open else whole
