"""Whether a group progresses: what its commits on one topic show, partition by partition, over time.

Functions over points in time, which :mod:`pipeline.analysis.rules.kafka.progress.lagging` brings, as it words findings.
A span of time is judged by the group's own rhythm: see :mod:`pipeline.analysis.rules.kafka.progress.rhythm`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby, pairwise
from operator import attrgetter
from typing import TYPE_CHECKING, cast

from pipeline.analysis.rules.kafka.progress.before_capture import silent_from_begin
from pipeline.analysis.rules.kafka.progress.going_back import regressed, rewound
from pipeline.analysis.rules.kafka.progress.growing import growing
from pipeline.analysis.rules.kafka.progress.member_history import Life
from pipeline.analysis.rules.kafka.progress.reading_on import reading_on
from pipeline.analysis.rules.kafka.progress.recreated_topics import not_back, of_its_log
from pipeline.analysis.rules.kafka.progress.rhythm import KNOWN_RHYTHM, patience_of, patience_us
from pipeline.analysis.rules.kafka.progress.silence import (
    fetched_beyond,
    micros,
    not_its_rhythm,
    reads_on,
    severity_of_silence,
    silences,
    silences_of,
)
from pipeline.analysis.rules.kafka.progress.stuck_member import hung
from pipeline.analysis.rules.kafka.progress.topic import Topic
from pipeline.analysis.rules.kafka.progress.track import DROPPED, STALLED, STOPPED, Point, Track, Trouble, latest
from pipeline.analysis.rules.kafka.records_behind import Behind

if TYPE_CHECKING:
    from pipeline.analysis.rules.kafka.progress.thresholds import ProgressThresholds

_NEARLY_ALL = 0.75
"""The share of a silence in which a new process reads on."""
_REMEMBERED = 200
"""Stays at an offset that a rhythm is known by."""
_MOST_LIVES = 100
"""Times that a topic was recreated, the newest; what was before is not judged. Each takes a look at all partitions."""


def judge(
    partitions: Mapping[int, Sequence[Point]],
    settings: ProgressThresholds,
    end_us: int = 0,
    life: Life | None = None,
    markers: Mapping[int, Sequence[int]] | None = None,
    topic: str = "",
) -> list[Trouble]:
    """All troubles of one group on one topic; of one rule and partition the last, with the time of the first.

    Args:
        partitions: points of each partition, in order of time.
        settings: thresholds.
        end_us: until when the cluster was seen, µs since the epoch, if that is later than the last point.
        life: what is known of the group's members.
        markers: offsets of transaction markers by partition, ascending.
        topic: its name, as assignments state it.
    """
    life, markers = life or Life(), markers or {}
    tracks = [Track.of(number, points, markers.get(number, ())) for number, points in sorted(partitions.items())]
    whole = Topic(topic, tracks, life)
    now_us = max((p.ts_us for t in tracks for p in t.points), default=0)
    read_on = reading_on(whole, now_us, settings)
    stopped = [
        *_stopped(whole, now_us, max(now_us, end_us), settings), *hung(whole, now_us, settings, read_on)
    ]  # fmt: skip
    found = _last_of_silences(stopped)
    silent = list(found)
    for track in tracks:
        found += _stalled(track, whole, settings)
        found += growing(track, settings)
        found += regressed(track, settings)
        found += rewound(track, now_us, settings)
        others = [one for one in read_on.get(track.partition, ()) if not _is_silent(one, silent, topic)]
        found += latest(sorted([*_dropped(track, whole, now_us, settings), *others], key=lambda one: one.last_us))
    known = {(one.rule, one.partition) for one in found}
    return [*found, *(one for one in silent_from_begin(whole, settings) if (one.rule, one.partition) not in known)]


def _is_silent(one: Trouble, silent: Sequence[Trouble], topic: str) -> bool:
    """Whether a partition's time without commits is reported among those of a member that hangs."""
    place = f"{topic}-{one.partition}"
    return any(
        place in cast("list[str]", other.figures.get("places", ()))
        and other.first_us <= one.first_us
        and one.last_us <= other.last_us
        for other in silent
    )


