"""``wirelake demo``: the whole way in one go, from the sample captures to what is wrong."""

from __future__ import annotations

import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Annotated, Any

import typer
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from pipeline.capture.runs.reading import read_capture
from pipeline.commands.findings import lake_commands, read_incidents, say_what_serves
from pipeline.commands.incidents import show_incidents
from pipeline.commands.lake import Progress, spark_session, steps
from pipeline.config.settings import Settings, load_settings
from pipeline.errors import UserError
from pipeline.setup.java import SHORT_LIVED_JVM
from pipeline.setup.program import RUN
from pipeline.setup.system import in_checkout
from pipeline.terminal.console import Console, printable_lines

SAMPLES = (
    "healthy", "stuck_commit", "stalled_lso", "old_format", "version_negotiation", "mongodb/troubled_mongodb",
)  # fmt: skip
_DIAGNOSED = "stuck_commit"
_PACKED = Path(__file__).parents[1] / "samples"
_CAPTURES = _PACKED if _PACKED.is_dir() else Path(__file__).parents[2] / "tests" / "captures"
"""The sample captures: in the wheel, or in a checkout."""
_SHOWN_ROWS = 24
_SLOW_MS = 1000

_TIMELINE = """
SELECT strftime(ts, '%H:%M:%S.%g') AS "time", client_id AS "committer", event_offset AS "commits",
       event_offset - lag(event_offset) OVER (ORDER BY ts, ordinal) AS "moved by",
       high_watermark AS "high watermark", lag
FROM gold.offset_timeline
WHERE cluster = '{cluster}' AND topic = '{topic}' AND partition = {partition} AND group_id = '{group_id}'
  AND kind = 'committed' AND ts >= TIMESTAMP '{first_ts}' AND ts <= TIMESTAMP '{last_ts}'
ORDER BY ts, ordinal
"""

_COMMANDS = """
SELECT application, command, namespace, sum(commands)::BIGINT AS commands, sum(errors)::BIGINT AS errors,
       sum(documents_in)::BIGINT AS "documents in", sum(documents_out)::BIGINT AS "documents out",
       round(max(max_us) / 1000, 1) AS "longest, ms"
FROM gold.mongo_commands
WHERE application IS NOT NULL AND namespace NOT LIKE 'admin%'
GROUP BY ALL ORDER BY application, command
"""

_FIRST_THINGS = "SELECT headline, immediate_action FROM gold.incidents ORDER BY urgency"


def demo(
    lake: Annotated[Path, typer.Option(help="Where the tables go.")] = Path("demo-lake"),
    landing: Annotated[Path, typer.Option(help="Where the landing files go.")] = Path("demo-landing"),
    captures: Annotated[
        Path, typer.Option(help="Folder with the sample captures.", show_default="the samples of this installation")
    ] = _CAPTURES,
) -> None:
    """Build a lake from sample captures, and show what is wrong.

    Running it again changes nothing.

    The exit code is 1 if a critical check fails, 2 if the samples are not there or this machine lacks what Spark needs.

    Example:

      wirelake demo --lake demo-lake
    """
    console = Console()
    settings = load_settings(None)
    settings.spark.setdefault("spark.driver.extraJavaOptions", SHORT_LIVED_JVM)
    _demand(captures)
    console.print(Rule("1. diagnose: one capture, without Java", align="left"))
    _diagnose(captures / f"{_DIAGNOSED}.pcap", console)
    console.print(Rule("2. capture: packets to frames", align="left"))
    _read_samples(captures, landing, console)
    console.print(Rule("3. stream: frames to tables, and quality checks", align="left"))
    with spark_session("wirelake demo", settings) as spark, steps() as report:
        failed = _stream_and_check(spark, str(landing), str(lake), settings, report, console)
    incidents, rows = read_incidents(lake)
    console.print(Rule("4. findings: what is wrong, and what to do first", align="left"))
    say_what_serves(str(lake), console)
    show_incidents(incidents, rows, partial(lake_commands, str(lake)), console)
    stuck = next((row for row in rows if row["rule"] == "stuck_commit"), None)
    if stuck is not None:
        console.print(Rule(f"5. the offset timeline of {stuck['subject']}", align="left"))
        _show_timeline(lake, stuck, console)
    console.print(Rule("6. MongoDB: which application runs which commands", align="left"))
    _show_commands(lake, console)
    _show_next_steps(lake, captures, console)
    if failed:
        raise typer.Exit(1)


def _demand(captures: Path) -> None:
    missing = [name for name in SAMPLES if not (captures / f"{name}.pcap").exists()]
    if missing:
        raise UserError(
            f"{captures} lacks the sample {missing[0]}.pcap. Name the folder that holds the samples by --captures."
        )


