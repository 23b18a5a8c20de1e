"""What became of a position that was found gone: what caused it, and which records that concerns."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.analysis.tables import Row

OUT_OF_RANGE, NO_COMMIT, COMMIT_GONE = "out of range", "no commit", "commit gone"
SHORTER, BEYOND = "log shorter", "beyond the end"
"""The position is beyond the end of the log: the log ended later before, or was never seen to."""


@dataclass(frozen=True, slots=True)
class Reset:
    """One partition in which a client continued elsewhere. Offsets are those of the log; times µs since the epoch.

    Attributes:
        before: where the group was; None: nowhere.
        after: where it continued.
        log_start, log_end: first offset of the log and high watermark then; None: not known.
        committed_us: when the group last committed there afterwards; None: it did not.
        ended_at: how far the log was seen to reach before; None: not known.
        evidence: the exchange that shows the old position to be gone, and the first fetch at the new one.
    """

    cause: str
    partition: int
    client_id: str | None
    us: int
    before: int | None
    after: int
    log_start: int | None
    log_end: int | None
    evidence: tuple[str, ...]
    committed_us: int | None = None
    ended_at: int | None = None

    @property
    def cut(self) -> int:
        """Offsets that the log lost at its end, at least."""
        return (self.ended_at or 0) - (self.log_end or 0) if self.cause == SHORTER else 0

    @property
    def lost(self) -> int:
        """Records that retention (or DeleteRecords) took before they were read."""
        if self.before is None or self.log_start is None:
            return 0
        return max(min(self.log_start, self.after) - self.before, 0)

    @property
    def skipped(self) -> int:
        """Records that are there and were passed over."""
        begin = max(self.before or 0, self.log_start or 0)
        if self.before is None and self.log_start is None:
            return 0
        return max(self.after - begin, 0)

    @property
    def again(self) -> int:
        """Records that are read a second time; where the log is shorter than the position, at most those it has."""
        if self.before is None:
            return 0
        return max(min(self.before, self.log_end if self.log_end is not None else self.before) - self.after, 0)

    @property
    def severity(self) -> str:
        """By what it does to the records."""
        if self.cause == NO_COMMIT:
            return "info"
        return "critical" if self.lost or self.skipped else "warning"


def reset_of(row: Row) -> Reset | None:
    """What became of a position that was found gone; None if it is not known where it was.

    Args:
        row: when, where and by whom it was found gone (``us``, ``partition``, ``client_id``, ``exchange_id``), whether
            by a Fetch that was out of range (``is_out_of_range``, ``stood``); what the group had committed before
            (``committed_offset``); the next fetch (``went_on_us``, ``went_on_by``, ``went_on_at``), and the log as it
            shows (``log_start_offset``, ``high_watermark``).
    """
    before = row.committed_offset
    if row.is_out_of_range:
        cause = OUT_OF_RANGE
        before = row.stood if row.stood is not None else before
        if before is None:
            return None
        if row.high_watermark is not None and before > row.high_watermark:
            cause = BEYOND
    else:
        cause = COMMIT_GONE if before is not None else NO_COMMIT
    is_at_end = row.high_watermark is not None and row.went_on_at >= row.high_watermark
    # Whoever has no commit and begins elsewhere than at the end was given the place.
    log_start = row.log_start_offset if cause != NO_COMMIT or is_at_end else row.went_on_at
    return Reset(
        cause, row.partition, row.client_id, row.went_on_us, before, row.went_on_at, log_start, row.high_watermark,
        (row.exchange_id, row.went_on_by),
    )  # fmt: skip