def judge_lives(
    partitions: Mapping[int, Sequence[Point]],
    anew: Sequence[int],
    settings: ProgressThresholds,
    end_us: int = 0,
    life: Life | None = None,
    markers: Mapping[int, Sequence[int]] | None = None,
    topic: str = "",
) -> list[Trouble]:
    """As :func:`judge`, of a topic that was deleted and recreated: its offsets begin again, and what was is over.

    Args:
        partitions, settings, end_us, life, markers, topic: see :func:`judge`.
        again: when the topic's later lives begin, µs since the epoch, ascending, each time once.
    """
    life = life or Life()
    if not anew:
        return judge(
            {number: some for number, some in partitions.items() if some}, settings, end_us, life, markers, topic
        )
    last: dict[tuple[str, int | None], Trouble] = {}
    away: list[Trouble] = []
    before: Sequence[Track] = ()
    newest = anew[-_MOST_LIVES:]
    for begin, end in pairwise((*(() if newest[0] > anew[0] else (0,)), *newest, None)):
        lived = _between(
            partitions, begin or 0, end, {track.partition: track.commits[-1] for track in before if track.commits}
        )
        found = judge(lived, settings, end_us if end is None else 0, life, None, topic)
        last |= {(one.rule, one.partition): one if end is None else replace(one, is_open=False) for one in found}
        tracks = [Track.of(partition, points) for partition, points in lived.items()]
        seen_us = end or max((end_us, *(track.times[-1] for track in tracks)))
        found = list(not_back(before, tracks, (begin or 0, seen_us), life, settings))
        away += [replace(one, is_open=one.is_open and end is None) for one in found]
        before = tracks if any(track.commits for track in tracks) else before
    for one in latest(away):
        if (other := last.get((STOPPED, None))) is None or other.first_us <= one.first_us:
            last[STOPPED, None] = one
    return list(last.values())


def _between(
    partitions: Mapping[int, Sequence[Point]], begin_us: int, end_us: int | None, before: Mapping[int, Point]
) -> dict[int, Sequence[Point]]:
    """The points of one life of a topic, of partitions that have any.

    Args:
        partitions: all points.
        begin_us, end_us: of this life, µs since the epoch; None: it lasts.
        before: by partition the last commit in the life before.
    """
    lived = {
        number: points[_place(points, begin_us) : None if end_us is None else _place(points, end_us)]
        for number, points in partitions.items()
    }
    return {
        number: of_its_log(points, before[number].committed) if number in before else points
        for number, points in lived.items()
        if points
    }


def _place(points: Sequence[Point], us: int) -> int:
    """Where the points of this time and later begin."""
    return bisect_left(points, us, key=attrgetter("ts_us"))


def _last_of_silences(stopped: Sequence[Trouble]) -> list[Trouble]:
    """The last that is more than information; where both last, that of the whole topic, which says more."""
    if not stopped:
        return []
    return [
        max(
            stopped,
            key=lambda t: (t.severity != "info", t.is_open, t.is_open and "members" not in t.figures, t.last_us),
        )
    ]


def _stopped(topic: Topic, now_us: int, end_us: int, settings: ProgressThresholds) -> Iterator[Trouble]:
    """No partition of the topic is committed any more, although there is something to read.

    What came after the last commit waits until the end of all that was seen (``end_us``). A group that was behind
    before may have ended with its producers: it is judged as long as somebody speaks of the topic (``now_us``).
    """
    tracks, life = topic.tracks, topic.life
    times = sorted({time for track in tracks for time in track.commit_times})
    if not times:
        return
    hits: list[Trouble] = []
    for number, (first_us, last_us, lasts) in enumerate(silences(times, now_us)):
        seen_us = end_us if lasts else last_us
        if seen_us - first_us < micros(settings.stopped_seconds):
            continue
        unlike = [*life.ended, *not_its_rhythm(hits)]
        known = [track.waits(first_us, unlike) for track in tracks]
        times_known = min(number, max(map(len, known), default=0))
        is_known = times_known >= KNOWN_RHYTHM
        waits = [wait for some in known for wait in some]
        patience = patience_of(waits, times_known, settings.stopped_seconds, settings.silence_periods)
        if patience is None or not (is_known or lasts):
            continue  # a silence that ended by itself shows how it commits, where little else does
        behind = [
            waiting
            for track in tracks
            if (waiting := _waiting(track, first_us, last_us, seen_us, patience, life, settings)) is not None
            and not _is_new(track, topic, first_us, last_us, settings)
        ]
        if not behind:
            continue
        since_us = min(since for _, since, _, _ in behind)
        waiting_there = sum((some for _, _, some, _ in behind), Behind())
        severity = severity_of_silence([track for track, _, _, _ in behind], first_us, waiting_there.records)
        if not is_known and seen_us - since_us < micros(settings.poll_seconds):
            severity = "info"
        left_us, away = life.left(first_us, seen_us), life.pauses(seen_us)
        silent = [part for part in life.calm(since_us, seen_us) if part[1] - part[0] >= patience]
        if silent:
            enough = silent[0][0] + patience
        elif lasts and left_us is not None:
            schedule = patience_us(settings.stopped_seconds, settings.silence_periods, *away)
            enough = max(since_us, left_us) + max(patience, schedule)
            severity = severity if away else "info"
        else:
            continue
        if enough > seen_us:
            continue
        until_us = seen_us if any(since > first_us for _, since, _, _ in behind) else last_us
        commits = sorted((last.ts_us, last.exchange_id) for _, _, _, last in behind if last.exchange_id)
        evidence = tuple(dict.fromkeys(exchange_id for _, exchange_id in commits))
        lost = sum(track.lost_at(last_us, last.committed or 0) for track, _, _, last in behind)
        figures: dict[str, int | str | None] = {
            "partitions": len(behind), **waiting_there.figures,
            **({"lost_to_retention": lost} if lost else {}),
            **({"left_us": left_us} if lasts and left_us is not None else
               fetched_beyond([track for track, _, _, _ in behind], first_us, until_us, settings)),
        }  # fmt: skip
        hits.append(Trouble(STOPPED, None, first_us, until_us, enough, lasts, evidence, figures, severity))
    yield from latest(hits)


