"""Judges while traffic continues: findings and incidents are reported when they begin, get worse, and end.

Frames come in pieces. After each piece the whole of what is kept is judged, by the functions that judge a capture. So
the findings in the end are those of ``diagnose`` of all of it, however it was cut, unless something had to be dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.analysis.connections import are_in
from pipeline.analysis.derive import Derived, Wanted, derive_from, findings_of, with_report
from pipeline.analysis.event_window import MOST_EXCHANGES, MOST_FACTS, EventWindow
from pipeline.analysis.incidents.incidents import incidents_table, judged
from pipeline.analysis.rules.finding_changes import Kind, kind_of_change
from pipeline.analysis.rules.model import SEVERITIES
from pipeline.analysis.rules.run import findings_table
from pipeline.analysis.safety.guard import InternalError, Noted, noting
from pipeline.config.settings import StreamSettings
from pipeline.embedded.diagnosis import Diagnosis, decoded, looked_at
from pipeline.embedded.duplicate_counts import DuplicateCounts
from pipeline.embedded.finding_retention import MOST_PAST, MOST_PAST_OF_CAPTURE, MOST_REPORTED, remembered
from pipeline.embedded.frame_numbers import PLACE_COLUMNS
from pipeline.embedded.free_memory import release_unused
from pipeline.embedded.incident_changes import IncidentChange, ReportedIncidents
from pipeline.tables import DUPLICATE_FLOWS

LEAST_EXCHANGES = 5_000
"""Kept, however long it takes to judge them."""

_MANY_EXCHANGES = 50_000
"""From this many frames on, giving memory back between the steps takes little beside them."""

MOST_OF_CAPTURE, STAYS_OF_CAPTURE = 250_000, 1 / 3
"""Exchanges of a capture that are judged at once, and the share of them that is judged again with the next ones: as
many as stay of traffic that continues."""

MOST_PLACES = 1_000_000
"""Frames of a capture whose place in it is noted: some hundred MB."""

_LIMITS = {
    "rows": "more traffic than is kept at once: from now on the older half is dropped each time; what began before "
    "that is remembered by its finding alone",
    "halves": "more requests without an answer than are kept: from now on the older half is dropped each time; the "
    "answer to one of these counts as one without a request",
    "connections": "more connections than are known at once: those that were silent for longest are forgotten; one of "
    "them that continues starts counting again",
    "names": f"more servers or topics than are known at once ({MOST_FACTS:,}): those that were named longest ago are "
    "forgotten, and stand by their address or id until they are named again",
    "past": "more findings that are past than are kept: those that were over first are forgotten; they were reported, "
    "and the summary lacks them",
}
"""What is reported of each limit, when it is reached for the first time."""


@dataclass(frozen=True, slots=True)
class Change:
    """What is to be reported of a finding.

    Attributes:
        kind: ``new``; ``again`` (it was over), ``worse`` (more severe than reported) or ``over``.
        row: of ``gold.findings``; ``first_us`` and ``last_us`` are its times, µs since the epoch.
    """

    kind: Kind
    row: Mapping[str, Any]


@dataclass(slots=True)
class Reported:
    """What of findings was reported, so that nothing is reported twice.

    Args:
        most: findings that have gone and are remembered as reported.
    """

    most: int = MOST_REPORTED
    _last: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    _gone: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    def changes(self, rows: Iterable[Mapping[str, Any]]) -> Iterator[Change]:
        """What is new in all findings of now. One that is found no more is over."""
        now = {row["finding_id"]: row for row in rows}
        before, self._last = self._last, now
        for finding_id, row in now.items():
            kind = kind_of_change(row, before.get(finding_id) or self._gone.pop(finding_id, None))
            if kind is not None:
                yield Change(kind, row)
        for finding_id, row in before.items():
            if finding_id not in now:
                if row["state"] != "resolved":
                    yield Change("resolved", {**row, "state": "resolved"})
                self._gone[finding_id] = {"state": "resolved", "severity": row["severity"]}
        for finding_id in list(self._gone)[: max(0, len(self._gone) - self.most)]:
            del self._gone[finding_id]


def diagnose_pieces(pieces: Iterable[tuple[pa.Table, pa.Table]], settings: StreamSettings) -> Diagnosis:
    """A capture that is too large to be judged at once: what is found in each part of it, remembered to the end.

    Args:
        pieces: landed frames and gaps in the order of time.
        settings: thresholds.

    Raises:
        ValueError: there are no frames.
    """
    following = StreamingDiagnoser(settings, MOST_OF_CAPTURE, STAYS_OF_CAPTURE, most_past=MOST_PAST_OF_CAPTURE)
    places: list[pa.Table] = []
    release_unused()  # what reading the capture took
    for frames, gaps in pieces:
        rows = following.add(frames, gaps)
        following.skip_changes()  # nothing is reported before the end
        if following.frames <= MOST_PLACES:
            places.append(rows.select(PLACE_COLUMNS))
        del rows, frames  # else the next piece is decoded beside this one
    following.judge()
    found = following.diagnosis("report")
    if found is None:
        raise ValueError("there are no frames to judge")
    return replace(found, places=pa.concat_tables(places) if following.frames <= MOST_PLACES else None)


class StreamingDiagnoser:
    """Landed rows in, changes out.

    Args:
        settings: thresholds, and how long halves wait.
        most: exchanges kept at once; None: MOST_EXCHANGES.
        stays: share of them that stays when they are too many.
        most_past: findings known that are found no more.
        by_kernel: whether the compiled kernel decodes, which takes seconds to load; None: where that pays.

    Attributes:
        frames: taken so far.
    """

    def __init__(
        self,
        settings: StreamSettings,
        most: int | None = None,
        stays: float = 0.5,
        *,
        most_past: int = MOST_PAST,
        by_kernel: bool | None = True,
    ) -> None:
        self._settings = settings
        self._gathering = EventWindow(settings, MOST_EXCHANGES if most is None else most, stays=stays)
        self._by_kernel = by_kernel
        self._most_past = most_past
        self._reached: set[str] = set()
        self._noted: set[str] = set()
        self._reported = Reported()
        self._reported_incidents = ReportedIncidents()
        self._rows: list[dict[str, Any]] = []
        self._incidents: list[dict[str, Any]] = []
        self._unreported: list[Change] = []
        self._unreported_incidents: list[IncidentChange] = []
        self._derived: Derived | None = None
        self._errors = Noted()
        self._copied = DuplicateCounts()
        self._has_connections = False
        self.frames = 0

    @property
    def since_us(self) -> int | None:
        """What came before this (µs since the epoch) was dropped, for there was too much; None: nothing was."""
        return self._gathering.since_us

    @property
    def has_connections(self) -> bool:
        """Whether connections came that rules look at, whether or not they spoke."""
        return self._has_connections

    @property
    def findings(self) -> Sequence[Mapping[str, Any]]:
        """Rows of ``gold.findings`` as they were judged last; ``first_us`` and ``last_us`` are times."""
        return self._rows

    @property
    def incidents(self) -> Sequence[Mapping[str, Any]]:
        """Rows of ``gold.incidents`` as they were judged last, what must be done first before the others."""
        return self._incidents

    @property
    def errors(self) -> tuple[InternalError, ...]:
        """Steps that failed so far, each once; the rest was judged all the same."""
        return self._errors.errors

    def noting_errors(self) -> AbstractContextManager[Noted]:
        """Within the block a step that fails is noted in :attr:`errors`."""
        return noting(self._errors)

    @property
    def derived(self) -> Derived | None:
        """What was judged: the tables that rules read; None if more came since, so that it takes no memory then."""
        return self._derived

    @property
    def gathering(self) -> EventWindow:
        """What is kept, and how much ever came."""
        return self._gathering

    @property
    def connections(self) -> int:
        """Connections that ever came, each once however often it was seen."""
        return max(0, self._gathering.connections - self._copied.connections)

    @property
    def exchanges(self) -> int:
        """Exchanges that ever came, each once however often it was seen."""
        return self._gathering.exchanges - self._copied.exchanges_with(self._gathering.kept.exchanges)

    def add(self, frames: pa.Table, gaps: pa.Table) -> pa.Table:
        """Take landed rows, each once, and give those of frames as rows of ``bronze.frames``."""
        if self._gathering.is_full:
            self._unreported += self._judged()
            self._drop()
        self._derived = None
        self.frames += frames.num_rows
        self._has_connections |= are_in(gaps)
        with self.noting_errors():
            rows = decoded(frames, by_kernel=self._by_kernel)
            self._gathering.add(rows, gaps)
        return rows

    def keep_less(self) -> None:
        """Judging takes too long: keep the newer half of what is kept, but for :data:`LEAST_EXCHANGES`."""
        if self._gathering.holds(2 * LEAST_EXCHANGES):
            self._drop()

    def _drop(self) -> None:
        before = self._gathering.kept.exchanges
        self._gathering.drop()
        since = pa.scalar(self._gathering.since_us, pa.timestamp("us", "UTC"))
        self._copied.dropped(before.filter(pc.less(before.column("ts"), since)))

    def judge(self) -> list[Change]:
        """Judge what is kept, and say what has changed since the last time."""
        changes, self._unreported = [*self._unreported, *self._judged()], []
        return changes

    def incident_changes(self) -> list[IncidentChange]:
        """What has changed of incidents since this was asked last, as of the last time that something was judged."""
        changes, self._unreported_incidents = self._unreported_incidents, []
        return changes

    def skip_changes(self) -> None:
        """Drop what has changed until now."""
        self._unreported, self._unreported_incidents = [], []

    def limits(self) -> list[str]:
        """Which limits were reached, a sentence each, since this was asked last; each once."""
        new = sorted((self._reached | self._gathering.reached) - self._noted)
        self._noted.update(new)
        return [_LIMITS[one] for one in new]

    def _judged(self) -> list[Change]:
        settings = self._settings.findings
        is_large = self._gathering.kept.exchanges.num_rows >= _MANY_EXCHANGES
        if is_large:
            release_unused()
        with self.noting_errors():
            self._derived = derive_from(self._gathering.kept, self._settings, "rules")
            self._copied.judged(self._derived.of(DUPLICATE_FLOWS), self._gathering.kept.exchanges)
            if is_large:
                release_unused()
            found = findings_of(self._derived, settings)
        ids = {finding.finding_id for finding in found.findings}
        roots = {row["root_id"] for row in self._incidents}
        known = remembered(self._rows, ids, roots, self._most_past)
        if len(known) < len(self._rows):
            self._reached.add("past")
        with self.noting_errors():
            now = judged(found, known, self.since_us, settings)
        self._rows, self._incidents = now.findings, now.incidents
        self._unreported_incidents += self._reported_incidents.changes(now.incidents)
        return sorted(self._reported.changes(now.findings), key=lambda change: SEVERITIES.index(change.row["severity"]))

    def diagnosis(self, wanted: Wanted = "all") -> Diagnosis | None:
        """What was judged last, as ``diagnose`` gives it, with these tables; None before anything came."""
        if not self.frames and not self._has_connections:
            return None
        with self.noting_errors():
            derived = (
                with_report(self._derived)
                if wanted == "report" and self._derived is not None
                else derive_from(self._gathering.kept, self._settings, wanted)
            )
        ever, copied = self._gathering, self._copied
        looked = replace(
            looked_at(derived), exchanges=self.exchanges, connections=self.connections, bytes_lost=ever.bytes_lost,
            first_us=ever.first_us, last_us=ever.last_us, copies=copied.connections, translated=copied.translated,
        )  # fmt: skip
        return Diagnosis(
            derived, findings_table(self._rows), incidents_table(self._incidents), looked,
            places=None, errors=self.errors,
        )  # fmt: skip
