"""Who sent what to whom, as a picture: a lane for each party, time down, each message an arrow with its words beside.

Messages are of one height whatever time is between them. A client has one colour; servers are ink. Shaded are the
messages that the story names; where messages are left out, or a pause is long, a dotted line says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import altair as alt

from pipeline.dashboard.queries.traffic.conversation import Conversation, Message
from pipeline.dashboard.web.pictures.colours import CROSSED, Palette, looks, palette
from pipeline.dashboard.web.pictures.picture import data
from pipeline.dashboard.web.zone import in_zone, zoned
from pipeline.humanize import duration, listed, pluralize
from pipeline.terminal.console import printable

OPEN = "open"
"""Name of the selection: the exchange that is clicked (``exchange_id``)."""
_STEP = 26
"""Pixels of a step."""
_TIME, _WORDS, _WHOLE = 1.0, 3.4, 9.5
"""Widths in lanes: of the times, of the words at least, and of all while lanes are few."""
_FEW_LANES = 4
"""Up to this many the names of lanes are in one row, else in two by turns."""
_HEAD = -2.8
"""Where the names of lanes stand; the first message is at 0."""
_LONG = 160
"""Characters of the words beside an arrow; all of them are shown when one points at it."""
_FONT = 12


def parties_picture(shown: Conversation, *, dark: bool, can_open: bool = True) -> alt.LayerChart:
    """The picture of a conversation.

    Args:
        shown: with at least one message.
        dark: whether it is on a dark page.
        can_open: whether the page is notified of ``OPEN``, a message that is clicked.
    """
    colours = palette(dark=dark)
    look = looks([party.name for party in shown.parties if party.role == "client"], colours)
    places, steps = _places(shown.messages)
    wide = _Widths(len(shown.parties), steps)
    rows = [_row(message, at, shown, look, colours) for message, at in zip(shown.messages, places, strict=True)]
    layers = [
        *_marked(rows, wide, colours),
        _lanes(shown, look, wide, colours),
        *_heads(shown, wide, colours),
        *_skipped(shown.messages, places, wide, colours),
        *_arrows(rows, wide, colours),
        *_texts(rows, wide, colours),
        _clicked(rows, wide, can_open=can_open),
    ]
    whole = alt.layer(*layers).resolve_scale(color="independent", shape="independent")
    return whole.properties(height=int((steps - _HEAD + 0.4) * _STEP), width="container").configure_view(strokeWidth=0)


def in_words(shown: Conversation) -> str:
    """What the picture has in it, for those who do not see it, and for its caption."""
    named = listed([f"{party.name} ({party.role})" for party in shown.parties])
    phrases = [f"{pluralize(len(shown.messages), 'message')} of {named}"]
    if wrong := sum(message.is_wrong for message in shown.messages):
        phrases.append(f"{wrong} refused or without an answer (crossed)")
    return printable("; ".join(phrases)) + "."


class _Widths:
    """Where lanes, times and words stand, in lanes; the first lane is at 0; and how many steps there are."""

    def __init__(self, lanes: int, steps: float) -> None:
        self.lanes = lanes
        self.steps = steps
        self.left = -_TIME
        self.words = lanes - 1 + 0.35
        self.right = self.words + max(_WORDS, _WHOLE - _TIME - self.words)

    def x(self, field: str = "x") -> alt.X:
        return alt.X(f"{field}:Q", scale=alt.Scale(domain=[self.left, self.right], nice=False), axis=None)

    def y(self, field: str = "at") -> alt.Y:
        domain = [_HEAD - 0.4, self.steps]
        return alt.Y(f"{field}:Q", scale=alt.Scale(domain=domain, reverse=True, zero=False, nice=False), axis=None)

    def at(self, place: float) -> alt.XDatum:
        return alt.XDatum(place, scale=alt.Scale(domain=[self.left, self.right], nice=False), axis=None)

    def room(self, lanes: float) -> Any:
        """Pixels of so many lanes, as an expression."""
        return alt.expr(f"width * {lanes / (self.right - self.left):.4f} - 6")


def _places(messages: Sequence[Message]) -> tuple[list[float], float]:
    """The step of each message, and how many steps there are: what is left out has a step of its own."""
    at, places = -1.0, []
    for message in messages:
        at += 2 if message.skipped or message.after else 1
        places.append(at)
    return places, at + 1


def _time(ts: datetime) -> str:
    return f"{in_zone(ts):%H:%M:%S.%f}"[:-3]


def _row(
    message: Message, at: float, shown: Conversation, look: dict[str, tuple[str, str]], colours: Palette
) -> dict[str, Any]:
    asked, arrow, answer = message.words.partition(" → ")
    words = f"{message.label}  {message.words}".strip()
    if message.is_wrong and arrow:  # the answer first: what comes last may be cut
        words = f"{message.label} → {answer}  ({asked})"
    cut = words if len(words) <= _LONG else f"{words[:_LONG]}…"
    sender = shown.parties[message.sender]
    return {
        "at": at, "low": at - 0.5, "high": at + 0.5, "x": float(message.sender), "x2": float(message.receiver),
        "time": _time(message.ts), "text": f"{'✕ ' if message.is_wrong else ''}{cut}", "words": words,
        "sender": sender.name, "receiver": shown.parties[message.receiver].name, "exchange_id": message.exchange_id,
        "is_wrong": message.is_wrong, "is_marked": message.is_marked,
        "colour": look[sender.name][0] if sender.name in look else colours.ink,
    }  # fmt: skip


def _marked(rows: Sequence[dict[str, Any]], wide: _Widths, colours: Palette) -> list[alt.Chart]:
    bands = [{**row, "left": wide.left, "right": wide.right} for row in rows if row["is_marked"]]
    if not bands:
        return []
    band = alt.Chart(data(bands)).mark_rect(color=colours.members[4], opacity=0.22)
    return [band.encode(x=wide.x("left"), x2="right:Q", y=wide.y("low"), y2="high:Q")]


def _lanes(shown: Conversation, look: dict[str, tuple[str, str]], wide: _Widths, colours: Palette) -> alt.Chart:
    rows = [
        {"x": float(place), "at": -0.8, "end": wide.steps - 0.4, "colour": look.get(party.name, (colours.ink, ""))[0]}
        for place, party in enumerate(shown.parties)
    ]
    lines = alt.Chart(data(rows)).mark_rule(strokeWidth=2, opacity=0.8)
    return lines.encode(x=wide.x(), y=wide.y(), y2="end:Q", color=alt.Color("colour:N", scale=None))


def _heads(shown: Conversation, wide: _Widths, colours: Palette) -> list[alt.Chart]:
    is_narrow = wide.lanes > _FEW_LANES
    rows = [
        {"x": float(place), "at": _HEAD + (0.8 if is_narrow and place % 2 else 0.1), "name": party.name,
         "role": party.role, "below": -1.2}
        for place, party in enumerate(shown.parties)
    ]  # fmt: skip
    base = alt.Chart(data(rows)).encode(
        x=wide.x(), tooltip=[alt.Tooltip("name:N", title="party"), alt.Tooltip("role:N", title="is a")]
    )
    limit = wide.room(1.9 if is_narrow else 0.98)
    names = base.mark_text(fontSize=_FONT, fontWeight="bold", color=colours.ink, limit=limit)
    roles = base.mark_text(fontSize=_FONT - 1, color=colours.ink, limit=wide.room(0.98))
    return [names.encode(y=wide.y(), text="name:N"), roles.encode(y=wide.y("below"), text="role:N")]


def _skipped(messages: Sequence[Message], places: Sequence[float], wide: _Widths, colours: Palette) -> list[alt.Chart]:
    rows = [
        {
            "at": at - 1, "x": -0.4, "x2": wide.lanes - 0.6,
            "after": "" if message.after is None else f"+{duration(message.after.total_seconds())}",
            "text": f"left out: {message.skipped}" if message.skipped else "nothing else about it",
        }
        for message, at in zip(messages, places, strict=True)
        if message.skipped or message.after
    ]  # fmt: skip
    if not rows:
        return []
    base = alt.Chart(data(rows)).encode(y=wide.y())
    line = base.mark_rule(color=colours.faint, strokeDash=[2, 4]).encode(x=wide.x(), x2="x2:Q")
    after = base.mark_text(align="right", dx=-4, fontSize=_FONT, color=colours.ink).encode(
        x=wide.at(-0.25), text="after:N"
    )
    words = base.mark_text(
        align="left", fontSize=_FONT, fontStyle="italic", color=colours.ink, limit=_words_room(wide)
    ).encode(x=wide.at(wide.words), text="text:N")
    return [line, after, words]


def _words_room(wide: _Widths) -> Any:
    return wide.room(wide.right - wide.words)


def _arrows(rows: Sequence[dict[str, Any]], wide: _Widths, colours: Palette) -> list[alt.Chart]:
    base = alt.Chart(data(rows)).encode(y=wide.y(), color=alt.Color("colour:N", scale=None))
    lines = base.mark_rule(strokeWidth=2).encode(x=wide.x(), x2="x2:Q")
    heads = [
        alt.Chart(data(some))
        .mark_point(shape=shape, filled=True, opacity=1, size=90)
        .encode(x=wide.x("x2"), y=wide.y(), color=alt.Color("colour:N", scale=None))
        for shape, to_right in (("triangle-right", True), ("triangle-left", False))
        if (some := [row for row in rows if not row["is_wrong"] and (row["x2"] >= row["x"]) is to_right])
    ]
    begins = base.mark_circle(size=40, opacity=1).encode(x=wide.x())
    wrong = [row for row in rows if row["is_wrong"]]
    crosses = alt.Chart(data(wrong)).mark_point(shape=CROSSED, size=60, strokeWidth=2.5, opacity=1, color=colours.ink)
    return [lines, begins, *heads, *([crosses.encode(x=wide.x("x2"), y=wide.y())] if wrong else [])]


def _texts(rows: Sequence[dict[str, Any]], wide: _Widths, colours: Palette) -> list[alt.Chart]:
    base = alt.Chart(data(rows)).encode(y=wide.y())
    times = base.mark_text(align="right", dx=-4, fontSize=_FONT, color=colours.ink)
    words = base.mark_text(align="left", fontSize=_FONT, limit=_words_room(wide), color=colours.ink)
    return [times.encode(x=wide.at(-0.25), text="time:N"), words.encode(x=wide.at(wide.words), text="text:N")]


def _clicked(rows: Sequence[dict[str, Any]], wide: _Widths, *, can_open: bool) -> alt.Chart:
    """What is pointed at and clicked: a whole step."""
    tips = {"sender": "from", "receiver": "to", "words": "says", "time": zoned("at")}
    whole = (
        alt.Chart(data([{**row, "left": wide.left, "right": wide.right} for row in rows]))
        .mark_rect(opacity=0.001, cursor="pointer" if can_open else "default")
        .encode(
            x=wide.x("left"), x2="right:Q", y=wide.y("low"), y2="high:Q",
            tooltip=[alt.Tooltip(f"{name}:N", title=title) for name, title in tips.items()],
        )
    )  # fmt: skip
    pick = alt.selection_point(name=OPEN, fields=["exchange_id"], on="click", empty=False)
    return whole.add_params(pick) if can_open else whole