def _waiting(
    track: Track, first_us: int, last_us: int, seen_us: int, patience: int, life: Life, settings: ProgressThresholds
) -> tuple[Track, int, Behind, Point] | None:
    """Since when records wait for longer than usual in a silence, how many, and behind which commit.

    Members that fetched a little and then nothing more have paused the partition: they are not starved.
    """
    last = track.commit_at(first_us)
    worth = settings.behind_records
    if last is None or last.committed is None:
        return None
    if track.waits_in_vain(last.committed, first_us, last_us, worth) and not (
        life.stays(first_us, last_us) and track.is_paused(first_us, last_us)
    ):
        return None
    behind = track.behind_at(last_us, last.committed)
    since_us = track.waiting_since(last.committed, first_us, last_us, worth)
    if since_us is None or behind.records < worth:
        return None
    until_us = last_us if since_us == first_us else seen_us
    return (track, since_us, behind, last) if until_us - since_us >= patience else None


def _is_new(track: Track, topic: Topic, first_us: int, last_us: int, settings: ProgressThresholds) -> bool:
    """Whether a new process holds the partition and reads on, nearly all that time, whose rhythm nothing shows yet."""
    if last_us - first_us >= micros(settings.uncommitted_seconds):
        return False
    owner = topic.life.owner(topic.name, track.partition, last_us)
    if owner is None or owner.member_id not in topic.life.newcomers:
        return False
    if topic.commits_of(owner.member_id, 0, first_us):
        return False
    times = [p.ts_us for p in track.between(max(first_us, owner.ts_us), last_us) if p.position is not None]
    return len(times) >= settings.dropped_commits and times[-1] - times[0] >= _NEARLY_ALL * (last_us - first_us)


def _dropped(track: Track, topic: Topic, now_us: int, settings: ProgressThresholds) -> list[Trouble]:
    """Whoever holds the partition continues committing others, but not this one, which has something to read.

    The same owner leaves it out for several of its own periods and of the partition's, and no rebalance is in between.
    """
    hits: list[Trouble] = []
    worth = settings.behind_records
    for first, (first_us, last_us, lasts) in zip(track.commits, silences_of(track, now_us), strict=True):
        committed = first.committed or 0
        if last_us - first_us < micros(settings.dropped_seconds) or track.lag_at(last_us, committed) < worth:
            continue
        waits = track.waits(first_us, [*topic.life.ended, *not_its_rhythm(hits)])
        if track.waits_in_vain(committed, first_us, last_us, worth):
            continue
        for begin, end in topic.life.calm(first_us, last_us):
            owner = topic.owner_of(first, track, begin)
            since_us = track.waiting_since(committed, begin, end, worth)
            if owner is None or since_us is None:
                continue
            others = topic.commits_of(owner, since_us, end if lasts else end - 1)
            usual = topic.usual_commits_of(owner, since_us)
            periods = settings.silence_periods
            patience = patience_of(waits, len(waits), settings.dropped_seconds, periods, usual)
            if patience is None or len(others) < settings.dropped_commits or others[-1] - since_us < patience:
                continue
            if first.member_id == "" and not reads_on(track, committed, first_us, last_us, worth):
                continue  # without an assignment it may just have been given up
            enough = max(others[settings.dropped_commits - 1], since_us + patience)
            evidence = tuple(e for e in (first.exchange_id,) if e)
            figures: dict[str, int | str | None] = {
                "committed": committed, **track.behind_at(last_us, committed).figures,
                "other_commits": len(others), "owner": owner, **track.lost(last_us, committed),
                **fetched_beyond([track], first_us, last_us, settings),
            }  # fmt: skip
            hits.append(Trouble(DROPPED, track.partition, first_us, last_us, enough, lasts, evidence, figures))
            break
    return hits


