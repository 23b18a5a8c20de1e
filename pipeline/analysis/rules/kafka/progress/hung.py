"""Does one member of several commit nothing any more of what it holds, while the others of the group get on?

The group as a whole is not silent then, and no partition is left out beside others of the same owner. That a poll is
being processed looks alike: a member is given the time that it may take for one (``max.poll.interval.ms``).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from pipeline.analysis.rules.kafka.progress.life import Life
from pipeline.analysis.rules.kafka.progress.rhythm import patience_of, usual_us
from pipeline.analysis.rules.kafka.progress.silence import (
    commits_of,
    micros,
    not_its_rhythm,
    owner_of,
    reads_on,
    severity_of_silence,
    silences_of,
)
from pipeline.analysis.rules.kafka.progress.track import STOPPED, Point, Track, Trouble, latest
from pipeline.analysis.rules.model import SEVERITIES
from pipeline.finding_settings import FindingSettings

_GET_ON = 2
"""Commits of others meanwhile, at least."""


class _Silence(NamedTuple):
    """A partition that its owner no longer commits. Times are µs since the epoch."""

    track: Track
    owner: str
    last: Point
    lag: int
    trouble: Trouble


def hung(
    tracks: Sequence[Track], now_us: int, life: Life, topic: str, settings: FindingSettings
) -> list[Trouble]:  # fmt: skip
    """Times in which members held partitions of the topic with records to read, and committed none of theirs.

    Those that last are told at once, and so are those before that were at one time.
    """
    if len(tracks) < 2:
        return []
    found = [one for track in tracks for one in _of_track(track, tracks, now_us, life, topic, settings)]
    lasting = [one for one in found if one.trouble.is_open]
    over = sorted((one for one in found if not one.trouble.is_open), key=lambda one: one.trouble.first_us)
    apart: list[list[_Silence]] = []
    for one in over:
        if not apart or one.trouble.first_us > max(known.trouble.last_us for known in apart[-1]):
            apart.append([])
        apart[-1].append(one)
    return latest([_together(some, topic) for some in (*apart, lasting) if some])


def _together(some: Sequence[_Silence], topic: str) -> Trouble:
    in_order = sorted(some, key=lambda one: (one.trouble.first_us, one.track.partition))
    troubles = [one.trouble for one in in_order]
    lost = sum(one.track.lost_at(one.trouble.last_us, one.last.committed or 0) for one in in_order)
    names = dict.fromkeys(one.owner for one in in_order)
    figures: dict[str, object] = {
        "places": [f"{topic}-{number}" for number in sorted({one.track.partition for one in in_order})],
        "records_behind": sum(one.lag for one in in_order), "members": list(names),
        "client_ids": list(dict.fromkeys(one.last.client_id for one in in_order if one.last.owner == one.owner)),
        **({"lost_to_retention": lost} if lost else {}),
    }  # fmt: skip
    return Trouble(
        STOPPED, None, troubles[0].first_us, max(one.last_us for one in troubles),
        min(one.enough_us for one in troubles), troubles[0].is_open,
        tuple(dict.fromkeys(e for one in troubles for e in one.evidence)), figures,
        min((one.severity or SEVERITIES[0] for one in troubles), key=SEVERITIES.index),
    )  # fmt: skip


def _of_track(
    track: Track, tracks: Sequence[Track], now_us: int, life: Life, topic: str, settings: FindingSettings
) -> Iterator[_Silence]:
    worth, floor, hits = settings.behind_records, settings.stopped_seconds, list[Trouble]()
    for last, (first_us, last_us, lasts) in zip(track.commits, silences_of(track, now_us), strict=True):
        committed = last.committed or 0
        if last_us - first_us < micros(floor) or track.lag_at(last_us, committed) < worth:
            continue
        unlike = [*life.ended, *not_its_rhythm(hits)]
        known = track.waits(first_us, unlike)
        if last_us - first_us < (patience_of(known, len(known), floor, settings.patience_periods) or 0):
            continue
        if track.waits_in_vain(committed, first_us, last_us, worth):
            continue
        if not last.member_id and not reads_on(track, committed, first_us, last_us, worth):
            continue  # without an assignment it may just have been given up
        usual = max(usual_us(other.waits(first_us, unlike)) for other in tracks)
        for begin, end in reversed(life.calm(first_us, last_us)):
            owner = owner_of(last, track, begin, life, topic)
            since_us = track.waiting_since(committed, begin, end, worth)
            if owner is None or since_us is None:
                continue
            until_us = life.stays_until(owner, begin, end) if lasts else end - 1
            own = _usual_of(commits_of(owner, tracks, None, 0, since_us), hits)
            least = patience_of(known, len(known), floor, settings.patience_periods, max(own, usual))
            goes_on = lasts and until_us == now_us
            judged = _patience_with(owner, least, until_us - since_us, life, settings, goes_on=goes_on)
            if judged is None or not _alone(owner, track, tracks, since_us, until_us, life, topic):
                continue
            patience, severity = judged
            if _gets_on([other for other in tracks if other is not track], since_us, until_us, patience):
                lag = track.lag_at(last_us, committed)
                severity = severity or severity_of_silence([track], first_us, lag)
                evidence = (last.exchange_id,) if last.exchange_id else ()
                trouble = Trouble(
                    STOPPED, None, first_us, last_us, since_us + patience, lasts, evidence, {}, severity
                )  # fmt: skip
                hits.append(trouble)
                yield _Silence(track, owner, last, lag, trouble)
                break


def _usual_of(times: Sequence[int], hits: Sequence[Trouble]) -> int:
    """What usually lies between two commits of a member, times when it hung left out."""
    ill = not_its_rhythm(hits)
    return usual_us(
        after - before
        for before, after in pairwise(times)
        if not any(begin <= before and after <= (end or 0) for begin, end in ill)
    )


def _patience_with(
    owner: str, least: int | None, span_us: int, life: Life, settings: FindingSettings, *, goes_on: bool
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


def _alone(
    owner: str, track: Track, tracks: Sequence[Track], since_us: int, until_us: int, life: Life, topic: str
) -> bool:
    """Whether the owner committed none of its partitions in this time, under whatever name."""
    if commits_of(owner, tracks, None, since_us, until_us):
        return False
    held = (other for other in tracks if other is not track and _times(other, since_us, until_us))
    return not any(owner_of(_commit_before(other, since_us), other, since_us, life, topic) == owner for other in held)


def _commit_before(track: Track, us: int) -> Point:
    return track.commit_at(us) or track.commits[0]


def _times(track: Track, since_us: int, until_us: int) -> Sequence[int]:
    times = track.commit_times
    return times[bisect_right(times, since_us) : bisect_right(times, until_us)]


def _gets_on(others: Iterable[Track], since_us: int, until_us: int, patience: int) -> bool:
    """Whether others went on committing for so long: if nobody did, the group has stopped, or its records end."""
    times = sorted(us for other in others for us in _times(other, since_us, until_us))
    return len(times) >= _GET_ON and times[-1] - since_us >= patience
