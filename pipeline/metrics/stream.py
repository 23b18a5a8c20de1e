"""What the streaming job reports about itself."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pipeline.humanize import duration, pluralize, size
from pipeline.metrics.backlog import Backlog
from pipeline.metrics.endpoint import Exposed
from pipeline.metrics.sample import Sample


@dataclass(frozen=True, slots=True)
class BatchDone:
    """A batch that has ended.

    Attributes:
        query: name of the query.
        rows_in, rows_out: rows read, and written to the main table.
        seconds: how long it took.
        finished_s: when it ended, s since the epoch.
        newest_us: time of the newest row read, µs since the epoch; None: it read none, or they have none.
        failed_steps: rules, tables and other steps that failed in it.
    """

    query: str
    rows_in: int
    rows_out: int
    seconds: float
    finished_s: float
    newest_us: int | None
    failed_steps: int


@dataclass(slots=True)
class _Totals:
    """Of all batches of a query since the job began; ``newest_us``: the greatest that one of them had."""

    last: BatchDone
    batches: int = 0
    rows_in: int = 0
    rows_out: int = 0
    seconds: float = 0.0
    failed_steps: int = 0
    newest_us: int | None = None

    def add(self, done: BatchDone) -> None:
        """Count a batch."""
        self.last = done
        self.batches += 1
        self.rows_in += done.rows_in
        self.rows_out += done.rows_out
        self.seconds += done.seconds
        self.failed_steps += done.failed_steps
        self.newest_us = max((us for us in (self.newest_us, done.newest_us) if us is not None), default=None)


class StreamMetrics:
    """Samples of all batches since the job began; queries run in threads of their own."""

    def __init__(self, exposed: Exposed | None = None) -> None:
        self._exposed = exposed or Exposed()
        self._lock = threading.Lock()
        self._totals: dict[str, _Totals] = {}
        self._set_aside: Counter[str] = Counter()
        self._open: dict[tuple[str, str], int] = {}
        self._backlogs: dict[str, Backlog] = {}

    def batch(self, done: BatchDone) -> None:
        """Count a batch."""
        with self._lock:
            self._totals.setdefault(done.query, _Totals(done)).add(done)
            self._exposed.show(self._samples())

    def set_aside(self, kind: str, files: int) -> None:
        """Count landing files that could not be read."""
        with self._lock:
            self._set_aside[kind] += files
            self._exposed.show(self._samples())

    def backlog(self, kind: str, waiting: Backlog) -> None:
        """Take which landing files wait."""
        with self._lock:
            self._backlogs[kind] = waiting
            self._exposed.show(self._samples())

    def why_behind(self, most_s: float, now_s: float) -> str | None:
        """Why the job is behind, in a sentence; None: it is not.

        Args:
            most_s: so long a landing file may wait.
            now_s: the time, s since the epoch.
        """
        with self._lock:
            waiting = [one for one in self._backlogs.values() if one.oldest_s is not None]
        oldest_s = min((one.oldest_s for one in waiting if one.oldest_s is not None), default=now_s)
        if now_s - oldest_s <= most_s:
            return None
        files, held = sum(one.files for one in waiting), size(sum(one.size for one in waiting))
        waited = duration(now_s - oldest_s)
        return f"it is behind: {pluralize(files, 'landing file')} of {held} wait, the first for {waited}"

    def incidents(self, are_open: Mapping[tuple[str, str], int] | None) -> None:
        """Take how many incidents are open, by root rule and severity; None: it is not known."""
        if are_open is not None:
            with self._lock:
                self._open = dict(are_open)
                self._exposed.show(self._samples())

    def _samples(self) -> Iterator[Sample]:
        for query, of_all in sorted(self._totals.items()):
            of, last = {"query": query}, of_all.last
            yield _count("batches", "Batches.", of_all.batches, of)
            yield _count("rows_read", "Rows read.", of_all.rows_in, of)
            yield _count("rows_written", "Rows written to the main table.", of_all.rows_out, of)
            yield _count("failed_steps", "Rules, tables and other steps that failed.", of_all.failed_steps, of)
            yield _count("batch_seconds", "Time that batches took, s.", of_all.seconds, of)
            yield _now("last_batch_seconds", "Time that the last batch took, s.", last.seconds, of)
            yield _now("last_batch_timestamp_seconds", "When the last batch ended.", last.finished_s, of)
            if of_all.newest_us is not None:
                text = "Time of the newest row read, by the clock of the agent."
                yield _now("newest_timestamp_seconds", text, of_all.newest_us / 1e6, of)
        for kind, files in sorted(self._set_aside.items()):
            text = "Landing files that are damaged, foreign or gone; ops.landing_files names them."
            yield _count("files_set_aside", text, files, {"query": kind})
        for kind, waiting in sorted(self._backlogs.items()):
            of = {"query": kind}
            yield _now("backlog_files", "Landing files that no batch has read yet.", waiting.files, of)
            yield _now("backlog_bytes", "Bytes of these files.", waiting.size, of)
            if waiting.oldest_s is not None:
                yield _now("backlog_oldest_timestamp_seconds", "When the first of these came.", waiting.oldest_s, of)
        for (rule, severity), count in sorted(self._open.items()):
            text = "Incidents that are open at the end of the data, by the rule of their root."
            yield Sample("wirelake_ongoing_incidents", "gauge", text, count, {"rule": rule, "severity": severity})


def _count(name: str, text: str, value: float, labels: dict[str, str]) -> Sample:
    return Sample(f"wirelake_stream_{name}", "counter", text, value, labels)


def _now(name: str, text: str, value: float, labels: dict[str, str]) -> Sample:
    return Sample(f"wirelake_stream_{name}", "gauge", text, value, labels)
