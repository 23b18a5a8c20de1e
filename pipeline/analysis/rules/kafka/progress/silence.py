"""When nothing was committed, and who held the partition then: what rules about silence share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from pipeline.analysis.rules.kafka.progress.rhythm import KNOWN_RHYTHM
from pipeline.analysis.rules.kafka.progress.track import Track, Trouble

if TYPE_CHECKING:
    from pipeline.analysis.rules.kafka.progress.thresholds import ProgressThresholds

_FEW_TAKES = 3
"""Records that the group takes in this many commits are few to wait for it."""


def micros(seconds: float) -> int:
    """µs."""
    return int(seconds * 1_000_000)


def silences(times: Sequence[int], now_us: int) -> Iterator[tuple[int, int, bool]]:
    """From, to, and whether it lasts: all spans between two commits, and that after the last."""
    yield from ((before, after, False) for before, after in pairwise(times))
    yield times[-1], now_us, True


def not_its_rhythm(hits: Sequence[Trouble]) -> list[tuple[int, int | None]]:
    """From when to when it was ill before. What came often, and took much of its time, is its rhythm after all."""
    return [(hit.first_us, hit.last_us) for hit in hits] if len(hits) < KNOWN_RHYTHM else []


def severity_of_silence(tracks: Sequence[Track], first_us: int, records: int) -> str:
    """By what waits: what the group takes in a few commits is little."""
    return "warning" if records < _FEW_TAKES * sum(track.usual_take(first_us) for track in tracks) else "critical"


def silences_of(track: Track, now_us: int) -> Iterator[tuple[int, int, bool]]:
    """The same of one partition; none if it was never committed."""
    return silences(track.commit_times, now_us) if track.commit_times else iter(())


def fetched_beyond(
    tracks: Sequence[Track], first_us: int, last_us: int, settings: ProgressThresholds
) -> dict[str, int | str | None]:
    """Records that the group fetched beyond its last commits, as figures; none unless it kept up with the log.

    Of each partition to nearly the end of the log, and of one at least in several steps: who fetched once and hangs
    keeps up with nothing that came later.
    """
    fetched = most_steps = 0
    for track in tracks:
        last = track.commit_at(first_us)
        reached = (last.committed or 0) if last else 0
        begun_at, steps = reached, 0
        for point in track.between(first_us, last_us):
            if point.position is not None and point.position > reached:
                reached, steps = point.position, steps + 1
        if not steps or track.lag_at(last_us, reached) >= settings.behind_records:
            return {}
        fetched, most_steps = fetched + reached - begun_at, max(most_steps, steps)
    return {"fetched_beyond": fetched} if most_steps >= settings.dropped_commits else {}


def reads_on(track: Track, committed: int, first_us: int, last_us: int, worth: int) -> bool:
    """Whether the group fetched this many records beyond ``committed`` in this time."""
    positions = [p.position for p in track.between(first_us, last_us) if p.position is not None]
    return bool(positions) and max(positions) - committed >= worth
