"""A group whose topic is deleted and made again: commits come late, and members may never notice.

Members commit by name, so that what they had read of the topic that is gone is committed in the new one. And they may
wait forever: a library that knows a later leader epoch, or looks for new topics every five minutes, reads nothing.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pipeline.analysis.rules.kafka.progress.member_history import Life
from pipeline.analysis.rules.kafka.progress.rhythm import KNOWN_RHYTHM, patience_of
from pipeline.analysis.rules.kafka.progress.silence import micros, severity_of_silence
from pipeline.analysis.rules.kafka.progress.track import SPAN_US, STOPPED, Point, Track, Trouble
from pipeline.analysis.rules.kafka.records_behind import Behind

if TYPE_CHECKING:
    from pipeline.analysis.rules.kafka.progress.thresholds import ProgressThresholds


def of_its_log(points: Sequence[Point], committed_before: int | None) -> list[Point]:
    """Points of a partition in a later life of its topic, without late commits of the log before.

    Those are beyond the end of this log as it was seen last, and not before what was committed last in the other one:
    an end may have been seen long ago.

    Args:
        points: in order of time. The end that one states was seen in a span of time before it.
        committed_before: the last offset committed in the life before; None: none was.
    """
    ends = [p for p in points if p.end is not None]
    times = [p.ts_us for p in ends]

    def is_of_it(point: Point) -> bool:
        seen = bisect_right(times, point.ts_us + SPAN_US)
        end = (ends[seen - 1].end or 0) if seen else 0
        if point.committed is None or committed_before is None or not ends:
            return True
        return point.committed <= end or point.committed < committed_before

    late: dict[str, Any] = {"commits": 0, "committed": None, "lag": None, "exchange_id": None, "fall": None}
    kept = [point if is_of_it(point) else replace(point, **late) for point in points]
    first = next((number for number, point in enumerate(kept) if point.commits), None)
    if first is not None:
        kept[first] = replace(kept[first], fall=None)  # nothing precedes the first commit of a life
    return kept


def not_back(
    before: Sequence[Track], after: Sequence[Track], span: tuple[int, int], life: Life, settings: ProgressThresholds
) -> Iterator[Trouble]:
    """A group that committed in a rhythm and, since the topic was recreated, has not, although there is work.

    Args:
        before, after: the partitions in the topic's last life in which it committed, and in this one.
        span: from when to when this one was seen, µs since the epoch.
        life: what is known of the group's members.
        settings: thresholds of ``stopped``.
    """
    begin_us, end_us = span
    usual = {track.partition: track for track in before if track.commits}
    times = sorted({us for track in usual.values() for us in track.commit_times})
    if len(times) <= KNOWN_RHYTHM:
        return
    known = [track.waits(times[-1], life.ended) for track in usual.values()]
    times_known = min(len(times) - 1, max(map(len, known)))
    waits = [wait for some in known for wait in some]
    patience = patience_of(waits, times_known, settings.stopped_seconds, settings.silence_periods)
    back_us = min((track.commit_times[0] for track in after if track.commit_times), default=None)
    until_us = end_us if back_us is None else back_us
    worth = settings.behind_records
    waiting = [
        (track, since_us)
        for track in after
        if track.partition in usual
        and not track.waits_in_vain(0, begin_us, until_us, worth)
        and (since_us := track.waiting_since(0, begin_us, until_us, worth)) is not None
    ]
    is_known = times_known >= KNOWN_RHYTHM
    if patience is None or not waiting or not (is_known or back_us is None):
        return
    if max(track.times[-1] for track in before) - times[-1] > patience:
        return  # it had gone before the topic went
    calm = life.calm(min(since_us for _, since_us in waiting), until_us)
    enough_us = next((first + patience for first, last in calm if last - first >= patience), None)
    if enough_us is None:
        return
    behind = sum((track.behind_at(until_us, 0) for track, _ in waiting), Behind())
    commits = sorted((usual[track.partition].commits[-1] for track, _ in waiting), key=lambda point: point.ts_us)
    severity = severity_of_silence([usual[track.partition] for track, _ in waiting], times[-1], behind.records)
    if not is_known and until_us - min(since_us for _, since_us in waiting) < micros(settings.poll_seconds):
        severity = "info"
    yield Trouble(
        STOPPED, None, begin_us, until_us, enough_us, back_us is None,
        tuple(dict.fromkeys(point.exchange_id for point in commits if point.exchange_id)),
        {"partitions": len(waiting), **behind.figures, "anew_us": begin_us},
        severity,
    )  # fmt: skip
