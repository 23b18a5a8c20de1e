"""Does a group get on? What the commits of one group on one topic show, partition by partition, over time.

Functions over points in time; :mod:`pipeline.analysis.rules.kafka.lagging` brings the points and words the findings.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from statistics import median

from pipeline.analysis.rules.kafka.track import (
    COMMIT_REGRESSED,
    DROPPED,
    LAG_GROWING,
    REWOUND,
    SPAN_US,
    STALLED,
    STOPPED,
    Point,
    Track,
    Trouble,
)
from pipeline.settings import FindingSettings

_KNOWN_RHYTHM = 3
"""Commits that it takes to know how often a group commits."""
_ENOUGH_SAMPLES = 3
"""Commits in a span of time that it takes to know the least lag there."""


def judge(partitions: Mapping[int, Sequence[Point]], settings: FindingSettings, end_us: int = 0) -> list[Trouble]:
    """All troubles of one group on one topic; of one rule and partition the last, with the time of the first.

    Args:
        partitions: points of each partition, in order of time.
        settings: thresholds.
        end_us: until when the cluster was seen, µs since the epoch, if that is later than the last point.
    """
    tracks = [Track.of(partition, points) for partition, points in sorted(partitions.items())]
    now_us = max((p.ts_us for t in tracks for p in t.points), default=0)
    found: list[Trouble] = list(_stopped(tracks, now_us, max(now_us, end_us), settings))
    commit_times = sorted(time for track in tracks for time in track.commit_times)
    for track in tracks:
        for find in (_stalled, _growing, _regressed, _rewound):
            found += find(track, now_us, settings)
        found += _dropped(track, commit_times, now_us, settings)
    return found


def judge_lives(
    partitions: Mapping[int, Sequence[Point]], anew: Sequence[int], settings: FindingSettings, end_us: int = 0
) -> list[Trouble]:
    """As :func:`judge`, of a topic that was deleted and made anew: its offsets begin again, and what was is over.

    Args:
        partitions, settings, end_us: see :func:`judge`.
        anew: when the topic's later lives begin, µs since the epoch, ascending.
    """
    latest: dict[tuple[str, int | None], Trouble] = {}
    for number, begin in enumerate((0, *anew)):
        end = anew[number] if number < len(anew) else None
        life = {
            partition: _first_does_not_fall([p for p in points if begin <= p.ts_us and (end is None or p.ts_us < end)])
            for partition, points in partitions.items()
        }
        lived = {partition: points for partition, points in life.items() if points}
        for trouble in judge(lived, settings, end_us if end is None else 0):
            latest[trouble.rule, trouble.partition] = trouble if end is None else replace(trouble, is_open=False)
    return list(latest.values())


def _first_does_not_fall(points: list[Point]) -> list[Point]:
    """Nothing precedes the first commit of a topic's life."""
    first = next((number for number, point in enumerate(points) if point.commits), None)
    if first is not None:
        points[first] = replace(points[first], fall=None)
    return points


def _us(seconds: float) -> int:
    return int(seconds * 1_000_000)


def _silences(times: Sequence[int], now_us: int) -> Iterator[tuple[int, int, bool]]:
    """From, to, and whether it lasts: all spans between two commits, and that after the last."""
    yield from ((before, after, False) for before, after in pairwise(times))
    yield times[-1], now_us, True


def _stopped(tracks: Sequence[Track], now_us: int, end_us: int, settings: FindingSettings) -> Iterator[Trouble]:
    """No partition of the topic is committed any more, although there is something to read.

    What came after the last commit waits until the end of all that was seen (``end_us``). A group that was behind
    before may have ended with its producers: it is judged as long as somebody speaks of the topic (``now_us``).
    """
    times = sorted({time for track in tracks for time in track.commit_times})
    if len(times) < _KNOWN_RHYTHM:
        return
    usual = int(median(after - before for before, after in pairwise(times)))
    patience = max(_us(settings.stopped_seconds), 5 * usual)
    hits: list[Trouble] = []
    for first_us, last_us, lasts in _silences(times, now_us):
        seen_us = end_us if lasts else last_us
        if seen_us - first_us < patience:
            continue
        behind: dict[int, tuple[int, int, Point]] = {}
        for track in tracks:
            last = track.commit_at(first_us)
            if (
                last is None
                or last.committed is None
                or track.waits(last.committed, first_us, last_us, settings.behind_records)
            ):
                continue
            lag = track.lag_at(last_us, last.committed)
            since_us = track.waiting_since(last.committed, first_us, last_us, settings.behind_records)
            until_us = last_us if since_us == first_us else seen_us
            if since_us is not None and until_us - since_us >= patience and lag >= settings.behind_records:
                behind[track.partition] = (since_us, lag, last)
        if behind:
            until_us = seen_us if any(since_us > first_us for since_us, _, _ in behind.values()) else last_us
            enough = min(since_us for since_us, _, _ in behind.values()) + patience
            commits = sorted((last.ts_us, last.exchange_id) for _, _, last in behind.values() if last.exchange_id)
            evidence = tuple(dict.fromkeys(exchange_id for _, exchange_id in commits))
            figures = {"partitions": len(behind), "records_behind": sum(lag for _, lag, _ in behind.values())}
            hits.append(Trouble(STOPPED, None, first_us, until_us, enough, lasts, evidence, figures))
    yield from hits[-1:]


