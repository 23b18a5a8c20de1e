"""The streaming queries that make up the job, and how they end without cutting a batch in two."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from functools import partial

import duckdb
from deltalake.exceptions import DeltaError
from py4j.protocol import Py4JError
from pyarrow import ArrowException
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from pipeline.analysis.safety.guard import Noted
from pipeline.config.settings import StreamSettings
from pipeline.errors import UserError
from pipeline.metrics.stream import BatchDone, StreamMetrics
from pipeline.streaming.bronze.frames import Counted, FilesHere, write_frames, write_gaps
from pipeline.streaming.bronze.intake import InHand, Intake, LeftOut
from pipeline.streaming.gold.realtime_findings import RealtimeFindings
from pipeline.streaming.landing.reading import Landing
from pipeline.streaming.refresh import gold_news, take_news
from pipeline.streaming.silver.batches import Look, record_progress, write_exchanges
from pipeline.streaming.storage.internal_errors import noting_steps
from pipeline.streaming.storage.lake import Lake
from pipeline.streaming.storage.lake_io import LakeIO
from pipeline.streaming.storage.lock import Check
from pipeline.streaming.storage.new_files import names_alone, new_files
from pipeline.streaming.storage.sinks import Batch
from pipeline.tables import CHANGE_LOG, FRAMES, Table

Progress = Callable[[str], None]
Step = Callable[[DataFrame, Batch], Counted]
_GOLD_RESTS = 2.0
"""A refresh of gold takes the longer the more there is of an hour and a day. So that two thirds of the time are left to
what comes before it, the next one waits twice as long. What cannot wait is judged ahead."""
_ERRORS_SHOWN = 10
"""Of each batch; ``ops.internal_errors`` has all of them."""
_ENDING_S = 60.0
"""How long Spark may take to note the end of a batch, in seconds."""


class StreamError(UserError):
    """Raised when a query of the job failed. What it had committed stays; the next run continues from there."""


@dataclass(slots=True)
class StreamSummary:
    """Rows that each query read and wrote, by its name, the steps that failed, and the landing files left out."""

    rows_in: dict[str, int] = field(default_factory=dict)
    rows_out: dict[str, int] = field(default_factory=dict)
    errors: Noted = field(default_factory=Noted)
    left_out: LeftOut = field(default_factory=LeftOut)

    def exit_code(self, *, may_leave_out: bool) -> int:
        """What the command ends with: 2 if a step failed, 3 if files were left out and may not be, else 0."""
        if self.errors.errors:
            return 2
        return 3 if self.left_out and not may_leave_out else 0

    def add(self, query: str, counted: Counted) -> None:
        """Count a batch."""
        self.rows_in[query] = self.rows_in.get(query, 0) + counted.rows_in
        self.rows_out[query] = self.rows_out.get(query, 0) + counted.rows_out


class GateClosedError(Exception):
    """Ends a query whose batch came after the gate was closed; it has read and written nothing."""


class Gate:
    """Lets batches begin until it is closed. Batches that have begun by then run to their end."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._under_way = 0
        self._is_closed = False

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Around a batch.

        Raises:
            GateClosedError: no batch may begin any more.
        """
        with self._changed:
            if self._is_closed:
                raise GateClosedError
            self._under_way += 1
        try:
            yield
        finally:
            with self._changed:
                self._under_way -= 1
                self._changed.notify_all()

    def rest(self, until: float) -> None:
        """Wait until a time of the monotonic clock, or until it is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed, max(until - time.monotonic(), 0))

    def close(self) -> None:
        """Let no further batch begin, and wait for those under way."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._under_way == 0)


@dataclass(frozen=True, slots=True)
class Queries:
    """Starts the queries of a lake; ``once``: they end when they have read all that is there.

    ``must_hold``: asked before and after what each batch does.
    """

    spark: SparkSession
    lake: Lake
    settings: StreamSettings
    once: bool
    progress: Progress
    summary: StreamSummary
    in_hand: InHand = field(default_factory=InHand)
    metrics: StreamMetrics = field(default_factory=StreamMetrics)
    must_hold: Check = lambda: None
    gate: Gate = field(default_factory=Gate)
    ahead: RealtimeFindings = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "ahead", RealtimeFindings(self.settings))

    def _start(
        self, name: str, source: DataFrame, step: Step, every: float | None = None, rests: float = 0.0
    ) -> StreamingQuery:
        """Start a query.

        Args:
            name: of the query.
            source: what it reads.
            step: what it does with each batch.
            every: seconds from one batch to the next; None: as the settings have it.
            rests: after a batch so many times as long as that took.
        """
        begun: list[int] = []
        rested = 0.0

        def run(frame: DataFrame, number: int) -> None:
            nonlocal rested
            self.gate.rest(rested)
            began, started_us = time.monotonic(), time.time_ns() // 1000
            with self.gate.batch():
                batch = Batch.current(self.spark, number, may_repeat=not begun or not self.lake.is_local)
                begun.append(number)
                self.must_hold()
                with noting_steps(LakeIO(self.spark, self.lake), name, batch) as noted:
                    counted = step(frame, batch)
                self.must_hold()
                record_progress(frame.sparkSession, self.lake, name, batch, counted, started_us)
            took = time.monotonic() - began
            rested = time.monotonic() + rests * took
            self.summary.add(name, counted)
            self.metrics.batch(
                BatchDone(
                    name, counted.rows_in, counted.rows_out, took, time.time(), counted.newest_us, len(noted.errors)
                )
            )
            self.metrics.incidents(self.ahead.ongoing_incidents)
            self.progress(
                f"{name}: batch {number} read {counted.rows_in} rows, wrote {counted.rows_out} in {took:.1f} s"
                f"{_newest(counted)}"
            )
            self.summary.errors.add(noted.errors)
            for error in noted.errors[:_ERRORS_SHOWN]:
                self.progress(f"{name}: warning: {error}")

        writer = source.writeStream.queryName(name).foreachBatch(run)
        writer = writer.option("checkpointLocation", self.lake.checkpoint(name))
        if self.once:
            return writer.trigger(availableNow=True).start()
        return writer.trigger(processingTime=f"{every or self.settings.trigger_seconds} seconds").start()

    def of_landing(self, landing: Landing) -> list[Callable[[], StreamingQuery]]:
        """What starts the queries that read the landing zone."""
        return [partial(self.gaps, landing), partial(self.frames, landing)]

    def of_bronze(self) -> list[tuple[Callable[[], StreamingQuery], Table]]:
        """What starts those behind them, in the order in which the data flow, and the table that each reads."""
        return [(self.exchanges, FRAMES), (self.gold, CHANGE_LOG)]

    def frames(self, landing: Landing) -> StreamingQuery:
        """Landing zone → ``bronze.frames``."""

        def write(rows: DataFrame, batch: Batch, here: FilesHere | None) -> Counted:
            return write_frames(rows, self.lake, batch, self.settings, here=here, progress=self.progress)

        source = landing.frames(self.spark, self.settings.max_files_per_trigger)
        return self._start("frames", source, partial(self.intake(landing).take, "frames", write))

    def gaps(self, landing: Landing) -> StreamingQuery:
        """Landing zone → ``bronze.gaps``."""

        def write(rows: DataFrame, batch: Batch, here: FilesHere | None) -> Counted:
            return write_gaps(rows, self.lake, batch, here)

        source = landing.gaps(self.spark, self.settings.max_files_per_trigger)
        return self._start("gaps", source, partial(self.intake(landing).take, "gaps", write))

    def intake(self, landing: Landing) -> Intake:
        """What takes landing files into bronze."""
        return Intake(
            landing.root,
            self.lake,
            self.settings,
            self.progress,
            self.in_hand,
            self.summary.left_out if self.once else None,
            self.metrics.set_aside,
            self.metrics.backlog,
        )

    def exchanges(self) -> StreamingQuery:
        """``bronze.frames`` → silver."""
        look: Look = (lambda rows, new: None) if self.once else self.ahead.look

        def step(news: DataFrame, batch: Batch) -> Counted:
            files = new_files(news)
            if not files:
                return Counted(0, 0)
            return write_exchanges(news.sparkSession, files, self.lake, batch, self.settings, look)

        source = (
            self.spark.readStream.format("delta")
            .option("skipChangeCommits", "true")  # days decoded again and days expired are no news
            .option("maxFilesPerTrigger", self.settings.max_frames_files_per_trigger)
            .load(self.lake.path(FRAMES))
            .select(*names_alone())
        )
        return self._start("exchanges", source, step)

    def gold(self) -> StreamingQuery:
        """Silver → gold."""

        def step(noted: DataFrame, batch: Batch) -> Counted:
            return take_news(noted, self.lake, self.settings, self.ahead)

        source, rests = gold_news(self.spark, self.lake), 0.0 if self.once else _GOLD_RESTS
        return self._start("gold", source, step, self.settings.gold_trigger_seconds, rests)

    def run(self, *starts: Callable[[], StreamingQuery], is_enough: Callable[[], bool] = lambda: False) -> None:
        """Start queries, and wait until all have ended, or it is enough, or one failed; then none runs any more.

        Args:
            starts: the methods above.
            is_enough: asked once a second; once it is, batches under way are finished and no other begins.

        Raises:
            StreamError: a query failed.
        """
        queries: list[StreamingQuery] = []
        try:
            for start in starts:
                queries.append(start())  # noqa: PERF401 - should one fail, those before it are stopped
            while any(query.isActive for query in queries) and not _failed(queries):
                if is_enough():
                    self._close(queries)
                    break
                with suppress(StreamingQueryException):  # raised below
                    next((query for query in queries if query.isActive), queries[0]).awaitTermination(1)
            for query in queries:
                if (error := query.exception()) is not None and GateClosedError.__name__ not in str(error):
                    raise StreamError(
                        f"the query `{query.name}` stopped: {cause_of(error)}\n"
                        "Fix the cause and run again: it continues where it stopped."
                    ) from error
        finally:
            for query in queries:
                query.stop()

    def _close(self, queries: Sequence[StreamingQuery]) -> None:
        self.gate.close()
        deadline = time.monotonic() + _ENDING_S
        while time.monotonic() < deadline and any(q.isActive and q.status["isTriggerActive"] for q in queries):
            time.sleep(0.1)


def _newest(counted: Counted) -> str:
    """How near the wire a batch is; of a capture read later the date says so."""
    if counted.newest_us is None:
        return ""
    newest = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(microseconds=counted.newest_us)
    return f"; the newest is of {newest:%Y-%m-%d %H:%M:%S} UTC"


@contextmanager
def errors_as(kind: type[UserError], what: str) -> Iterator[None]:
    """Around work in Spark outside of queries: its errors become one line instead of Java's and Python's traces.

    Raises:
        UserError: of this kind; names what stopped and why.
    """
    try:
        yield
    except (PySparkException, Py4JError, DeltaError, ArrowException, duckdb.Error, OSError) as error:
        raise kind(f"{what} stopped: {cause_of(error)}\nMend the cause and ask again: it does the rest.") from error


def _failed(queries: Sequence[StreamingQuery]) -> bool:
    return any(query.exception() is not None for query in queries)


def cause_of(error: Exception) -> str:
    """The line of an error that states what happened, without Java's and Python's stack traces, and the file if any."""
    text = str(error).split("=== Streaming Query ===")[0]
    lines = [line.strip().removeprefix(": ") for line in text.splitlines()]  # as Py4J begins Java's message
    named = [line for line in lines if _NAMES_ERROR.match(line)]
    cause = named[-1] if named else next((line for line in lines if line), "no reason given")
    file = _NAMES_FILE.search(text)
    return f"{cause} (reading {file[1]})" if file and file[1] not in cause else cause


_NAMES_ERROR = re.compile(r"(?:Caused by: )?[\w.]*(?:Error|Exception): \S")
_NAMES_FILE = re.compile(r"FAILED_READ_FILE.* reading file (\S+?)\.?\s")
