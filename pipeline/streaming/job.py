"""The streaming job: what runs, in which order, until when. Also the script for ``spark-submit``.

spark-submit pipeline/streaming/job.py --landing DIR --lake DIR [--once] [--conf FILE]
spark-submit pipeline/streaming/job.py --lake DIR --backfill-from 2026-01-01 --backfill-to 2026-01-02 [--recode]
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

if __name__ == "__main__" and __package__ is None:
    # spark-submit puts this file's folder on the path, not the packages it belongs to.
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from pipeline.errors import UserError
from pipeline.settings import StreamSettings, load_settings
from pipeline.streaming.backfill import backfill_days
from pipeline.streaming.batches import record_progress, write_exchanges
from pipeline.streaming.exchanges import HALF_COLUMNS
from pipeline.streaming.frames import Counted, record_files, write_frames, write_gaps
from pipeline.streaming.gold import gold_news, write_gold
from pipeline.streaming.lake import Lake, create_tables
from pipeline.streaming.landing import Landing
from pipeline.streaming.lock import job_lock
from pipeline.streaming.session import build_session
from pipeline.streaming.sinks import Batch
from pipeline.tables import FRAMES

Progress = Callable[[str], None]
_Step = Callable[[DataFrame, Batch], Counted]


class StreamError(UserError):
    """Raised when a query of the job failed. What it had committed stays; the next run goes on from there."""


@dataclass(slots=True)
class StreamSummary:
    """Rows that each query read and wrote, by its name."""

    rows_in: dict[str, int] = field(default_factory=dict)
    rows_out: dict[str, int] = field(default_factory=dict)

    def add(self, query: str, counted: Counted) -> None:
        """Count a batch."""
        self.rows_in[query] = self.rows_in.get(query, 0) + counted.rows_in
        self.rows_out[query] = self.rows_out.get(query, 0) + counted.rows_out


@dataclass(frozen=True, slots=True)
class _Job:
    spark: SparkSession
    lake: Lake
    settings: StreamSettings
    once: bool
    progress: Progress
    summary: StreamSummary

    def start(self, name: str, source: DataFrame, step: _Step) -> StreamingQuery:
        """Start the query ``name``: ``step`` for each batch of ``source``."""

        def run(frame: DataFrame, number: int) -> None:
            batch = Batch.current(self.spark, number)
            counted = step(frame, batch)
            record_progress(frame.sparkSession, self.lake, name, batch, counted)
            self.summary.add(name, counted)
            self.progress(f"{name}: batch {number} read {counted.rows_in} rows, wrote {counted.rows_out}")

        writer = source.writeStream.queryName(name).foreachBatch(run)
        writer = writer.option("checkpointLocation", self.lake.checkpoint(name))
        if self.once:
            return writer.trigger(availableNow=True).start()
        return writer.trigger(processingTime=f"{self.settings.trigger_seconds} seconds").start()

    def frames(self, landing: Landing) -> StreamingQuery:
        """Landing zone → ``bronze.frames``."""
        source = landing.frames(self.spark, self.settings.max_files_per_trigger)

        def step(rows: DataFrame, batch: Batch) -> Counted:
            counted = write_frames(rows, self.lake, batch, self.settings)
            record_files(rows, self.lake, "frames", batch)
            return counted

        return self.start("frames", source, step)

    def gaps(self, landing: Landing) -> StreamingQuery:
        """Landing zone → ``bronze.gaps``."""
        source = landing.gaps(self.spark, self.settings.max_files_per_trigger)

        def step(rows: DataFrame, batch: Batch) -> Counted:
            counted = write_gaps(rows, self.lake, batch)
            record_files(rows, self.lake, "gaps", batch)
            return counted

        return self.start("gaps", source, step)

    def exchanges(self) -> StreamingQuery:
        """``bronze.frames`` → silver."""
        source = (
            self.spark.readStream.format("delta")
            .option("skipChangeCommits", "true")  # days decoded anew and days expired are no news
            .option("maxFilesPerTrigger", self.settings.max_frames_files_per_trigger)
            .load(self.lake.path(FRAMES))
            .select(*HALF_COLUMNS)
        )
        return self.start(
            "exchanges", source, lambda rows, batch: write_exchanges(rows, self.lake, batch, self.settings)
        )

    def gold(self) -> StreamingQuery:
        """Silver → gold."""
        source = gold_news(self.spark, self.lake)
        return self.start("gold", source, lambda days, _: write_gold(days, self.lake, self.settings))


def run_stream(
    landing: str | Path,
    lake: str | Path,
    *,
    once: bool,
    settings: StreamSettings | None = None,
    spark: SparkSession | None = None,
    progress: Progress = lambda _: None,
) -> StreamSummary:
    """Run the streaming job.

    Args:
        landing: root of the landing zone.
        lake: root of the lake; made if it does not exist.
        once: drain what has landed, and return; otherwise run until interrupted.
        settings: defaults if None.
        spark: the session; made if None.
        progress: called with a line of text for each step.

    Raises:
        UserError: the landing zone, the lake or a query cannot be used; the message says what to do.
    """
    zone, place = Landing.at(landing), Lake.at(lake)
    session = spark or build_session("wirelake stream")
    create_tables(session, place)
    with job_lock(place):
        job = _Job(session, place, settings or StreamSettings(), once, progress, StreamSummary())
        if once:
            _finish([job.gaps(zone)])
            _finish([job.frames(zone)])
            _finish([job.exchanges()])
            _finish([job.gold()])
        else:
            _finish([job.gaps(zone), job.frames(zone), job.exchanges(), job.gold()])
    return job.summary


def run_backfill(
    lake: str | Path,
    date_from: date,
    date_to: date,
    *,
    recode: bool = False,
    settings: StreamSettings | None = None,
    spark: SparkSession | None = None,
    progress: Progress = lambda _: None,
) -> None:
    """Derive silver and gold of some days anew from bronze; the result is what the stream would have written.

    Args:
        lake: root of the lake.
        date_from, date_to: days, inclusive.
        recode: decode the raw frames anew first, with this codec.
        settings, spark, progress: as for :func:`run_stream`.

    Raises:
        UserError: the range or the lake cannot be used; the message says what to do.
    """
    if date_to < date_from:
        raise UserError(f"the range ends ({date_to}) before it begins ({date_from})")
    place, chosen = Lake.at(lake), settings or StreamSettings()
    session = spark or build_session("wirelake backfill")
    create_tables(session, place)
    with job_lock(place):
        job = _Job(session, place, chosen, True, progress, StreamSummary())
        _finish([job.exchanges()])  # bronze must not hold frames that the stream would pair a second time
        backfill_days(session, place, date_from, date_to, recode=recode, settings=chosen, progress=progress)
        _finish([job.gold()])


def _finish(queries: Sequence[StreamingQuery]) -> None:
    """Wait until all queries have ended, or one failed, or we are interrupted; then none runs any more."""
    try:
        while any(query.isActive for query in queries):
            for query in queries:
                query.awaitTermination(1)
        for query in queries:
            query.awaitTermination()  # raises if it ended by an error
    except StreamingQueryException as error:
        failed = next((q.name for q in queries if q.exception() is not None), "?")
        raise StreamError(
            f"the query `{failed}` stopped: {_cause(error)}\nMend the cause and run again: it goes on where it stopped."
        ) from error
    finally:
        for query in queries:
            query.stop()


def _cause(error: StreamingQueryException) -> str:
    """The line of the error that says what happened, without Java's and Python's stack traces."""
    lines = [line.strip() for line in str(error).split("=== Streaming Query ===")[0].splitlines()]
    named = [line for line in lines if _NAMES_ERROR.match(line)]
    return named[-1] if named else next((line for line in lines if line), "no reason given")


_NAMES_ERROR = re.compile(r"(?:Caused by: )?[\w.]*(?:Error|Exception): \S")


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="job.py", description="Wirelake's streaming job and backfill.")
    parser.add_argument("--lake", required=True)
    parser.add_argument("--landing", help="root of the landing zone (stream)")
    parser.add_argument("--conf", type=Path, metavar="FILE", help="settings: conf/local.yaml, conf/cluster.yaml")
    parser.add_argument("--once", action="store_true", help="drain what has landed, and end")
    parser.add_argument("--backfill-from", type=date.fromisoformat, metavar="DAY", help="derive days anew: the first")
    parser.add_argument("--backfill-to", type=date.fromisoformat, metavar="DAY", help="the last, inclusive")
    parser.add_argument(
        "--recode",
        action=argparse.BooleanOptionalAction,
        default=False,
        help="with a backfill: decode the raw frames anew",
    )
    chosen = parser.parse_args(argv)
    if (chosen.backfill_from is None) != (chosen.backfill_to is None):
        parser.error("--backfill-from and --backfill-to go together")
    if (chosen.landing is None) == (chosen.backfill_from is None):
        parser.error("name either --landing (stream) or --backfill-from and --backfill-to")
    return chosen


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point for ``spark-submit``; returns the exit code."""
    chosen = _arguments(argv)

    def say(text: str) -> None:
        sys.stderr.write(f"{text}\n")

    try:
        settings = load_settings(chosen.conf)
        spark = build_session("wirelake", extra_conf=settings.spark)
        if chosen.landing is not None:
            run_stream(
                chosen.landing, chosen.lake, once=chosen.once, settings=settings.stream, spark=spark, progress=say
            )
        else:
            days = chosen.backfill_from, chosen.backfill_to
            run_backfill(chosen.lake, *days, recode=chosen.recode, settings=settings.stream, spark=spark, progress=say)
    except UserError as error:
        say(f"error: {error}")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
