"""What the newest exchanges show by themselves: findings need not wait for the tables that gold derives.

A refresh of gold looks at hours and takes as long as they are full. Between two of them what has just been written to
silver is judged in this process, as ``diagnose --follow`` judges a pipe: by the same functions, and by what came within
seconds to minutes. What is new, comes again or is worse by that is in ``gold.findings`` at once; what is over, and
all that needs a longer look, is for the next refresh to say, which also judges again what was found ahead of it.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.analysis.derive import Gathered, derive_from, findings_of
from pipeline.analysis.event_window import TABLES, EventWindow
from pipeline.analysis.fit import schema_of
from pipeline.analysis.incidents.incidents import Grouped, grouped, incidents_table, judged
from pipeline.analysis.rules.finding_changes import kind_of_change
from pipeline.analysis.rules.run import Found, finding_rows, findings_table
from pipeline.analysis.safety.guard import attempt
from pipeline.config.settings import StreamSettings
from pipeline.streaming.gold.rule_exchanges import rule_exchanges
from pipeline.streaming.silver.bodies import together
from pipeline.streaming.silver.mongo import handshakes_of
from pipeline.streaming.storage.lake_io import LakeIO, same_rows
from pipeline.streaming.storage.table_scan import TableScan
from pipeline.tables import EXCHANGES, FINDINGS, GAPS, INCIDENTS, MONGO_HANDSHAKES

MOST_EXCHANGES = 20_000
"""Judged at once: a second of work."""
_BACK_US = 300_000_000
"""Of a job that has just begun so much of what silver holds is looked at, µs."""
_READ = {**{name: table for name, table in TABLES.items() if table is not MONGO_HANDSHAKES}, "exchanges": EXCHANGES}
"""Handshakes are read with the commands that they name, however long before them they came."""


Finding = Mapping[str, Any]
"""A row of ``gold.findings``; ``first_us`` and ``last_us`` are its times, µs since the epoch."""


class RealtimeFindings:
    """Judges what was just written, and keeps it from being lost in a refresh that has read before.

    One of these serves the query that writes silver and the one that refreshes gold, each in a thread of its own.

    Args:
        settings: thresholds.

    Attributes:
        ongoing_incidents: how many incidents are open, by root rule and severity; None: none were judged yet.
    """

    def __init__(self, settings: StreamSettings) -> None:
        self.ongoing_incidents: Mapping[tuple[str, str], int] | None = None
        self._settings = settings
        self._recent: EventWindow | None = None
        self._writing = threading.Lock()
        self._late: set[str] = set()  # found since the refresh under way began to read, or the last one
        self._early: set[str] = set()  # found before: that refresh judges them
        self._denied: set[str] = set()  # not found by it: what a look finds of them, a longer one does not confirm

    def look(self, rows: LakeIO, new: Gathered) -> None:
        """Judge exchanges together with what came shortly before, and write what must be reported.

        Where that fails, the failure is noted and the next look starts over: a refresh of gold judges all of it.

        Args:
            rows: of the lake.
            new: what a batch has written to silver. Of too much at once nothing is judged: a job that catches up is
                no help to who waits, and its refresh comes soon.
        """
        attempt("findings ahead of the refresh", partial(self._look, rows, new), self._forget)

    def _forget(self) -> None:
        self._recent = None

    def _look(self, rows: LakeIO, new: Gathered) -> None:
        if new.exchanges.num_rows > MOST_EXCHANGES:
            self._forget()
            return
        if self._recent is None:
            self._recent = self._begun(rows, new)
        else:
            self._recent.take(new)
        if self._recent.is_full:
            self._recent.drop()
        kept, since_us = self._recent.kept, self._recent.since_us or 0
        gaps = rows.read(TableScan.since(GAPS, since_us))
        kept = replace(kept, gaps=gaps, handshakes=_handshakes(rows, kept))
        found = findings_of(derive_from(kept, self._settings, "rules"), self._settings.findings)
        with self._writing:
            held = rows.read(TableScan(FINDINGS))
            known = finding_rows(held)
            judgement = judged(found, known, since_us, self._settings.findings).findings
            news = [row for row in _news(judgement, known) if row["finding_id"] not in self._denied]
            if news:
                self._late.update(row["finding_id"] for row in news)
                self._write(rows, _together(known, news), held)

    def begin_refresh(self) -> None:
        """A refresh is about to read silver: it will find what was found until now."""
        with self._writing:
            self._early |= self._late
            self._late.clear()

    def finish_refresh(self, rows: LakeIO, found: Found, since_us: int) -> int:
        """Judge and write what a refresh has found, with what was found since it began to read.

        Args:
            rows: of the lake.
            found: what the rules found.
            since_us: from when on they looked, µs since the epoch.

        Returns:
            How many findings there are.
        """
        with self._writing:
            held = rows.read(TableScan(FINDINGS))
            known = finding_rows(held)
            judgement = judged(found, known, since_us, self._settings.findings)
            refreshed = {row["finding_id"] for row in judgement.findings}
            self._denied = (self._denied | self._early) - refreshed
            self._early.clear()
            if late := [row for row in known if row["finding_id"] in self._late]:
                judgement = _together(judgement.findings, _news(late, judgement.findings))
            self._write(rows, judgement, held)
            return len(judgement.findings)

    def _write(self, rows: LakeIO, judgement: Grouped, held: pa.Table) -> None:
        """Make findings and incidents the content of their tables; what is the same already is not written.

        Args:
            rows: of the lake.
            judgement: the findings and incidents.
            held: what ``gold.findings`` holds.
        """
        kept, incidents = findings_table(judgement.findings), incidents_table(judgement.incidents)
        if not same_rows(kept, held, FINDINGS):
            rows.overwrite(kept, FINDINGS)
        if not same_rows(incidents, rows.read(TableScan(INCIDENTS)), INCIDENTS):
            rows.overwrite(incidents, INCIDENTS)
        self.ongoing_incidents = Counter(
            (one["rule"], one["severity"]) for one in judgement.incidents if one["state"] == "ongoing"
        )

    def _begun(self, rows: LakeIO, new: Gathered) -> EventWindow:
        """With what silver holds of the time shortly before, if it is little."""
        first_us = pc.min(new.exchanges.column("ts").cast(pa.int64())).as_py()
        since_us = first_us - _BACK_US
        wanted = {name: TableScan.since(table, since_us) for name, table in _READ.items()}
        held = rows.collect_if_small(wanted)
        if held is None or held["exchanges"].num_rows > MOST_EXCHANGES:
            since_us, held = first_us, {name: getattr(new, name) for name in _READ}
        else:
            pieces = rule_exchanges(rows, wanted["exchanges"], self._settings.findings, held["exchanges"])
            held["exchanges"] = together(pieces)
        recent = EventWindow(self._settings, MOST_EXCHANGES, since_us)
        recent.take(replace(new, **held))
        return recent


def _news(found: Iterable[Finding], known: Iterable[Finding]) -> list[Finding]:
    """Of what was found what was not known; or was over, or less severe, and has newer evidence."""
    last = {row["finding_id"]: row for row in known}

    def is_news(row: Finding) -> bool:
        before = last.get(row["finding_id"])
        is_newer = before is None or row["last_us"] > before["last_us"]
        return is_newer and kind_of_change(row, before) not in (None, "resolved")

    return [row for row in found if is_news(row)]


def _together(known: Iterable[Finding], news: Iterable[Finding]) -> Grouped:
    rows = {row["finding_id"]: row for row in (*known, *news)}
    return grouped([rows[finding_id] for finding_id in sorted(rows)])


def _handshakes(rows: LakeIO, kept: Gathered) -> pa.Table:
    if not kept.commands.num_rows:
        return schema_of(MONGO_HANDSHAKES).empty_table()
    return handshakes_of(rows, kept.commands)