def _dropped(track: Track, commit_times: Sequence[int], now_us: int, settings: FindingSettings) -> Iterator[Trouble]:
    """The group goes on committing other partitions of the topic, but not this one, which has something to read.

    Args:
        track: the partition.
        commit_times: of all partitions, this one among them, ascending; every commit counts.
        now_us: when the last was seen of the group.
        settings: thresholds.
    """
    if len(track.commits) < _KNOWN_RHYTHM:
        return
    hits: list[Trouble] = []
    by_time = {p.ts_us: p for p in track.commits}
    for first_us, last_us, lasts in _silences(track.commit_times, now_us):
        if last_us - first_us < _us(settings.dropped_seconds):
            continue
        committed = by_time[first_us].committed or 0
        since_us = track.waiting_since(committed, first_us, last_us, settings.behind_records)
        if since_us is None:
            continue
        begin, end = bisect_right(commit_times, since_us), bisect_right(commit_times, last_us)
        if not lasts:
            end -= 1  # its own commit, which ends the silence
        others = end - begin
        if others < settings.dropped_commits or commit_times[end - 1] - since_us < _us(settings.dropped_seconds):
            continue
        lag = track.lag_at(last_us, committed)
        if lag < settings.behind_records or track.waits(committed, first_us, last_us, settings.behind_records):
            continue
        enough = max(commit_times[begin + settings.dropped_commits - 1], since_us + _us(settings.dropped_seconds))
        evidence = tuple(e for e in (by_time[first_us].exchange_id,) if e)
        figures = {"committed": committed, "records_behind": lag, "other_commits": others}
        hits.append(Trouble(DROPPED, track.partition, first_us, last_us, enough, lasts, evidence, figures))
    yield from hits[-1:]


def _stalled(track: Track, now_us: int, settings: FindingSettings) -> Iterator[Trouble]:
    """One offset is committed again and again, records wait behind it, and the group fetches none of them."""
    hits: list[Trouble] = []
    for offset, group in groupby(track.commits, key=lambda p: p.committed):
        run = list(group)
        first_us, last_us = run[0].ts_us, run[-1].ts_us
        times = sum(p.commits for p in run)
        lasts = run[-1] is track.commits[-1]
        grown = (track.end_at(last_us) or 0) - (track.end_at(first_us) or 0)
        if offset is None or times < settings.stalled_commits or last_us - first_us < _us(settings.stalled_seconds):
            continue
        middle = (first_us + last_us) // 2
        # Who fetches on in vain starves, who fetches further only fails to commit: other rules report these.
        if any(p.position is not None for p in track.between(middle, last_us)):
            continue
        if min(grown, track.lag_at(last_us, offset)) < settings.behind_records:
            continue
        enough = first_us + _us(settings.stalled_seconds)
        evidence = tuple(p.exchange_id for p in run if p.exchange_id)[: settings.max_evidence]
        figures = {"offset": offset, "commits": times, "records_behind": track.lag_at(last_us, offset)}
        hits.append(Trouble(STALLED, track.partition, first_us, last_us, enough, lasts, evidence, figures))
    yield from hits[-1:]


