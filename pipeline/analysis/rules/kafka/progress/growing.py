"""Whether a group falls behind although it works: the least lag of one third of a while after the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from pipeline.analysis.rules.kafka.progress.rhythm import KNOWN_RHYTHM, gaps_us, usual_us
from pipeline.analysis.rules.kafka.progress.track import LAG_GROWING, Track, Trouble

if TYPE_CHECKING:
    from pipeline.analysis.rules.kafka.progress.thresholds import ProgressThresholds

_ENOUGH_SAMPLES = 2
"""Commits in a span of time that it takes to know the least lag there."""
_USUAL_SHARE = 0.5
"""Of the time between commits: where one in ten was lost, most of it still passed in spans of the usual length."""
_STEPS = _ENOUGH_SAMPLES + 1
"""A while is looked at as often as it continues by such a part of its third, about a commit."""


@dataclass(frozen=True, slots=True)
class _Sample:
    """Offset and lag at a commit."""

    ts_us: int
    committed: int
    lag: int
    exchange_id: str | None


@dataclass(frozen=True, slots=True)
class _Third:
    """Of a while: its first and last commit, and the last of those with the least lag."""

    begin: _Sample
    end: _Sample
    lowest: _Sample

    @classmethod
    def of(cls, steps: Sequence[Sequence[_Sample]]) -> _Third | None:
        """None: of too few commits."""
        if sum(map(len, steps)) < _ENOUGH_SAMPLES:
            return None
        lowest = min((sample for some in steps for sample in some), key=lambda s: (s.lag, -s.ts_us))
        return cls(steps[0][0], steps[-1][-1], lowest)


def growing(track: Track, settings: ProgressThresholds) -> Iterator[Trouble]:
    """The group commits and gets on, and falls behind all the same: the least lag of each third of a while grows.

    Whiles of several lengths are looked at, from every commit on: what grows slowly takes longer to stand out. A lag
    that it has had before, and worked off, is its rhythm.
    """
    samples = [
        _Sample(p.ts_us, p.committed, p.lag, p.exchange_id)
        for p in track.commits
        if p.committed is not None and p.lag is not None
    ]
    if len(samples) < 3 * _ENOUGH_SAMPLES:
        return
    usual = usual_us(gaps_us([s.ts_us for s in samples]), _USUAL_SHARE)
    third_us = max(int(settings.lag_growing_seconds * 1_000_000) // 3, _STEPS * usual)
    hits: list[tuple[int, int]] = []
    while 2 * third_us < samples[-1].ts_us - samples[0].ts_us:
        hits += _growths(samples, third_us, settings)
        third_us *= 4
    if not hits:
        return
    runs = _runs(hits)
    first_us, last_us, enough_us = runs[-1]
    run = [s for s in samples if first_us <= s.ts_us <= last_us]
    before, after = run[0].lag, run[-1].lag
    if _times_worked_off([s.lag for s in samples if s.ts_us < first_us], max(s.lag for s in run)) >= KNOWN_RHYTHM:
        return
    figures = {"lag_before": before, "lag_after": after} | track.lost(last_us, run[-1].committed)
    if len(runs) > 1:
        figures |= {"recurrences": len(runs) - 1, "first_of_all_us": runs[0][0], "last_of_all_us": last_us}
    evidence = tuple(s.exchange_id for s in run[-settings.max_evidence :] if s.exchange_id)
    healed = any(s.lag <= (before + after) // 2 for s in samples if s.ts_us > last_us)
    yield Trouble(LAG_GROWING, track.partition, first_us, last_us, enough_us, not healed, evidence, figures)


def _times_worked_off(lags: Sequence[int], much: int) -> int:
    """How often it was so far behind, and came back to half of it."""
    times, is_behind = 0, False
    for lag in lags:
        if is_behind and lag <= much // 2:
            times, is_behind = times + 1, False
        is_behind = is_behind or lag >= much
    return times


def _growths(samples: Sequence[_Sample], third_us: int, settings: ProgressThresholds) -> Iterator[tuple[int, int]]:
    """From and to: three such spans of time in a row, in each of which the group commits further and lags more.

    From where the lag was least in the first of them.
    """
    step_us = third_us // _STEPS
    steps = {number: list(some) for number, some in groupby(samples, key=lambda s: s.ts_us // step_us)}
    thirds: dict[int, _Third | None] = {}

    def third(begin: int) -> _Third | None:
        if begin not in thirds:
            found = [some for step in range(begin, begin + _STEPS) if (some := steps.get(step))]
            thirds[begin] = _Third.of(found)
        return thirds[begin]

    for number in steps:
        first, last = third(number), third(number + 2 * _STEPS)
        if first is None or last is None or last.lowest.lag - first.lowest.lag < settings.lag_growing_records:
            continue
        second = third(number + _STEPS)
        if second is None or not first.end.committed < second.end.committed < last.end.committed:
            continue
        rate = (last.end.committed - first.begin.committed) / (last.end.ts_us - first.begin.ts_us)
        worth = max(settings.lag_growing_records, rate * settings.lag_growing_work_seconds * 1_000_000)
        growth = second.lowest.lag - first.lowest.lag, last.lowest.lag - second.lowest.lag
        # A burst lets it jump once.
        if sum(growth) >= worth and min(growth) >= worth / 4:
            yield first.lowest.ts_us, last.end.ts_us


def _runs(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int, int]]:
    """Of spans that may overlap, those that no pause divides: from, to, and the end of the first part."""
    runs: list[tuple[int, int, int]] = []
    for first_us, last_us in sorted(spans):
        if runs and first_us <= runs[-1][1]:
            begin, end, enough = runs[-1]
            runs[-1] = (begin, max(end, last_us), min(enough, last_us))
        else:
            runs.append((first_us, last_us, last_us))
    return runs
