"""The streaming job: what runs, in which order, until when. Also the script for ``spark-submit``.

spark-submit pipeline/streaming/job.py --landing DIR --lake DIR [--once] [--conf FILE]
spark-submit pipeline/streaming/job.py --lake DIR --backfill-from 2026-01-01 --backfill-to 2026-01-02 [--recode]
spark-submit pipeline/streaming/job.py --lake DIR --maintain
"""

from __future__ import annotations

import argparse
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from functools import partial
from pathlib import Path
from types import FrameType

if __name__ == "__main__" and __package__ is None:
    # spark-submit puts this file's folder on the path, not the packages it belongs to.
    sys.path[0] = str(Path(__file__).resolve().parent.parent.parent)

from delta.tables import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from pipeline.analysis.safety.guard import InternalError
from pipeline.config.settings import MaintenanceSettings, StreamSettings, load_settings
from pipeline.errors import UserError, no_lake
from pipeline.humanize import pluralize
from pipeline.lake.permissions import restrict_files
from pipeline.metrics.endpoint import OPTION_HELP, Exposed, serving
from pipeline.metrics.sample import Sample
from pipeline.metrics.stream import StreamMetrics
from pipeline.streaming.bronze.intake import InHand
from pipeline.streaming.landing.reading import Landing
from pipeline.streaming.ledger import Ledger
from pipeline.streaming.operations.backfill import backfill_days
from pipeline.streaming.operations.maintenance import maintain_tables
from pipeline.streaming.operations.requests import (
    Backfill,
    Maintenance,
    RefusedError,
    check_days,
    check_names,
    is_asked,
    open_for_requests,
    perform,
    serve,
)
from pipeline.streaming.preflight import check_made, check_places
from pipeline.streaming.queries import Progress, Queries, StreamSummary, errors_as
from pipeline.streaming.spark.object_stores import connect
from pipeline.streaming.spark.session import build_session
from pipeline.streaming.storage.checkpoints import has_read_all, renew_checkpoints
from pipeline.streaming.storage.internal_errors import noting_steps
from pipeline.streaming.storage.lake import Lake, create_tables
from pipeline.streaming.storage.lake_io import LakeIO
from pipeline.streaming.storage.lock import Check, job_lock
from pipeline.tables import FRAMES, Table
from pipeline.terminal.console import printable_lines


@dataclass(frozen=True, slots=True)
class _Job:
    """What all that is done to a lake has in common; the lock is held."""

    spark: SparkSession
    lake: Lake
    settings: StreamSettings
    in_hand: InHand = field(default_factory=InHand)
    metrics: StreamMetrics = field(default_factory=StreamMetrics)
    must_hold: Check = lambda: None

    def queries(self, summary: StreamSummary, progress: Progress, *, once: bool) -> Queries:
        return Queries(
            self.spark, self.lake, self.settings, once, progress, summary, self.in_hand, self.metrics, self.must_hold
        )

    def drain(
        self, landing: Landing, summary: StreamSummary, progress: Progress, is_enough: Callable[[], bool]
    ) -> None:
        """Take in what has landed, one query after the other."""
        queries = self.queries(summary, progress, once=True)
        ledger = Ledger(self.spark, queries.intake(landing))
        landed, derived = queries.of_landing(landing), queries.of_bronze()
        steps: list[Callable[[], None]] = [partial(queries.run, *landed, is_enough=is_enough), ledger.look]
        steps += [partial(self._run_if_news, queries, *one, is_enough) for one in derived]
        for step in steps:
            if not is_enough():
                step()

    def _run_if_news(
        self, queries: Queries, start: Callable[[], StreamingQuery], source: Table, is_enough: Callable[[], bool]
    ) -> None:
        if not has_read_all(self.lake, start.__name__, source):
            queries.run(start, is_enough=is_enough)

    def follow(
        self, landing: Landing, summary: StreamSummary, progress: Progress, is_enough: Callable[[], bool]
    ) -> None:
        """Run all queries, and between their batches do what other processes ask for."""
        ledger = Ledger(self.spark, self.queries(summary, progress, once=False).intake(landing))

        def must_end() -> bool:
            ledger.look_if_due()
            return is_enough() or is_asked(self.lake)

        while not is_enough():
            queries = self.queries(summary, progress, once=False)
            queries.run(*queries.of_landing(landing), *(start for start, _ in queries.of_bronze()), is_enough=must_end)
            if not is_enough():
                serve(self.lake, self.do)

    def do(self, request: Backfill | Maintenance, progress: Progress) -> None:
        """Do what is asked for, once the queries have read everything before.

        Raises:
            RefusedError: it cannot be done; or steps failed and were left out, while everything else was done.
        """
        summary = StreamSummary()
        queries = self.queries(summary, progress, once=True)

        def catch_up() -> None:
            for start in (queries.exchanges, queries.gold):
                queries.run(start)

        if isinstance(request, Maintenance):
            if not request.dry_run:
                catch_up()
            with errors_as(RefusedError, "maintenance"):
                maintain_tables(self.spark, self.lake, request, self.settings, catch_up, progress)
            _refuse_failures("maintenance", summary.errors.errors)
            return
        catch_up()
        rows = LakeIO(self.spark, self.lake)
        with errors_as(RefusedError, "the backfill"), noting_steps(rows, "backfill", None) as noted:
            backfill_days(
                self.spark, self.lake, request.first, request.last,
                recode=request.recode, settings=self.settings, progress=progress,
            )  # fmt: skip
        queries.run(queries.gold)
        for error in noted.errors:
            progress(f"backfill: warning: {error}")
        _refuse_failures("the backfill", [*noted.errors, *summary.errors.errors])


