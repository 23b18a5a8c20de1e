"""The screen: from how things are to what rich draws, at any width and height."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from textwrap import wrap
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from pipeline.analysis.live_metrics.groups import GroupNow
from pipeline.analysis.live_metrics.traffic import ApiNow, CommandNow
from pipeline.analysis.safety.guard import attempt
from pipeline.commands.incidents import STYLES
from pipeline.commands.top.amounts import rate, span, volume
from pipeline.commands.top.sections import WIDEST, Section, sections
from pipeline.commands.top.sort import Order
from pipeline.embedded.live_monitor import Snapshot
from pipeline.humanize import pluralize
from pipeline.terminal.console import printable
from pipeline.terminal.lines import cut

KEYS = "q quit   sort by: l lag  t trend  r rate  p p99  e errors"
_LABELS = {"new": "NEW", "again": "AGAIN", "worse": "WORSE", "root": "CAUSE"}
_LEAST_ROWS = 3
"""Of a part, before another one has more; its head included."""
_MOST_LINES = 3
"""Of the first incident's headline, and of what is to be done, where the screen has an end."""
_LEAST_WIDTH = 20
_ALL_OF_IT = "… (all of it: wirelake diagnose)"
_SILENT_S = 5.0


@dataclass(frozen=True, slots=True)
class Shown:
    """What is shown beside how things are.

    Attributes:
        source: what is read, as the user named it.
        order: by what rows are ordered.
        silent_s: seconds since something came; None if nothing more can come: then no incident is marked as new.
        note: what is to be known of the reading; empty: nothing.
        has_keys: whether keys are heeded.
    """

    source: str
    order: Order = field(default_factory=Order)
    silent_s: float | None = None
    note: str = ""
    has_keys: bool = False


def screen(now: Snapshot, shown: Shown, width: int, height: int | None = None) -> RenderableType:
    """One screen.

    Args:
        now: how things are.
        shown: what else is to be shown.
        width: columns of the terminal.
        height: its lines, into which it fits; None: all of it.
    """
    parts = sections(now, shown.order, width)
    head = [*attempt("head of the screen", lambda: list(_head(now, shown, width)), list[Text]), Text()]
    foot = [Text(printable(shown.note), "yellow", no_wrap=True, overflow="ellipsis")] if shown.note else []
    if shown.has_keys:
        foot.append(Text(KEYS, "dim", no_wrap=True, overflow="ellipsis"))
    most = None if height is None else _MOST_LINES
    news = now.news if shown.silent_s is not None else {}
    incidents = attempt("panel INCIDENTS", lambda: list(_incidents(now, news, width, most)), list[Text])
    rows: Sequence[int] = [len(part.rows) for part in parts]
    lines = len(incidents)
    if height is not None:
        room = height - len(head) - len(foot) - len(parts)
        lines, *with_heads = shares([len(incidents), *(len(part.rows) + 1 for part in parts)], room)
        rows = [number - 1 for number in with_heads]
    drawn: list[RenderableType] = [*head, *incidents[:lines]]
    for part, number in zip(parts, rows, strict=True):
        if number >= 0:
            drawn += [Text(), _table(part, number, width)]
    if not parts:
        drawn.append(Text("No requests in this window.", "dim"))
    return Group(*drawn, *foot)


def shares(wanted: Sequence[int], room: int) -> list[int]:
    """How many lines each gets of this many: first a few for each, then in turn those that want more."""
    given = [0] * len(wanted)
    for least in (_LEAST_ROWS, max(wanted, default=0)):
        while room > 0:
            hungry = [n for n, want in enumerate(wanted) if given[n] < min(want, least)]
            if not hungry:
                break
            for number in hungry[:room]:
                given[number] += 1
            room -= len(hungry)
    return given


def _head(now: Snapshot, shown: Shown, width: int) -> Iterator[Text]:
    at = Text(f" {_clock(now.window.last_us, now.window.last_us)} UTC", "bold")
    title = Text(no_wrap=True, overflow="ellipsis")
    title.append("wirelake top ", "bold")
    title.append(printable(shown.source))
    title.truncate(width - at.cell_len, overflow="ellipsis", pad=True)
    yield title.append(at)
    lost = f"{now.bytes_lost:,} bytes lost" if now.bytes_lost else "no packets missing"
    waiting = f" ({now.pending:,} without an answer yet)" if now.pending else ""
    begin = _clock(now.first_us, now.window.last_us)
    exchanges = f"{pluralize(now.exchanges, 'exchange')}{waiting}"
    judged = f"{pluralize(now.connections, 'connection')}, {exchanges} since {begin}, {lost}"
    yield from _lines(judged, width, "" if not now.bytes_lost else "yellow")
    every: list[ApiNow | CommandNow] = [*now.traffic.apis, *now.traffic.commands]
    asked, failed = sum(one.asked for one in every), sum(one.errors for one in every)
    sent = sum(one.bytes for one in every)
    seconds = now.window.seconds
    often = f"{pluralize(asked, 'request')} ({rate(asked / seconds)})"
    words = [f"last {span(seconds)}: {often}, {pluralize(failed, 'error')}, {volume(sent / seconds)}"]
    if shown.silent_s is not None and shown.silent_s >= _SILENT_S:
        words.append(f"nothing came for {span(shown.silent_s)}")
    if now.since_us is not None:
        words.append(f"kept since {_clock(now.since_us, now.window.last_us)}, older dropped")
    yield from _lines("; ".join(words), width, "yellow" if len(words) > 1 else "")


