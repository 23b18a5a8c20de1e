"""Times, durations, counts and names of the wire as the page writes them. Text only: nothing here draws."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pipeline.dashboard.web.zone import in_zone, short_zone, text_in_zone
from pipeline.humanize import duration
from pipeline.terminal.console import printable

_MARKDOWN = re.compile(r"([!-/:-@\[-`{-~])")
_FORMATS = re.compile(
    r"""
      [`*~[]                              # code, emphasis, struck out, a link
    | (?<![^\W_])_(?=.*[^\s_]_+(?!\w))     # emphasis, which begins and ends outside words
    | \\(?=[!-/:-@\[-`{-~])               # takes away the meaning of what follows
    | <(?=[A-Za-z/!?])                    # a tag
    | &(?=\#?\w+;)                        # a character by its name
    | \$(?=.*\$)                          # a formula
    """,
    re.VERBOSE,
)
"""What formats within a line of Markdown, as tickets and chats read it."""
_LINKED = re.compile(r"((?:https?://|www\.)\S+|\S+@\S+)", re.IGNORECASE)
_SPAN = re.compile(r"(`[^`\n]+`)")
_TEXTS = ("headline", "impact", "immediate_action", "remediation", "reasoning", "summary", "advice")
"""Columns of findings and incidents that have sentences."""


def plain(text: str) -> str:
    """``text`` from the wire for a place that reads Markdown: as it is, with nothing that formats or links.

    What would become a link even so, as addresses do, is in a code span.
    """
    parts = enumerate(_LINKED.split(printable(text)))
    return "".join(code(part) if index % 2 else _MARKDOWN.sub(r"\\\1", part) for index, part in parts)


def prose(text: str) -> str:
    """A text of ours, maybe with names of the wire in it, for Markdown: its code spans are read, and nothing else."""
    return "".join(part if index % 2 else plain(part) for index, part in enumerate(_SPAN.split(text)))


def literal(text: str) -> str:
    """``text`` from the wire for Markdown that people read and copy: only what would format has a backslash."""
    parts = enumerate(_LINKED.split(printable(text)))
    return "".join(code(part) if index % 2 else _FORMATS.sub(r"\\\g<0>", part) for index, part in parts)


def literal_prose(text: str) -> str:
    """A text of ours as Markdown that shows it literally, but for its code spans."""
    return "".join(part if index % 2 else literal(part) for index, part in enumerate(_SPAN.split(text)))


def code(text: str) -> str:
    """``text`` from the wire as a code span of Markdown, in which nothing is read."""
    shown = printable(text)
    fence = "`" * (1 + max((len(run) for run in re.findall(r"`+", shown)), default=0))
    pad = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{fence}{pad}{shown}{pad}{fence}" if shown else "(empty)"


def clock(ts: datetime) -> str:
    """Date and time to the second, in the zone that is chosen, for where something else names it."""
    return in_zone(ts).strftime("%Y-%m-%d %H:%M:%S")


def moment(ts: datetime) -> str:
    """Date and time to the second, with the zone."""
    return f"{clock(ts)} {short_zone(ts)}"


def of_one_zone(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of ``gold.incidents`` or ``gold.findings`` whose sentences have their times in the zone that is chosen."""
    day = row["last_ts"].date()
    texts = {name: text_in_zone(row[name], day) for name in _TEXTS if isinstance(row.get(name), str)}
    return {**row, **texts}


def seen(first: datetime, last: datetime) -> str:
    """A span of time with the zone and its length."""
    return f"{between(first, last)}, {duration((last - first).total_seconds())}"


def between(first: datetime, last: datetime) -> str:
    """A span of time with the zone, the date once if it is one day."""
    is_one_day = in_zone(first).date() == in_zone(last).date()
    return f"{clock(first)} to {clock(last)[11:] if is_one_day else clock(last)} {short_zone(last)}"