def _refuse_failures(what: str, failed: Sequence[InternalError]) -> None:
    """End with an error that reaches whoever asked, who may be another process.

    Raises:
        RefusedError: steps failed.
    """
    if failed:
        raise RefusedError(
            f"{what} left out {pluralize(len(set(failed)), 'step')} that failed; everything else is done. "
            "Look into ops.internal_errors"
        )


def run_stream(
    landing: str | Path,
    lake: str | Path,
    *,
    once: bool,
    settings: StreamSettings | None = None,
    spark: SparkSession | None = None,
    progress: Progress = lambda _: None,
    metrics: str | None = None,
    beat: Callable[[Iterable[Sample]], None] = lambda _: None,
) -> StreamSummary:
    """Run the streaming job. SIGTERM ends it after the batches under way.

    Args:
        landing: root of the landing zone.
        lake: root of the lake; made if it does not exist.
        once: drain what has landed, and return; otherwise run until interrupted.
        settings: defaults if None.
        spark: the session; made if None.
        progress: called with a line of text for each step.
        metrics: address on which to serve metrics (pipeline.metrics.endpoint); None: serve none.
        beat: called each second with the same metrics.

    Raises:
        UserError: the landing zone, the lake, the address or a query cannot be used; the message explains what to do.
    """
    check_places(landing, lake)
    zone, place = Landing.at(landing), Lake.at(lake)
    summary, settings = StreamSummary(), settings or StreamSettings()
    exposed = Exposed(must_hold=lambda: _why_gone(place) or metered.why_behind(limit_s, time.time()))
    metered, limit_s = StreamMetrics(exposed), settings.behind_after_seconds
    with _until_terminated() as is_terminated, serving(metrics, exposed, progress):

        def is_enough() -> bool:
            exposed.beat()
            beat(exposed.samples)
            return is_terminated()

        session = spark or build_session("wirelake stream")
        connect(session, str(landing), str(lake))
        with job_lock(place, session, progress) as must_hold:
            job = _Job(session, place, settings, metrics=metered, must_hold=must_hold)
            create_tables(session, place, progress=progress)
            open_for_requests(place, is_served=not once)
            renew_checkpoints(session, place, progress)
            (job.drain if once else job.follow)(zone, summary, progress, is_enough)
    return summary


def _why_gone(lake: Lake) -> str | None:
    """Why nothing can be written into a lake on a local disk; None: it can, as far as is seen without trying."""
    if lake.is_local and not Path(lake.path(FRAMES), "_delta_log").is_dir():
        return f"the lake {lake.root} is gone"
    return None


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
    """Rebuild silver and gold of a range of days from bronze; the result is what the stream would have written.

    On a lake on which a stream runs the stream does it, between two batches.

    Args:
        lake: root of the lake.
        date_from, date_to: days, inclusive.
        recode: decode the raw frames again first, with this codec.
        settings, spark, progress: as for :func:`run_stream`.

    Raises:
        UserError: the range or the lake cannot be used; the message explains what to do.
    """
    check_days(date_from, date_to)
    request = Backfill(first=date_from, last=date_to, recode=recode)
    _perform(lake, request, "wirelake backfill", settings, spark, progress)