def _growing(track: Track, now_us: int, settings: FindingSettings) -> Iterator[Trouble]:
    """The group commits and gets on, and falls behind all the same: the least lag of each third of a while grows.

    Whiles of several lengths are looked at: what grows slowly takes longer to stand out.
    """
    samples = [
        _Sample(p.ts_us, p.committed, p.lag, p.exchange_id)
        for p in track.commits
        if p.committed is not None and p.lag is not None
    ]
    if len(samples) < 3 * _ENOUGH_SAMPLES:
        return
    usual = int(median(after.ts_us - before.ts_us for before, after in pairwise(samples)))
    shortest_us = third_us = max(_us(settings.lag_growing_seconds) // 3, (_ENOUGH_SAMPLES + 1) * usual)
    hits: list[tuple[int, int]] = []
    while 2 * third_us < samples[-1].ts_us - samples[0].ts_us:
        hits += _growths(samples, third_us, settings)
        third_us *= 4
    if not hits:
        return
    first_us, last_us, enough_us = _last_run(hits)
    run = [s for s in samples if first_us <= s.ts_us <= last_us]
    figures = {"lag_before": run[0].lag, "lag_after": run[-1].lag}
    evidence = tuple(s.exchange_id for s in run[-settings.max_evidence :] if s.exchange_id)
    lasts = samples[-1].ts_us - last_us <= shortest_us
    yield Trouble(LAG_GROWING, track.partition, first_us, last_us, enough_us, lasts, evidence, figures)


@dataclass(frozen=True, slots=True)
class _Sample:
    """Offset and lag at a commit."""

    ts_us: int
    committed: int
    lag: int
    exchange_id: str | None


def _growths(samples: Sequence[_Sample], third_us: int, settings: FindingSettings) -> Iterator[tuple[int, int]]:
    """From and to: three such spans of time in a row, in each of which the group commits further and lags more."""
    thirds = [(number, list(some)) for number, some in groupby(samples, key=lambda s: s.ts_us // third_us)]
    for (number, first), (_, second), (last_number, third) in zip(thirds, thirds[1:], thirds[2:], strict=False):
        three = (first, second, third)
        if last_number - number > 2 or min(map(len, three)) < _ENOUGH_SAMPLES:
            continue
        done = [some[-1].committed for some in three]
        least = [min(s.lag for s in some) for some in three]
        begin, end = first[0], third[-1]
        rate = (end.committed - begin.committed) / (end.ts_us - begin.ts_us)
        worth = max(settings.lag_growing_records, rate * _us(settings.lag_growing_work_seconds))
        steps = least[1] - least[0], least[2] - least[1]
        # A burst lets it jump once.
        if done[0] < done[1] < done[2] and sum(steps) >= worth and min(steps) >= worth / 4:
            yield begin.ts_us, end.ts_us


def _last_run(spans: Iterable[tuple[int, int]]) -> tuple[int, int, int]:
    """Of spans that may overlap, the last that no pause divides: from, to, and the end of its first part."""
    runs: list[tuple[int, int, int]] = []
    for first_us, last_us in sorted(spans):
        if runs and first_us <= runs[-1][1]:
            begin, end, enough = runs[-1]
            runs[-1] = (begin, max(end, last_us), min(enough, last_us))
        else:
            runs.append((first_us, last_us, last_us))
    return runs[-1]


def _regressed(track: Track, now_us: int, settings: FindingSettings) -> Iterator[Trouble]:
    """A commit was accepted that is older than the one before it."""
    falls = [p.fall for p in track.points if p.fall is not None]
    if not falls:
        return
    deepest = max(falls, key=lambda fall: fall.before - fall.after)
    last = falls[-1]
    healed = any(p.ts_us > last.ts_us and (p.committed or 0) >= last.before for p in track.commits)
    figures: dict[str, int | str | None] = {
        "falls": len(falls), "before": deepest.before, "after": deepest.after, "client_id": deepest.client_id,
        "at_us": deepest.ts_us,
    }  # fmt: skip
    evidence = tuple(fall.exchange_id for fall in falls)[-settings.max_evidence :]
    first_us = falls[0].ts_us
    yield Trouble(COMMIT_REGRESSED, track.partition, first_us, last.ts_us, first_us, not healed, evidence, figures)


def _rewound(track: Track, now_us: int, settings: FindingSettings) -> Iterator[Trouble]:
    """The group went back and reads again: after a fall it fetches, or commits, what lies in between."""
    hits: list[Trouble] = []
    falls = [p.fall for p in track.points if p.fall is not None]
    for n, fall in enumerate(falls):
        until_us = falls[n + 1].ts_us if n + 1 < len(falls) else now_us
        if fall.before - fall.after < settings.behind_records:
            continue
        later = track.between(fall.ts_us - 1, until_us)
        again = [
            p
            for p in later
            # What was fetched in the span of the fall itself may have been fetched before it.
            if (fall.spans(p.fetched_from) and p.ts_us > fall.ts_us + SPAN_US)
            or (fall.spans(p.committed) and p.committed != fall.after)
        ]
        if not again:
            continue
        reached = next((p.ts_us for p in later if p.ts_us > fall.ts_us and (p.committed or 0) >= fall.before), None)
        figures: dict[str, int | str | None] = {
            "before": fall.before, "after": fall.after, "client_id": fall.client_id, "reached_us": reached,
        }  # fmt: skip
        last_us, is_open = reached or until_us, reached is None
        evidence = (fall.exchange_id,)
        hits.append(Trouble(REWOUND, track.partition, fall.ts_us, last_us, again[0].ts_us, is_open, evidence, figures))
    yield from hits[-1:]
