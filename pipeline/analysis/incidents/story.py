"""The story of an incident: a few dated lines, the actor first, each with the exchange that it rests on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from pipeline.analysis.moments.folding import chosen, joined
from pipeline.analysis.moments.model import Moment, moments_of, stamp_of
from pipeline.analysis.rules.case.entities import Known
from pipeline.analysis.rules.case.tree import Tree

_ALREADY = "already so when the capture begins"
_MOST_FINDINGS = 50
"""Findings of an incident that a story looks at, the root first."""


def story_of(tree: Tree) -> str:
    """One to eight lines by time as JSON, for the column ``story`` of ``gold.incidents``.

    Each has ``ts`` (ISO 8601 to the microsecond, UTC), ``actor``, ``text`` (readable alone), ``exchange_id`` (null
    where no exchange shows it) and ``connection_id`` (of a connection without exchanges, else null).
    """
    some = tree.findings[:_MOST_FINDINGS]
    of_each = [_moments(one) for one in some]
    lead = next((moments for one, moments in zip(some, of_each, strict=True) if one.rule == tree.root.rule), ())
    lines = chosen(joined(moment for moments in of_each for moment in moments), lead)
    first = min(some, key=lambda one: (one.first_us, one.finding_id))
    return orjson.dumps(list(_lines(lines, is_already=bool(first.details.get("already"))))).decode()


def lines_of(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The lines of a row of ``gold.incidents``; none where the column is empty or holds something else."""
    try:
        found = orjson.loads(row.get("story") or "[]")
    except (orjson.JSONDecodeError, TypeError):
        return []
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def clock_of_line(line: Mapping[str, Any]) -> str:
    """The time of day of a line to the hundredth of a second, UTC."""
    return str(line["ts"])[11:22]


def _moments(one: Known) -> tuple[Moment, ...]:
    """Those of a finding; of one without any its first sign and its last, which nothing shows any closer."""
    known = moments_of(one.row.get("moments"))
    if known:
        return known
    subject, rule = str(one.row["subject"]), one.rule
    found = [Moment(one.first_us, subject, f"shows the first sign of {rule}")]
    if one.last_us > one.first_us:
        found.append(Moment(one.last_us, subject, f"shows the last sign of {rule}"))
    return tuple(found)


def _lines(moments: list[Moment], *, is_already: bool) -> Iterator[dict[str, Any]]:
    for number, one in enumerate(moments):
        text = f"{one.text} ({_ALREADY})" if is_already and not number else one.text
        yield {
            "ts": stamp_of(one.us), "actor": one.actor, "text": text, "exchange_id": one.exchange_id,
            "connection_id": one.connection_id,
        }  # fmt: skip