def _diagnose(capture: Path, console: Console) -> None:
    """What a user types first, in a process of its own, with the time that it takes."""
    begun = time.monotonic()
    done = subprocess.run([sys.executable, "-c", RUN, "diagnose", str(capture)], capture_output=True, check=False)
    taken = time.monotonic() - begun
    if done.returncode not in (0, 1):  # 1: there is something critical
        raise UserError(f"diagnose failed: {printable_lines(done.stderr.decode()).strip()}")
    console.print(Text(f"$ wirelake diagnose {capture.name}", "bold"))
    console.print(Text(printable_lines(done.stdout.decode())), soft_wrap=True)
    console.print(Text(f"in {taken:.1f} s", "dim"))


def _read_samples(captures: Path, landing: Path, console: Console) -> None:
    table = Table(box=None, pad_edge=False)
    for title in ("sample", "packets", "connections", "requests", "responses", "gaps"):
        table.add_column(title, justify="left" if title == "sample" else "right")
    with Console(stderr=True).status("reading captures"):
        for name in SAMPLES:
            stats = read_capture([captures / f"{name}.pcap"], landing)
            counts = stats.connections.total(), stats.requests.total(), stats.responses.total(), stats.gaps
            table.add_row(name, str(stats.packets), *map(str, counts))
    console.print(table)


def _stream_and_check(
    spark: Any, landing: str, lake: str, settings: Settings, report: Progress, console: Console
) -> bool:
    """Run the job and the checks in one session. Returns whether a critical check failed."""
    from pipeline.streaming.job import run_stream  # noqa: PLC0415 - loads Spark

    run_stream(landing, lake, once=True, settings=settings.stream, spark=spark, progress=report)
    report("loading Great Expectations")
    from pipeline.quality.model import critical_failures  # noqa: PLC0415 - slow import
    from pipeline.quality.runner import run_checks, show_results  # noqa: PLC0415

    report("checking the tables")
    results = run_checks(spark, lake)
    show_results(results, console)
    return bool(critical_failures(results))


def _show_timeline(lake: Path, stuck: dict[str, Any], console: Console) -> None:
    """The last commits of the stuck partition: two committers, one of them at an old offset."""
    from pipeline.dashboard.sql import query  # noqa: PLC0415 - an extra

    literals = {key: str(stuck[key]).replace("'", "''") for key in ("cluster", "topic", "partition", "group_id")}
    window = {key: stuck[key].strftime("%Y-%m-%d %H:%M:%S.%f") for key in ("first_ts", "last_ts")}
    rows: list[dict[str, Any]] = query(lake, _TIMELINE.format(**literals, **window)).to_pylist()
    table = Table(box=None, pad_edge=False)
    for title in rows[0] if rows else ():
        table.add_column(title, justify="left" if title in ("time", "committer") else "right")
    for row in rows[-_SHOWN_ROWS:]:
        moved = row["moved by"] or 0
        cells = ["" if value is None else str(value) for value in row.values()]
        table.add_row(*cells, style="bold red" if moved < 0 else "")
    console.print(table)
    if len(rows) > _SHOWN_ROWS:
        console.print(Text(f"the last {_SHOWN_ROWS} of {len(rows)} commits; in red, the offset falls back", "dim"))


def _show_commands(lake: Path, console: Console) -> None:
    """Commands by application: in red those that failed, or took longer than a second."""
    from pipeline.dashboard.sql import query  # noqa: PLC0415 - an extra

    rows: list[dict[str, Any]] = query(lake, _COMMANDS).to_pylist()
    table = Table(box=None, pad_edge=False)
    for title in rows[0] if rows else ():
        table.add_column(title, justify="left" if title in ("application", "command", "namespace") else "right")
    for row in rows:
        is_bad = row["errors"] or (row["longest, ms"] or 0) > _SLOW_MS
        cells = ["" if value is None else str(value) for value in row.values()]
        table.add_row(*cells, style="bold red" if is_bad else "")
    console.print(table)


def _show_next_steps(lake: Path, captures: Path, console: Console) -> None:
    here = Path.cwd()
    sample = captures / f"{_DIAGNOSED}.pcap"
    named = sample.relative_to(here) if sample.is_relative_to(here) else sample
    console.print(Rule(align="left"))
    console.print(f"The lake is in {lake}. Try next:", soft_wrap=True)
    hints = [
        f"wirelake dashboard --lake {lake}",
        f'wirelake sql "FROM consumer_lag" --lake {lake}',
        f'wirelake sql "FROM open_transactions" --lake {lake}',
        f'wirelake sql "FROM silver.mongo_commands WHERE latency_us > 1000000" --lake {lake}',
        f"wirelake findings --lake {lake} --flat",
        f'wirelake sql "{_FIRST_THINGS}" --lake {lake}',
        f"wirelake decode {quote(str(named))} --api OffsetCommit",
        f"wirelake explain {quote(str(named))} --frame 1",
        *([f"WIRELAKE_LAKE={lake} jupyter lab notebooks/tour.ipynb"] if in_checkout() else []),
    ]
    for hint in hints:
        console.print(Text(f"  {hint}"), soft_wrap=True)
