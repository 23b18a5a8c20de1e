"""Does a group fall behind although it works? The least lag of one third of a while after the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from pipeline.analysis.rules.kafka.progress.rhythm import KNOWN_RHYTHM, gaps_us, usual_us
from pipeline.analysis.rules.kafka.progress.track import LAG_GROWING, Track, Trouble
from pipeline.finding_settings import FindingSettings

_ENOUGH_SAMPLES = 2
"""Commits in a span of time that it takes to know the least lag there."""


@dataclass(frozen=True, slots=True)
class _Sample:
    """Offset and lag at a commit."""

    ts_us: int
    committed: int
    lag: int
    exchange_id: str | None


def growing(track: Track, settings: FindingSettings) -> Iterator[Trouble]:
    """The group commits and gets on, and falls behind all the same: the least lag of each third of a while grows.

    Whiles of several lengths are looked at: what grows slowly takes longer to stand out. A lag that it has had before,
    and worked off, is its rhythm.
    """
    samples = [
        _Sample(p.ts_us, p.committed, p.lag, p.exchange_id)
        for p in track.commits
        if p.committed is not None and p.lag is not None
    ]
    if len(samples) < 3 * _ENOUGH_SAMPLES:
        return
    usual = usual_us(gaps_us([s.ts_us for s in samples]))
    third_us = max(int(settings.lag_growing_seconds * 1_000_000) // 3, (_ENOUGH_SAMPLES + 1) * usual)
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
        worth = max(settings.lag_growing_records, rate * settings.lag_growing_work_seconds * 1_000_000)
        steps = least[1] - least[0], least[2] - least[1]
        # A burst lets it jump once.
        if done[0] < done[1] < done[2] and sum(steps) >= worth and min(steps) >= worth / 4:
            yield begin.ts_us, end.ts_us


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