def run_maintenance(
    lake: str | Path,
    maintenance: MaintenanceSettings | None = None,
    *,
    erase: Sequence[tuple[str, str]] = (),
    dry_run: bool = False,
    settings: StreamSettings | None = None,
    spark: SparkSession | None = None,
    progress: Progress = lambda _: None,
) -> None:
    """Compact tables, drop what is older than they keep, remove unused files; erase what is named.

    On a lake on which a stream runs the stream does it, between two batches.

    Args:
        lake: root of the lake.
        maintenance: what to keep; defaults if None.
        erase: names and values, see :mod:`pipeline.streaming.operations.erasure`.
        dry_run: only report what would be done.
        settings, spark, progress: as for :func:`run_stream`.

    Raises:
        UserError: the lake cannot be used; the message explains what to do.
    """
    check_names(erase)
    request = Maintenance(settings=maintenance or MaintenanceSettings(), erase=tuple(erase), dry_run=dry_run)
    _perform(lake, request, "wirelake maintain", settings, spark, progress)


def _perform(
    lake: str | Path,
    request: Backfill | Maintenance,
    name: str,
    settings: StreamSettings | None,
    spark: SparkSession | None,
    progress: Progress,
) -> None:
    place = Lake.at(lake)
    check_made(lake, FRAMES)
    session = spark or build_session(name)
    connect(session, str(lake))
    if not DeltaTable.isDeltaTable(session, place.path(FRAMES)):
        raise no_lake(place.root)

    def do(asked: Backfill | Maintenance, report: Progress, must_hold: Check = lambda: None) -> None:
        job = _Job(session, place, settings or StreamSettings(), must_hold=must_hold)
        if not (isinstance(asked, Maintenance) and asked.dry_run):
            create_tables(session, place, progress=report)
            renew_checkpoints(session, place, report)
        job.do(asked, report)

    if place.is_local:
        perform(place, request, do, progress)
        return
    with job_lock(place, session, progress) as still_held:  # there is no one to ask there: the stream must have ended
        do(request, progress, still_held)


@contextmanager
def _until_terminated() -> Iterator[Callable[[], bool]]:
    """Around the job: whether SIGTERM has come. Only the main thread may ask for signals; elsewhere it never has."""
    came = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield came.is_set
        return

    def note(number: int, frame: FrameType | None) -> None:
        came.set()

    before = signal.signal(signal.SIGTERM, note)
    try:
        yield came.is_set
    finally:
        signal.signal(signal.SIGTERM, before)


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="job.py", description="Wirelake's streaming job, backfill and maintenance.")
    parser.add_argument("--lake", required=True)
    parser.add_argument("--conf", type=Path, metavar="FILE", help="settings: conf/local.yaml, conf/cluster.yaml")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--landing", help="root of the landing zone (stream)")
    what.add_argument("--backfill-from", type=date.fromisoformat, metavar="DAY", help="rebuild days: the first")
    what.add_argument("--maintain", action="store_true", help="compact tables, drop what is too old")
    parser.add_argument("--once", action="store_true", help="drain what has landed, and end")
    parser.add_argument(
        "--allow-set-aside",
        action="store_true",
        help="end with 0, not with 3, though landing files were set aside",
    )
    parser.add_argument("--metrics", metavar="[HOST:]PORT", help=OPTION_HELP)
    parser.add_argument("--backfill-to", type=date.fromisoformat, metavar="DAY", help="the last, inclusive")
    parser.add_argument(
        "--recode",
        action=argparse.BooleanOptionalAction,
        default=False,
        help="with a backfill: decode the raw frames again",
    )
    chosen = parser.parse_args(argv)
    if (chosen.backfill_from is None) != (chosen.backfill_to is None):
        parser.error("--backfill-from and --backfill-to go together")
    return chosen


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point for ``spark-submit``; returns the exit code."""
    chosen = _arguments(argv)

    def report(text: str) -> None:
        sys.stderr.write(f"{printable_lines(text)}\n")

    try:
        settings = load_settings(chosen.conf)
        restrict_files(settings.file_access)
        spark = build_session("wirelake", extra_conf=settings.spark)
        stream = settings.stream
        if chosen.landing is not None:
            done = run_stream(
                chosen.landing, chosen.lake, once=chosen.once, settings=stream, spark=spark, progress=report,
                metrics=chosen.metrics,
            )  # fmt: skip
            if done.left_out:
                report(f"error: {done.left_out}")
            return done.exit_code(may_leave_out=chosen.allow_set_aside or not chosen.once)
        if chosen.maintain:
            run_maintenance(chosen.lake, settings.maintain, settings=stream, spark=spark, progress=report)
        else:
            days = chosen.backfill_from, chosen.backfill_to
            run_backfill(chosen.lake, *days, recode=chosen.recode, settings=stream, spark=spark, progress=report)
    except UserError as error:
        report(f"error: {error}")
        return 2
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