def _lines(text: str, width: int, style: str) -> Iterator[Text]:
    """All of a text, in as many lines as it takes: its end states what was lost."""
    for line in wrap(text, max(width, _LEAST_WIDTH), break_on_hyphens=False):
        yield _line(line, style)


def _line(text: str, style: str = "") -> Text:
    return Text(printable(text), style, no_wrap=True, overflow="ellipsis")


def _clock(us: int, now_us: int) -> str:
    """A time (UTC), with its day if that is not today."""
    at, now = (datetime.fromtimestamp(one / 1_000_000, timezone.utc) for one in (us, now_us))
    return at.strftime("%H:%M:%S" if at.date() == now.date() else "%Y-%m-%d %H:%M:%S")


def _incidents(now: Snapshot, news: Mapping[str, str], width: int, most: int | None) -> Iterator[Text]:
    """A line each, and what is to be done about the first: ``most`` lines of that, None: all."""
    if all(row["state"] == "resolved" for row in now.incidents) and (grows := _growing(now.groups)):
        yield _line(f"No incident is open, but {grows}", "yellow")
    elif not now.incidents:
        looked = f"{pluralize(len(now.groups), 'group')} and {pluralize(len(now.traffic.clients), 'client')}"
        yield _line(f"No incident in what {looked} do.", "green")
    for index, row in enumerate(now.incidents):
        is_short = index > 0 or row["state"] == "resolved"
        lines = 1 if is_short else most
        yield from _incident(row, news.get(row["incident_id"], ""), now.last_us, width, lines)


def _growing(groups: Sequence[GroupNow]) -> str:
    """Which group's lag grows most, in words; empty: none does."""
    growing = sorted((one for one in groups if one.is_growing), key=lambda one: -(one.trend or 0))
    if not growing:
        return ""
    most, others = growing[0], len(growing) - 1
    more = f"; that of {pluralize(others, 'other group')} grows as well" if others else ""
    behind = pluralize(most.lag or 0, "record")
    return f"the lag of group {most.group_id} grows by {rate(most.trend)} ({behind} behind){more}."


def _incident(row: Mapping[str, Any], news: str, ended_us: int, width: int, most: int | None) -> Iterator[Text]:
    is_over = row["state"] == "resolved"
    style = "dim" if is_over else STYLES[row["severity"]]
    label = "RESOLVED" if is_over else _LABELS.get(news, "")
    # Of an unknown one nothing is known later than its last sign.
    until_us = ended_us if row["state"] == "ongoing" else row["last_us"]
    when = span((until_us - row["first_us"]) / 1e6)
    before = f"{row['severity'].upper():8} {label:8} {when:>6}  "
    is_short = most == 1
    lines = _cut(printable(row["headline"]), width - len(before), most)
    for number, line in enumerate(lines):
        text = Text(before if number == 0 else " " * len(before), style, no_wrap=True, overflow="ellipsis")
        yield text.append(line, "dim" if is_over else "not bold default" if is_short else "bold")
    if not is_short:
        for number, line in enumerate(_sentences(printable(row["immediate_action"]), width - len(before), most)):
            text = Text(
                f"{'now' if number == 0 else '':>{len(before) - 2}}  ", "dim", no_wrap=True, overflow="ellipsis"
            )
            yield text.append(line, "not dim")


def _cut(text: str, width: int, most: int | None) -> list[str]:
    """Lines of a text, the last with … in place of what does not fit."""
    if most == 1:
        return [cut(text, width)]
    return wrap(text, max(width, _LEAST_WIDTH), max_lines=most, placeholder="…", break_on_hyphens=False) or [""]


def _sentences(text: str, width: int, most: int | None) -> list[str]:
    """Lines of a text; of one that does not fit whole sentences, else what precedes a command, and where all is."""
    lines = _cut(text, width, None)
    if most is None or len(lines) <= most:
        return lines
    ends = [found.end() for found in re.finditer(r"\.(?= )", text) if text.count("`", 0, found.end()) % 2 == 0]
    command = text.find("`")
    for end in (*reversed(ends), *([command] if command >= 0 else [])):
        lines = _cut(f"{text[:end].rstrip(' (')} {_ALL_OF_IT}".lstrip(), width, None)
        if len(lines) <= most:
            return lines
    return _cut(text, width, most)


def _table(part: Section, rows: int, width: int) -> Table:
    """A part with this many of its rows."""
    hidden = len(part.rows) - rows
    table = Table(box=None, expand=True, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold", show_edge=False)
    for index, column in enumerate(part.columns):
        title = f"{column.title} {rows} of {len(part.rows)}" if index == 0 and hidden else column.title
        table.add_column(
            f"{title}▼" if column.sort is part.sort else title,
            justify="left" if column.grows or column.is_text else "right",
            no_wrap=True, overflow="ellipsis", ratio=1 if column.grows else None,
            max_width=column.most if width < WIDEST else None,
        )  # fmt: skip
    for cells in part.rows[:rows]:
        table.add_row(*(Text(printable(text), style, no_wrap=True, overflow="ellipsis") for text, style in cells))
    return table
