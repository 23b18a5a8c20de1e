"""What the streaming job reports about itself."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

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


class StreamMetrics:
    """Samples of all batches since the job began; queries run in threads of their own."""

    def __init__(self, exposed: Exposed | None = None) -> None:
        self._exposed = exposed or Exposed()
        self._lock = threading.Lock()
        self._batches: Counter[str] = Counter()
        self._rows_in: Counter[str] = Counter()
        self._rows_out: Counter[str] = Counter()
        self._failed: Counter[str] = Counter()
        self._seconds: dict[str, float] = {}
        self._last: dict[str, BatchDone] = {}
        self._newest_us: dict[str, int] = {}
        self._set_aside: Counter[str] = Counter()
        self._open: dict[tuple[str, str], int] = {}

    def batch(self, done: BatchDone) -> None:
        """Count a batch."""
        with self._lock:
            self._batches[done.query] += 1
            self._rows_in[done.query] += done.rows_in
            self._rows_out[done.query] += done.rows_out
            self._failed[done.query] += done.failed_steps
            self._seconds[done.query] = self._seconds.get(done.query, 0.0) + done.seconds
            self._last[done.query] = done
            if done.newest_us is not None:
                self._newest_us[done.query] = max(done.newest_us, self._newest_us.get(done.query, done.newest_us))
            self._exposed.show(self._samples())

    def set_aside(self, kind: str, files: int) -> None:
        """Count landing files that could not be read."""
        with self._lock:
            self._set_aside[kind] += files
            self._exposed.show(self._samples())

    def incidents(self, are_open: Mapping[tuple[str, str], int] | None) -> None:
        """Take how many incidents are open, by root rule and severity; None: it is not known."""
        if are_open is not None:
            with self._lock:
                self._open = dict(are_open)
                self._exposed.show(self._samples())

    def _samples(self) -> Iterator[Sample]:
        for query, last in sorted(self._last.items()):
            of = {"query": query}
            yield _count("batches", "Batches.", self._batches[query], of)
            yield _count("rows_read", "Rows read.", self._rows_in[query], of)
            yield _count("rows_written", "Rows written to the main table.", self._rows_out[query], of)
            yield _count("failed_steps", "Rules, tables and other steps that failed.", self._failed[query], of)
            yield _count("batch_seconds", "Time that batches took, s.", self._seconds[query], of)
            yield _now("last_batch_seconds", "Time that the last batch took, s.", last.seconds, of)
            yield _now("last_batch_timestamp_seconds", "When the last batch ended.", last.finished_s, of)
            if (newest_us := self._newest_us.get(query)) is not None:
                text = "Time of the newest row read, by the clock of the agent."
                yield _now("newest_timestamp_seconds", text, newest_us / 1e6, of)
        for kind, files in sorted(self._set_aside.items()):
            text = "Landing files that are damaged, foreign or gone; ops.landing_files names them."
            yield _count("files_set_aside", text, files, {"query": kind})
        for (rule, severity), count in sorted(self._open.items()):
            text = "Incidents that are open at the end of the data, by the rule of their root."
            yield Sample("wirelake_open_incidents", "gauge", text, count, {"rule": rule, "severity": severity})


def _count(name: str, text: str, value: float, labels: dict[str, str]) -> Sample:
    return Sample(f"wirelake_stream_{name}", "counter", text, value, labels)


def _now(name: str, text: str, value: float, labels: dict[str, str]) -> Sample:
    return Sample(f"wirelake_stream_{name}", "gauge", text, value, labels)