def _stalled(track: Track, topic: Topic, settings: ProgressThresholds) -> Iterator[Trouble]:
    """One offset is committed again and again, records wait behind it, and the group fetches none of them.

    For longer than the group usually stays at an offset while it processes. A client that commits in the background may
    do so while one poll is being processed: if none of its partitions moves, it has the maximum time between polls.
    """
    hits: list[Trouble] = []
    stays: list[tuple[int, int]] = []
    runs = [list(some) for _, some in groupby(track.commits, key=lambda p: p.committed)]
    if not any(run[-1].ts_us - run[0].ts_us >= micros(settings.stalled_seconds) for run in runs):
        return
    later = _later_stays(track, runs, topic.life)
    for number, run in enumerate(runs):
        is_last = number + 1 == len(runs)
        first_us, last_us, offset = run[0].ts_us, run[-1].ts_us, run[0].committed or 0
        until_us = last_us if is_last else runs[number + 1][0].ts_us
        since_us = track.waiting_since(offset, first_us, until_us, 1)
        if since_us is None:
            continue
        known = len(stays)
        if not is_last:
            stays.append((first_us, until_us - since_us))
        times = sum(p.commits for p in run)
        if times < settings.stalled_commits or last_us - first_us < micros(settings.stalled_seconds):
            continue
        middle = (first_us + last_us) // 2
        # A member that fetches on without records starves, who fetches further only fails to commit: other rules report
        # these.
        if any(p.position is not None for p in track.between(middle, last_us)):
            continue
        behind = track.behind_at(last_us, offset)
        grown = (track.end_at(last_us) or 0) - (track.end_at(first_us) or 0)
        if min(grown, behind.records) < settings.behind_records:
            continue
        unlike = {hit.first_us for hit in hits} if len(hits) < KNOWN_RHYTHM else set()
        ordinary = [stay for begun_us, stay in stays[max(known - _REMEMBERED, 0) : known] if begun_us not in unlike]
        already = number == 0 and bool(later)
        ordinary = later if already else ordinary
        alone = topic.gets_on_beside(track, run[-1].owner, middle, last_us)
        patience = patience_of(ordinary, len(ordinary), settings.stalled_seconds, settings.silence_periods) or 0
        if not patience or (topic.life.commits_unasked and not alone):
            patience = max(patience, micros(settings.poll_seconds))
        if last_us - topic.life.settled(since_us, last_us) < patience:
            continue
        evidence = tuple(p.exchange_id for p in run if p.exchange_id)[: settings.max_evidence]
        figures: dict[str, int | str | None] = {
            "offset": offset, "commits": times, **behind.figures, "alone": int(alone),
            "client_id": run[-1].client_id, **track.lost(last_us, offset), **({"already": 1} if already else {}),
        }  # fmt: skip
        enough = since_us + patience
        hits.append(Trouble(STALLED, track.partition, first_us, last_us, enough, is_last, evidence, figures))
    yield from latest(hits)


def _later_stays(track: Track, runs: Sequence[Sequence[Point]], life: Life) -> list[int]:
    """How long the group stayed at offsets after the first one, µs, if it was there when the capture began.

    By these the first is judged, which nothing precedes; none if they are too few to be its rhythm.
    """
    if life.begun_us is None or life.settled(0, runs[0][-1].ts_us):
        return []
    found = [
        after[0].ts_us - since_us
        for run, after in pairwise(runs[1 : _REMEMBERED + 1])
        if (since_us := track.waiting_since(run[0].committed or 0, run[0].ts_us, after[0].ts_us, 1)) is not None
    ]
    return found if len(found) >= KNOWN_RHYTHM else []
