"""``wirelake stream``, ``backfill``, ``maintain`` and ``check``: what needs Spark, which only the commands load."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from pipeline.commands.unjudged import warn_of_errors
from pipeline.config.common_options import Conf, required, writing_settings
from pipeline.config.settings import Settings
from pipeline.errors import UserError
from pipeline.humanize import pluralize
from pipeline.metrics.endpoint import MetricsOption
from pipeline.metrics.log import Log, LogFormat, LogFormatOption
from pipeline.setup.java import MIN_JAVA, find_java
from pipeline.setup.system import JAVA, how_to_install, install_command
from pipeline.tables import FRAMES, Table
from pipeline.terminal.console import Console

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Progress = Callable[[str], None]
"""Shows the user what is being done."""


def stream(
    landing: Annotated[str | None, typer.Option(help="The landing zone: what `wirelake capture` wrote.")] = None,
    lake: Annotated[str | None, typer.Option(help="The lake's folder; made if it is not there.")] = None,
    once: Annotated[bool, typer.Option("--once", help="Drain what has landed, then end.")] = False,
    allow_set_aside: Annotated[
        bool, typer.Option("--allow-set-aside", help="With --once: end with 0 though landing files were set aside.")
    ] = False,
    metrics: MetricsOption = None,
    log_format: LogFormatOption = LogFormat.TEXT,
    conf: Conf = None,
) -> None:
    """Decode what lands into the lake's tables.

    It keeps findings up to date. Running it again changes nothing.

    The exit code is 2 if the landing zone or the lake cannot be used, this machine lacks what Spark needs, or a rule or
    table failed: `ops.internal_errors` names it, everything else is up to date. With --once it is 3 if landing files
    were damaged, unreadable or gone and were set aside: `ops.landing_files` names them, all others are in the lake.

    Examples:

      wirelake stream --landing landing --lake lake --once

      wirelake stream --conf conf/local.yaml

      wirelake stream --landing landing --lake lake --metrics 9465    # Prometheus: :9465/metrics
    """
    settings = writing_settings(conf, landing=landing, lake=lake)
    zone, place = required(settings, "landing"), required(settings, "lake")
    with needs_spark():
        from pipeline.streaming.preflight import check_places  # noqa: PLC0415 - loads a part of Spark

        check_places(zone, place)  # a typo is reported before a JVM starts, which takes ten seconds
    with spark_session("wirelake stream", settings) as spark, _logged(log_format) as (report, log):
        from pipeline.streaming.job import run_stream  # noqa: PLC0415 - loads Spark

        summary = run_stream(
            zone, place, once=once, settings=settings.stream, spark=spark, progress=report, metrics=metrics,
            beat=log.beat,
        )  # fmt: skip
    frames = summary.rows_out.get("frames", 0)
    done = Text(f"{pluralize(frames, 'new frame')} in {place}. Next: wirelake findings --lake {quote(place)}")
    Console().print(done, soft_wrap=True)
    errors = Console(stderr=True)
    if summary.left_out:
        errors.print(Text(f"{summary.left_out}.", "yellow"), soft_wrap=True)
    warn_of_errors(summary.errors.errors, errors)
    if code := summary.exit_code(may_leave_out=allow_set_aside or not once):
        raise typer.Exit(code)


def backfill(
    date_from: Annotated[datetime, typer.Option("--from", formats=["%Y-%m-%d"], help="First day, UTC.")],
    date_to: Annotated[datetime, typer.Option("--to", formats=["%Y-%m-%d"], help="Last day, inclusive.")],
    lake: Annotated[str | None, typer.Option(help="The lake's folder.")] = None,
    recode: Annotated[bool, typer.Option("--recode", help="Decode the raw frames again first.")] = False,
    conf: Conf = None,
) -> None:
    """Rebuild the tables of a range of days from raw frames.

    The result is what the stream would have written.

    Where a stream runs on the lake, it does this between two of its batches. The exit code is 2 if there is no lake,
    the range holds no day, this machine lacks what Spark needs, or a step failed: `ops.internal_errors` names it,
    everything else is done.

    Example:

      wirelake backfill --from 2026-11-01 --to 2026-11-03 --lake lake --recode
    """
    settings = writing_settings(conf, lake=lake)
    place = required(settings, "lake")
    days = date_from.date(), date_to.date()
    with needs_spark():
        from pipeline.streaming.operations.requests import check_days  # noqa: PLC0415 - loads a part of Spark

        check_days(*days)
    demand_lake(place, FRAMES)
    with spark_session("wirelake backfill", settings) as spark, steps() as report:
        from pipeline.streaming.job import run_backfill  # noqa: PLC0415 - loads Spark

        run_backfill(place, *days, recode=recode, settings=settings.stream, spark=spark, progress=report)
    Console().print(f"{place} is rebuilt from {days[0]} to {days[1]}.", soft_wrap=True)


def maintain(
    lake: Annotated[str | None, typer.Option(help="The lake's folder.")] = None,
    erase: Annotated[
        list[str] | None,
        typer.Option(help="Delete everything that names this, e.g. client_ip=10.0.0.7; may be given several times."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be done.")] = False,
    conf: Conf = None,
) -> None:
    """Compact small files, expire old rows, vacuum unused files.

    How long a table keeps its rows is in pipeline/tables, and in the settings under `maintain:`. Ages count
    from the newest frame. Where a stream runs on the lake, it does this between two of its batches.

    --erase deletes whole exchanges in whose frames the value is, from all tables and their old files. Names:
    client_ip, connection_id, client_id, topic, group_id, member_id, transactional_id, database.

    The exit code is 2 if there is no lake, a value to erase makes no sense, this machine lacks what Spark needs, or a
    step of the tables' refresh failed: `ops.internal_errors` names it.

    Examples:

      wirelake maintain --lake lake --dry-run

      wirelake maintain --lake lake --erase client_id=billing-7 --erase topic=payments
    """
    settings = writing_settings(conf, lake=lake)
    place = required(settings, "lake")
    wanted = [_name_and_value(text) for text in erase or ()]
    with needs_spark():
        from pipeline.streaming.operations.requests import check_names  # noqa: PLC0415 - loads a part of Spark

        check_names(wanted)
    demand_lake(place, FRAMES)
    with spark_session("wirelake maintain", settings) as spark, steps() as report:
        from pipeline.streaming.job import run_maintenance  # noqa: PLC0415 - loads Spark

        run_maintenance(
            place,
            settings.maintain,
            erase=wanted,
            dry_run=dry_run,
            settings=settings.stream,
            spark=spark,
            progress=report,
        )
    Console().print(f"{place}: {'nothing was changed' if dry_run else 'done'}.", soft_wrap=True)


def _name_and_value(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise UserError(f"--erase {text}: write NAME=VALUE, e.g. --erase client_ip=10.0.0.7")
    return name, value


def check(
    lake: Annotated[str | None, typer.Option(help="The lake's folder.")] = None,
    since: Annotated[
        datetime | None,
        typer.Option(formats=["%Y-%m-%d"], help="First day, UTC, whose tables are compared with each other."),
    ] = None,
    docs: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Also write Great Expectations' Data Docs, which open offline.")
    ] = None,
    conf: Conf = None,
) -> None:
    """Check the quality of a lake's tables.

    The results go to ops.quality_results.

    Each table is checked by itself, and what tables state of each other is compared: of all days, or with --since of
    those from then on, which on a large lake takes less time and memory.

    A small lake on this machine (500,000 rows a table) is checked in this process, any other one on Spark.

    The exit code is 1 if a critical check fails, 2 if there is no lake or this machine lacks what Spark needs.

    Examples:

      wirelake check --lake lake

      wirelake check --lake lake --since 2026-11-01

      wirelake check --lake lake --docs quality    # open quality/index.html
    """
    settings = writing_settings(conf, lake=lake)
    place = required(settings, "lake")
    demand_lake(place)
    with steps() as report, ExitStack() as held:
        report("loading Great Expectations")
        from pipeline.quality.docs import check_folder  # noqa: PLC0415 - slow import
        from pipeline.quality.engines import takes_in_process  # noqa: PLC0415
        from pipeline.quality.model import critical_failures  # noqa: PLC0415
        from pipeline.quality.runner import run_checks, show_results  # noqa: PLC0415
        from pipeline.streaming.storage.lake import Lake  # noqa: PLC0415

        if docs is not None:
            check_folder(docs)
        is_small = takes_in_process(Lake.at(place))
        spark = None if is_small else held.enter_context(spark_session("wirelake check", settings))
        report("checking")
        results = run_checks(spark, place, settings.maintain, since=since.date() if since else None, docs=docs)
    show_results(results, Console())
    if critical_failures(results):
        raise typer.Exit(1)


def demand_lake(place: str, needed: Table | None = None) -> None:
    """Before a JVM starts: see pipeline.streaming.preflight.check_made."""
    with needs_spark():
        from pipeline.streaming.preflight import check_made  # noqa: PLC0415 - loads a part of Spark
    check_made(place, needed)


@contextmanager
def steps() -> Iterator[Progress]:
    """A spinner on standard error with the current step; finished steps stay as lines."""
    console = Console(stderr=True)
    with console.status("starting") as status:

        def report(text: str) -> None:
            if console.is_terminal:
                status.update(text)
            console.print(Text(f"  {text}", "dim"), soft_wrap=True)

        yield report


@contextmanager
def _logged(log_format: LogFormat) -> Iterator[tuple[Progress, Log]]:
    """As :func:`steps`, or JSON lines; and the log for heartbeats."""
    log = Log(Console(stderr=True), log_format)
    if log_format is LogFormat.JSON:
        yield log.write, log
        return
    with steps() as report:
        yield report, log


@contextmanager
def needs_spark() -> Iterator[None]:
    """Around imports of what loads Spark.

    Raises:
        UserError: it is not installed.
    """
    try:
        yield
    except ImportError as error:
        raise UserError(f"this command needs Spark: {how_to_install('spark,quality')} ({error})") from error


@contextmanager
def spark_session(name: str, settings: Settings) -> Iterator[SparkSession]:
    """A Spark session that ends with the command.

    Raises:
        UserError: this machine lacks what Spark needs.
    """
    java = find_java()
    if java is None or not java.suitable:
        raise UserError(
            f"Spark needs Java {MIN_JAVA} or newer: {install_command(JAVA)}. `wirelake doctor` checks the rest"
        )
    if not java.in_use:
        os.environ["JAVA_HOME"] = str(java.home)
    with needs_spark():
        from pipeline.streaming.spark.session import build_session  # noqa: PLC0415 - loads Spark
    with Console(stderr=True).status("starting Spark"):
        spark = build_session(name, extra_conf=settings.spark)
    try:
        yield spark
    finally:
        spark.stop()
