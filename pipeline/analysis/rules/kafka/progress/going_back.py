"""Whether a group's commits went back and it reads again what it had read, by mistake or on purpose."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pipeline.analysis.rules.kafka.progress.track import (
    COMMIT_REGRESSED,
    RESET,
    REWOUND,
    SEEK,
    SPAN_US,
    SURPRISE,
    Fall,
    Track,
    Trouble,
    latest,
)

if TYPE_CHECKING:
    from pipeline.analysis.rules.kafka.progress.thresholds import ProgressThresholds

_ON_PURPOSE = (RESET, SEEK)


def regressed(track: Track, settings: ProgressThresholds) -> Iterator[Trouble]:
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
    severity = "info" if all(_how(track, fall) in _ON_PURPOSE for fall in falls) else None
    yield Trouble(
        COMMIT_REGRESSED, track.partition, first_us, last.ts_us, first_us, not healed, evidence, figures, severity
    )


def rewound(track: Track, now_us: int, settings: ProgressThresholds) -> Iterator[Trouble]:
    """The group went back and reads again: after a fall it fetches, or commits, what is in between."""
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
        how = _how(track, fall)
        figures: dict[str, int | str | None] = {
            "before": fall.before, "after": fall.after, "client_id": fall.client_id, "reached_us": reached, "how": how,
        }  # fmt: skip
        severity = "info" if how in _ON_PURPOSE else None
        last_us, is_open, evidence = reached or until_us, reached is None, (fall.exchange_id,)
        hits.append(
            Trouble(REWOUND, track.partition, fall.ts_us, last_us, again[0].ts_us, is_open, evidence, figures, severity)
        )
    yield from latest(hits)


def _how(track: Track, fall: Fall) -> str:
    if fall.is_reset:
        return RESET
    return SEEK if _is_own(fall) and _went_back(track, fall) else SURPRISE


def _went_back(track: Track, fall: Fall) -> bool:
    """Whether it fetched, since the commit before, from where it had read or committed already."""
    before = track.commit_at(fall.ts_us - 1)
    since_us = 0 if before is None else before.ts_us
    highest = 0 if before is None else before.committed or 0
    for point in track.between(since_us, fall.ts_us - 1):
        at = point.fetched_from
        if at is not None and at < highest and fall.spans(at):
            return True
        highest = max(highest, at or 0)
    return False


def _is_own(fall: Fall) -> bool:
    return fall.member_id == fall.other_member and fall.client_id == fall.other_client
