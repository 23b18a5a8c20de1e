"""A member reads on what it holds and commits nothing of the topic, while others of the group commit.

Its commits silently stay away: it works in a session that is over, or never marks what it has processed. As its
positions continue it is not at work on one poll: it is judged by the rhythm of commits, not by max.poll.interval.ms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING

from pipeline.analysis.rules.kafka.positions.unread_texts import UNCOMMITTED
from pipeline.analysis.rules.kafka.progress.rhythm import KNOWN_RHYTHM, gaps_us, patience_us, usual_us
from pipeline.analysis.rules.kafka.progress.silence import micros, not_its_rhythm, silences_of
from pipeline.analysis.rules.kafka.progress.topic import Ill, Rhythms, Topic
from pipeline.analysis.rules.kafka.progress.track import DROPPED, Point, Track, Trouble

if TYPE_CHECKING:
    from pipeline.analysis.rules.kafka.progress.thresholds import ProgressThresholds

_GET_ON = 2
"""Commits of others meanwhile, at least."""
_REMEMBERED = 20
"""Times of that kind that are left out of what is usual."""
Span = tuple[int, int, bool]
"""From when to when, µs since the epoch, and whether it lasts."""


@dataclass(frozen=True, slots=True)
class _Reading:
    """What was read of a partition in a time without a rebalance. Times are µs since the epoch."""

    since_us: int
    last_us: int
    position: int
    enough_us: int

    @classmethod
    def of(cls, points: Sequence[Point], committed: int, settings: ProgressThresholds) -> _Reading | None:
        """What points show beyond a commit; None: less than several steps and ``behind_records``."""
        steps: list[tuple[int, int]] = []
        for point in points:
            if point.position is not None and point.position > (steps[-1][1] if steps else committed):
                steps.append((point.ts_us, point.position))
        worth = next((us for us, position in steps if position - committed >= settings.behind_records), None)
        if worth is None or len(steps) < settings.dropped_commits:
            return None
        enough_us = max(worth, steps[settings.dropped_commits - 1][0])
        return cls(steps[0][0], steps[-1][0], steps[-1][1], enough_us)


def reading_on(topic: Topic, now_us: int, settings: ProgressThresholds) -> dict[int, list[Trouble]]:
    """By partition the times in which its owner read on and committed nothing of the topic."""
    if len(topic.tracks) < 2:
        return {}
    long_ones = (
        (span[0], number, last, span)
        for number, track in enumerate(topic.tracks)
        for last, span in zip(track.commits, silences_of(track, now_us), strict=True)
        if span[1] - span[0] >= micros(settings.fetched_again_seconds)
    )
    rhythms = Rhythms(topic.tracks, topic.life.ended)
    found: dict[int, list[Trouble]] = {}
    ill: dict[tuple[int, int | None], None] = {}
    for _, number, last, span in sorted(long_ones, key=itemgetter(0, 1)):
        track = topic.tracks[number]
        before = found.setdefault(track.partition, [])
        one = _read(track, last, span, topic, rhythms, list(ill)[-_REMEMBERED:], settings)
        if one is not None:
            before.append(one)
            ill |= dict.fromkeys(not_its_rhythm(before))
    return found


def _read(
    track: Track, last: Point, span: Span, topic: Topic, rhythms: Rhythms, ill: Ill, settings: ProgressThresholds
) -> Trouble | None:
    """What was read in the silence after the commit ``last``."""
    (first_us, last_us, lasts), committed, life = span, last.committed or 0, topic.life
    known = track.waits(first_us, [*life.ended, *ill])
    for begin, end in reversed(life.calm(first_us, last_us)):
        reading = _Reading.of(track.between(begin, end), committed, settings)
        owner = None if reading is None else topic.owner_of(last, track, begin)
        if reading is None or owner is None:
            continue
        back = topic.commits_of(owner, reading.since_us, end)  # with another partition, a moment before this one
        until_us = min(reading.last_us, life.stays_until(owner, begin, end), *(us - 1 for us in back[:1]))
        own = topic.usual_commits_of(owner, reading.since_us, ill)
        # Whose rhythm is not known is given twice the time: a new process may commit more seldom.
        is_known = own and len(known) >= KNOWN_RHYTHM
        patience = (1 if is_known else 2) * patience_us(
            settings.fetched_again_seconds,
            settings.silence_periods,
            own,
            usual_us(known),
            rhythms.usual(first_us, ill),
        )
        if not own and owner in life.newcomers:  # a release that commits more seldom looks like this at first
            patience = max(patience, micros(settings.uncommitted_seconds))
        if not own and len(known) < KNOWN_RHYTHM:  # others of the group show how far apart its commits may be
            others = gaps_us(sorted(set(topic.times_between(reading.since_us, until_us))))
            if len(others) < KNOWN_RHYTHM - 1:
                continue
            patience = max(patience, patience_us(0, settings.silence_periods, usual_us(others)))
        others_us = topic.goes_on_until(reading.since_us, until_us, _GET_ON)
        if others_us is None or min(until_us, others_us) - reading.since_us < patience:
            continue
        if topic.is_at_work(owner, reading.since_us, until_us):
            continue
        figures: dict[str, object] = {
            "shape": UNCOMMITTED, "committed": committed, "committed_us": first_us, "begun_at": committed,
            "position": reading.position, "records_behind": reading.position - committed,
            "other_commits": topic.commits_between(reading.since_us, until_us), "own_commits": 0,
            "members": [owner], "client_id": last.client_id if last.owner == owner else None,
        }  # fmt: skip
        return Trouble(
            DROPPED, track.partition, first_us, last_us, max(reading.enough_us, reading.since_us + patience), lasts,
            (last.exchange_id,) if last.exchange_id else (), figures,
        )  # fmt: skip
    return None
