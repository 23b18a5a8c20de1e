"""Folds moments that repeat, and chooses the few that show how it went, in the order of time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from pipeline.analysis.moments.model import MOST_OF_ONE, Moment, moments_of, text_of

_MOST_TURNS = 4
"""Where more changed hands than this, changing hands is what repeats."""


def folded(moments: Iterable[Moment]) -> list[Moment]:
    """Repeats as one moment each, by time; what comes again after something changed hands is another one."""
    in_order = sorted(_once(moments), key=_by_time)
    turns = sum(one.is_turn for one in in_order)
    part, found = 0, dict[tuple[object, ...], Moment]()
    for one in in_order:
        if one.is_turn and turns <= _MOST_TURNS:
            part += 1
        key = (0 if one.is_turn else part, *one.key)
        found[key] = found[key].with_another(one) if key in found else one
    return sorted(found.values(), key=_by_time)


def joined(moments: Iterable[Moment]) -> list[Moment]:
    """Moments that were folded before, of findings that may be about the same: those that overlap count once."""
    found: dict[tuple[object, ...], list[Moment]] = {}
    turns = set[tuple[object, ...]]()
    for one in sorted(moments, key=_by_time):
        if one.is_turn and (one.actor, one.low, one.high) in turns:
            continue  # of each partition that a finding is about the same change is noted
        turns.add((one.actor, one.low, one.high))
        alike = found.setdefault(one.key, [])
        if alike and one.us <= alike[-1].last_us:
            alike[-1] = _overlapping(alike[-1], one)
        else:
            alike.append(one)
    return sorted((one for alike in found.values() for one in alike), key=_by_time)


def chosen(moments: Sequence[Moment], first: Sequence[Moment] = (), most: int = MOST_OF_ONE) -> list[Moment]:
    """At most this many moments, by time: first, last, those of ``first``, turns and refusals, frequent ones."""
    if len(moments) <= most:
        return list(moments)
    wanted = {one.key for one in first}
    ends = {0, len(moments) - 1}
    order = sorted(
        range(len(moments)),
        key=lambda n: (n not in ends, moments[n].key not in wanted, not (moments[n].is_turn or moments[n].is_refused),
                       -moments[n].times, n),
    )  # fmt: skip
    return [moments[n] for n in sorted(order[:most])]


def continued(before: object, now: object) -> str:
    """Moments of a finding whose beginning an earlier look has seen, and of a later look, as JSON."""
    known = moments_of(now)
    since_us = min((one.us for one in known), default=None)
    earlier = [one for one in moments_of(before) if since_us is None or one.us < since_us]
    return text_of(chosen(joined([*earlier, *known]), known))


def _once(moments: Iterable[Moment]) -> Iterable[Moment]:
    """The same exchange states the same once, whichever way it was found."""
    return {(one.exchange_id or one.connection_id, *one.key, one.low): one for one in moments}.values()


def _by_time(one: Moment) -> tuple[object, ...]:
    return one.us, one.exchange_id or "", one.key


def _overlapping(one: Moment, other: Moment) -> Moment:
    """One of two moments that may count the same: how often is not known where neither has seen all of it."""
    both, more = one.with_another(other), max(one, other, key=lambda each: each.times)
    is_whole = not more.is_least and (more.us, more.last_us) == (both.us, both.last_us)
    return replace(
        both, times=more.times, is_least=not is_whole, is_mixed=one.is_mixed or other.is_mixed, gap_us=more.gap_us
    )
