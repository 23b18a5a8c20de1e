"""Whether one member of several commits nothing of what it holds, while the others of the group progress.

The group as a whole is not silent then, and no partition is left out beside others of the same owner. That a poll is
being processed looks alike: a member is given the maximum time for one (``max.poll.interval.ms``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from pipeline.analysis.rules.kafka.progress.member_history import Life
from pipeline.analysis.rules.kafka.progress.rhythm import patience_of
from pipeline.analysis.rules.kafka.progress.silence import (
    micros,
    not_its_rhythm,
    reads_on,
    severity_of_silence,
    silences_of,
)
from pipeline.analysis.rules.kafka.progress.topic import Rhythms, Topic
from pipeline.analysis.rules.kafka.progress.track import SPAN_US, STOPPED, Point, Track, Trouble, latest
from pipeline.analysis.rules.kafka.records_behind import Behind
from pipeline.analysis.rules.model import SEVERITIES

if TYPE_CHECKING:
    from pipeline.analysis.rules.kafka.progress.thresholds import ProgressThresholds

_GET_ON = 2
"""Commits of others meanwhile, at least."""


class _Silence(NamedTuple):
    """A partition that its owner no longer commits. Times are µs since the epoch."""

    track: Track
    owner: str
    last: Point
    behind: Behind
    trouble: Trouble


class _Wait(NamedTuple):
    """Records wait for their owner, which commits nothing. Times are µs since the epoch.

    Attributes:
        known: how long they waited for commits of the partition before, µs.
        goes_on: whether this lasts at the end of what was seen.
    """

    owner: str
    since_us: int
    until_us: int
    known: Sequence[int]
    goes_on: bool


def hung(
    topic: Topic, now_us: int, settings: ProgressThresholds, known: Mapping[int, Sequence[Trouble]]
) -> list[Trouble]:
    """Times in which members held partitions of the topic with records to read, and committed none of theirs.

    Those that last are reported at once, and so are those before that were at one time.

    Args:
        topic: partitions of one topic.
        now_us: until when it was seen, µs since the epoch.
        settings: thresholds.
        known: by partition what is reported otherwise, unless it shows here sooner.
    """
    if len(topic.tracks) < 2:
        return []
    found = [one for one in _silences(topic, now_us, settings) if not _is_known(one, known)]
    lasting = [one for one in found if one.trouble.is_open]
    over = sorted((one for one in found if not one.trouble.is_open), key=lambda one: one.trouble.first_us)
    apart: list[list[_Silence]] = []
    until_us = 0
    for one in over:
        if not apart or one.trouble.first_us > until_us:
            apart.append([])
        apart[-1].append(one)
        until_us = max(until_us, one.trouble.last_us)
    return latest([_together(some, topic.name) for some in (*apart, lasting) if some])


def _is_known(one: _Silence, known: Mapping[int, Sequence[Trouble]]) -> bool:
    return any(
        other.first_us == one.trouble.first_us
        and (one.trouble.severity == "info" or other.enough_us <= one.trouble.enough_us + SPAN_US)
        for other in known.get(one.track.partition, ())
    )


def _together(some: Sequence[_Silence], topic: str) -> Trouble:
    in_order = sorted(some, key=lambda one: (one.trouble.first_us, one.track.partition))
    troubles = [one.trouble for one in in_order]
    lost = sum(one.track.lost_at(one.trouble.last_us, one.last.committed or 0) for one in in_order)
    names = dict.fromkeys(one.owner for one in in_order)
    figures: dict[str, object] = {
        "places": [f"{topic}-{number}" for number in sorted({one.track.partition for one in in_order})],
        **sum((one.behind for one in in_order), Behind()).figures, "members": list(names),
        "client_ids": list(dict.fromkeys(one.last.client_id for one in in_order if one.last.owner == one.owner)),
        **({"lost_to_retention": lost} if lost else {}),
    }  # fmt: skip
    return Trouble(
        STOPPED, None, troubles[0].first_us, max(one.last_us for one in troubles),
        min(one.enough_us for one in troubles), troubles[0].is_open,
        tuple(dict.fromkeys(e for one in troubles for e in one.evidence)), figures,
        min((one.severity or SEVERITIES[0] for one in troubles), key=SEVERITIES.index),
    )  # fmt: skip


def _silences(topic: Topic, now_us: int, settings: ProgressThresholds) -> Iterator[_Silence]:
    """In the order of time, as :class:`Rhythms` has it."""
    long_ones = (
        (first_us, number, last, last_us, lasts)
        for number, track in enumerate(topic.tracks)
        for last, (first_us, last_us, lasts) in zip(track.commits, silences_of(track, now_us), strict=True)
        if last_us - first_us >= micros(settings.stopped_seconds)
        and track.lag_at(last_us, last.committed or 0) >= settings.behind_records
    )
    rhythms = Rhythms(topic.tracks, topic.life.ended)
    hits: dict[int, list[Trouble]] = {}
    for first_us, number, last, last_us, lasts in sorted(long_ones, key=itemgetter(0, 1)):
        before = hits.setdefault(number, [])
        one = _silence(topic.tracks[number], last, (first_us, last_us, lasts), topic, rhythms, before, settings)
        if one is not None:
            before.append(one.trouble)
            yield one


def _silence(
    track: Track, last: Point, span: tuple[int, int, bool], topic: Topic, rhythms: Rhythms, hits: Sequence[Trouble],
    settings: ProgressThresholds,
) -> _Silence | None:  # fmt: skip
    """Whether the owner of a partition hangs in the silence after its commit ``last``; ``hits``: when it did before."""
    (first_us, last_us, lasts), committed, life = span, last.committed or 0, topic.life
    worth, floor, ill = settings.behind_records, settings.stopped_seconds, not_its_rhythm(hits)
    known = track.waits(first_us, [*life.ended, *ill])
    if last_us - first_us < (patience_of(known, len(known), floor, settings.silence_periods) or 0):
        return None
    if track.waits_in_vain(committed, first_us, last_us, worth):
        return None
    if not last.member_id and not reads_on(track, committed, first_us, last_us, worth):
        return None  # without an assignment it may just have been given up
    for begin, end in reversed(life.calm(first_us, last_us)):
        owner = topic.owner_of(last, track, begin)
        since_us = track.waiting_since(committed, begin, end, worth)
        if owner is None or since_us is None:
            continue
        until_us = life.stays_until(owner, begin, end) if lasts else end - 1
        wait = _Wait(owner, since_us, until_us, known, lasts and until_us == last_us)
        own = topic.usual_commits_of(owner, since_us, ill)
        # What is usual elsewhere makes it only more patient, and takes longest to find out: it is asked for last.
        if _judged(wait, own, topic, settings) is None or topic.is_at_work(owner, since_us, until_us):
            continue
        judged = _judged(wait, max(own, rhythms.usual(first_us, ill)), topic, settings)
        if judged is not None:
            patience, severity = judged
            behind = track.behind_at(last_us, committed)
            severity = severity or severity_of_silence([track], first_us, behind.records)
            evidence = (last.exchange_id,) if last.exchange_id else ()
            return _Silence(
                track, owner, last, behind,
                Trouble(STOPPED, None, first_us, last_us, since_us + patience, lasts, evidence, {}, severity),
            )  # fmt: skip
    return None


def _judged(wait: _Wait, usual: int, topic: Topic, settings: ProgressThresholds) -> tuple[int, str | None] | None:
    """As :func:`_patience_with`, if others continued committing for so long.

    If none did, the group has stopped, or its records end.
    """
    least = patience_of(wait.known, len(wait.known), settings.stopped_seconds, settings.silence_periods, usual)
    span_us = wait.until_us - wait.since_us
    judged = _patience_with(wait.owner, least, span_us, topic.life, settings, goes_on=wait.goes_on)
    last_us = topic.goes_on_until(wait.since_us, wait.until_us, _GET_ON)
    return None if judged is None or last_us is None or last_us - wait.since_us < judged[0] else judged


def _patience_with(
    owner: str, least: int | None, span_us: int, life: Life, settings: ProgressThresholds, *, goes_on: bool
) -> tuple[int, str | None] | None:
    """How long a member could be waited for, and ``info`` if it may still be at work on one poll; None: it is too soon.

    Args:
        owner: the member.
        least: by its own rhythm, that of the partition and the group, µs; None: not known.
        span_us: how long it is silent.
        goes_on: whether this lasts at the end of what was seen.
    """
    limit = life.limits.get(owner)
    patience = None if least is None else max(least, micros(settings.poll_seconds) if limit is None else limit)
    if least is None or patience is None or span_us < least:
        return None
    if span_us >= patience:
        return patience, None
    return (least, "info") if limit is None and goes_on else None
