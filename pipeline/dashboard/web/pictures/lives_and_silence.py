"""What the picture of a partition marks besides: where members ended and their client came again, and silence."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from statistics import median
from typing import Any

import altair as alt

from pipeline.dashboard.queries.progress.members import ends_of_lives
from pipeline.dashboard.queries.progress.offsets import Offsets
from pipeline.dashboard.web.pictures.colours import CROSSED, Palette
from pipeline.dashboard.web.pictures.picture import data
from pipeline.dashboard.web.zone import zoned
from pipeline.humanize import duration

_LONG, _USUAL = 0.15, 4
"""A silence is named that is so large a part of the picture, and so many times as long as what is usual."""


@dataclass(frozen=True, slots=True)
class Death:
    """A member ended, and its client came again.

    Attributes:
        ts: when it owned the partition last.
        client_id, member_id: which.
        offset: what the group had committed then, from where the next one reads; else up to where it had fetched.
        is_committed: which of both.
    """

    ts: datetime
    client_id: str
    member_id: str
    offset: int
    is_committed: bool


def deaths_of(shown: Offsets) -> list[Death]:
    """Those of the picture for which an offset is known."""
    ends = ends_of_lives(shown.owners)
    if not ends:
        return []
    commits = [(row["ts"], row["value"]) for row in shown.commits.to_pylist() if row["outcome"] == "accepted"]
    fetched: dict[str, list[tuple[datetime, int]]] = {}
    for row in shown.positions.to_pylist():
        fetched.setdefault(row["client_id"], []).append((row["ts"], row["value"]))
    found = []
    for ts, client, member in ends:
        committed = _last(commits, ts)
        offset = _last(fetched.get(client, ()), ts) if committed is None else committed
        if offset is not None:
            found.append(Death(ts, client, member, offset, committed is not None))
    return found


def _last(stated: Iterable[tuple[datetime, int]], ts: datetime) -> int | None:
    """The offset that was stated last until then."""
    in_order = sorted(stated)
    before = bisect_right(in_order, ts, key=lambda one: one[0])
    return in_order[before - 1][1] if before else None


def deaths(shown: Offsets, colour: Callable[[str], str], colours: Palette) -> list[alt.Chart]:
    """A large cross in the client's colour at each end, with the offset where that is another than before.

    Args:
        shown: what the picture shows.
        colour: of a label.
        colours: of the theme.
    """
    ends = deaths_of(shown)
    if not ends:
        return []
    rows: list[dict[str, Any]] = [
        {
            "ts": end.ts, "value": end.offset, "who": end.client_id, "member_id": end.member_id,
            "colour": colour(shown.label(end.client_id, end.member_id)),
            "words": "" if before is not None and before.offset == end.offset else _words(end), "what": _words(end),
        }
        for before, end in zip([None, *ends], ends, strict=False)
    ]  # fmt: skip
    base = alt.Chart(data(rows)).encode(
        x="ts:T", y="value:Q",
        tooltip=[
            alt.Tooltip("who:N", title="ended, and came again"),
            alt.Tooltip("what:N", title="at"),
            alt.Tooltip("member_id:N", title="member id"),
            alt.Tooltip("ts_text:N", title=zoned("time")),
        ],
    )  # fmt: skip
    halo = base.mark_point(shape=CROSSED, size=170, strokeWidth=7, color=colours.background, opacity=1, clip=True)
    crosses = base.mark_point(shape=CROSSED, size=170, strokeWidth=3, opacity=1, clip=True).encode(
        color=alt.Color("colour:N", scale=None, legend=None)
    )
    words = base.mark_text(align="left", dx=9, dy=12, fontSize=11, color=colours.ink, clip=True)
    return [halo, crosses, words.encode(text="words:N")]


def _words(end: Death) -> str:
    return f"{end.offset:,} committed" if end.is_committed else f"fetched up to {end.offset:,}"


def longest_silence(shown: Offsets) -> tuple[datetime, datetime] | None:
    """Begin and end of the longest time without a commit, at the end of the picture too; None: none is long."""
    times = sorted(row["ts"] for row in shown.commits.to_pylist())
    if len(times) < 2:
        return None
    spaces = [(later - earlier, earlier, later) for earlier, later in pairwise([*times, shown.scope.end])]
    usual = median(space for space, *_ in spaces)
    longest, begin, end = max(spaces)
    whole = shown.scope.end - shown.scope.start
    is_long = longest >= max(whole * _LONG, usual * _USUAL, timedelta(seconds=1))
    return (begin, end) if is_long else None


def silence(shown: Offsets, colours: Palette) -> list[alt.Chart]:
    """A line at the bottom as long as the longest silence, and how long that is."""
    gap = longest_silence(shown)
    if gap is None:
        return []
    begin, end = gap
    words = f"no commit for {duration((end - begin).total_seconds())}"
    rows = [{"begin": begin, "end": end, "middle": begin + (end - begin) / 2, "words": words}]
    base = alt.Chart(data(rows))
    bottom = alt.value("height")  # of its own plot, also where that is part of another
    line = base.mark_rule(yOffset=-8, strokeWidth=2, strokeDash=[1, 3], color=colours.ink)
    named = base.mark_text(dy=-18, fontSize=12, color=colours.ink)
    line = line.encode(x="begin:T", x2="end:T", y=bottom)
    named = named.encode(x="middle:T", y=bottom, text="words:N")
    return [line, named]
