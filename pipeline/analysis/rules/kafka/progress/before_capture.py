"""Groups and partitions that were already silent when the capture began, and are committed again later.

The commit that they were at precedes the capture. Known are who was a member from the beginning on, what came to wait
until the first commit, and the rhythm of the commits that followed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from pipeline.analysis.rules.kafka.progress.rhythm import KNOWN_RHYTHM, patience_of
from pipeline.analysis.rules.kafka.progress.silence import micros, severity_of_silence
from pipeline.analysis.rules.kafka.progress.topic import Topic
from pipeline.analysis.rules.kafka.progress.track import DROPPED, SPAN_US, STOPPED, Point, Track, Trouble
from pipeline.analysis.rules.kafka.records_behind import Behind

if TYPE_CHECKING:
    from pipeline.analysis.rules.kafka.progress.thresholds import ProgressThresholds


class _Wait(NamedTuple):
    """What came to wait in a partition from the beginning on, and how long it may.

    Attributes:
        since_us: when there was enough of it, µs since the epoch.
        records: how much in the end.
        patience: by the rhythm of later commits, µs.
    """

    track: Track
    since_us: int
    records: int
    patience: int


def silent_from_begin(topic: Topic, settings: ProgressThresholds) -> Iterator[Trouble]:
    """Times from the beginning on in which members of the group committed nothing of the topic, or not a partition."""
    begin_us = topic.life.begun_us
    tracks = [track for track in topic.tracks if track.commits]
    if begin_us is None or not tracks:
        return
    first_us = min(track.commit_times[0] for track in tracks)
    floor = settings.stopped_seconds
    waits = [wait for one in tracks if (wait := _wait(one, topic, (begin_us, first_us), floor, settings)) is not None]
    if waits:
        yield _trouble(STOPPED, None, (begin_us, first_us), waits, {"partitions": len(waits)})
        return
    for track in tracks:
        span, owner = (begin_us, track.commit_times[0]), track.commits[0].owner
        others = topic.commits_of(owner, begin_us, span[1] - SPAN_US)
        if len(others) < settings.dropped_commits:
            continue
        usual = topic.usual_commits_of(owner, track.commit_times[-1])
        wait = _wait(track, topic, span, settings.dropped_seconds, settings, usual)
        if wait is not None:
            yield _trouble(DROPPED, track.partition, span, [wait], {"other_commits": len(others), "owner": owner})


def _wait(
    track: Track, topic: Topic, span: tuple[int, int], floor: float, settings: ProgressThresholds, usual: int = 0
) -> _Wait | None:
    """What came to wait in this time, if it was for longer than the later commits let anything wait."""
    begin_us, until_us = span
    known = track.waits(track.commit_times[-1], topic.life.ended)
    ends = [(p.ts_us, track.end_at(p.ts_us) or 0) for p in _ends(track, begin_us - SPAN_US, until_us)]
    patience = patience_of(known, len(known), floor, settings.silence_periods, usual)
    if len(known) < KNOWN_RHYTHM or patience is None or not ends or until_us - begin_us < max(patience, micros(floor)):
        return None
    stood, worth = ends[0][1], settings.behind_records
    since_us = next((us for us, end in ends if end >= stood + worth), None)
    if since_us is None or until_us - since_us < patience or track.waits_in_vain(stood, begin_us, until_us, worth):
        return None
    if not any(end - begin >= patience for begin, end in topic.life.calm(since_us, until_us)):
        return None
    return _Wait(track, since_us, ends[-1][1] - stood, patience)


def _ends(track: Track, first_us: int, last_us: int) -> list[Point]:
    """Points that state an end; none if a transaction is open there and the group may wait for it.

    Whether a group reads only what is committed is unknown while none of its fetches is seen.
    """
    points = [p for p in track.between(first_us, last_us) if p.end is not None]
    is_open = any(p.stable is not None and p.stable_end is not None and p.stable < p.stable_end for p in points)
    return [] if is_open and all(p.is_committed_only is None for p in track.points) else points


def _trouble(
    rule: str, partition: int | None, span: tuple[int, int], waits: Sequence[_Wait], more: Mapping[str, object]
) -> Trouble:
    first = [wait.track.commits[0].exchange_id for wait in waits]
    figures = {**sum((Behind(wait.records) for wait in waits), Behind()).figures, "already": True, **more}
    return Trouble(
        rule, partition, *span, min(wait.since_us + wait.patience for wait in waits), False,
        tuple(dict.fromkeys(one for one in first if one)), figures,
        None if rule == DROPPED else _severity(waits),
    )  # fmt: skip


def _severity(waits: Sequence[_Wait]) -> str:
    tracks = [wait.track for wait in waits]
    last_us = max(track.commit_times[-1] for track in tracks)
    return severity_of_silence(tracks, last_us, sum(wait.records for wait in waits))
