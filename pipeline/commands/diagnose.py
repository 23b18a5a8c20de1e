"""``wirelake diagnose``: a capture in, what is wrong out. No Spark, no lake, in seconds."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from pipeline.capture.reading_options import AllowTruncated, TlsEmbeddedKeys, TlsKeyLog
from pipeline.config.common_options import Conf, writing_settings
from pipeline.errors import UserError
from pipeline.terminal.console import Console, json_line
from pipeline.terminal.lines import terminal_width

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeline.commands.incidents import Commands, Row
    from pipeline.config.settings import Settings
    from pipeline.embedded.diagnosis import Diagnosis
    from pipeline.embedded.inputs import Inputs


MANY_FRAMES = 100_000
"""A capture of more is judged in parts, in memory that does not grow with it; but where all tables are wanted."""

HEAVY_FRAMES, FRAME_BYTES = 500_000, 8_500
"""With all tables, captures of more frames cause a note; a frame takes this many bytes (docs/lab-book/diagnosis.md)."""

PIECE_FRAMES = 25_000
"""Decoded at once: with their bodies some 70 MB."""


def diagnose(
    files: Annotated[
        list[str],
        typer.Argument(
            help="Captures: pcap or pcapng, also .gz/.zst; a directory of them; '-' for stdin. Or a landing zone."
        ),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a finding, as `findings --json`.")] = False,
    lake: Annotated[
        Path | None,
        typer.Option(
            help="Write all tables to this folder, for SQL, notebooks and the page; a lake that is there is replaced."
        ),
    ] = None,
    open_page: Annotated[bool, typer.Option("--open", help="Show the tables as a web page.")] = False,
    follow: Annotated[
        bool,
        typer.Option(
            "--follow",
            help="Keep running and report incidents as they start, get a cause, and end. Reads standard input, a "
            "directory of rotated files, or a landing zone that grows; stops when the input ends or on SIGINT.",
        ),
    ] = False,
    flat: Annotated[bool, typer.Option("--flat", help="List findings one by one instead of incidents.")] = False,
    conf: Conf = None,
    allow_truncated: AllowTruncated = None,
    tls_keylog: TlsKeyLog = None,
    tls_embedded_keys: TlsEmbeddedKeys = False,
) -> None:
    """Show what is wrong in a capture, who causes it and what to do.

    Needs no Java.

    The exit code is 1 if a finding is critical, else 2 if nothing could be read or judged, if a rule failed, or if a
    pipe was cut off or a landing zone has damaged files.

    Examples:

      wirelake diagnose incident.pcap

      ssh broker-1 sudo tcpdump -i any -w - -G 60 -W 1 port 9092 | wirelake diagnose -

      wirelake diagnose incident.pcapng.gz --json | jq 'select(.severity == "critical") | .summary'

      wirelake diagnose incident.pcap --lake incident-lake

      wirelake sql --lake incident-lake "FROM gold.offset_timeline"

      wirelake diagnose incident.pcap --open

      ssh broker-1 sudo tcpdump -i any -U -w - port 9092 | wirelake diagnose --follow -

      wirelake diagnose --follow /var/ring --json >> changes.jsonl    # of findings: see docs/howto/alerts.md
    """
    from pipeline.commands.findings import in_order  # noqa: PLC0415
    from pipeline.commands.unjudged import warn_of_errors, why_nothing_was_judged  # noqa: PLC0415

    settings = writing_settings(conf)
    if follow:
        if lake is not None or open_page:
            raise UserError(
                "--follow keeps no tables: for a lake that grows use `wirelake capture` and `wirelake stream`"
            )
        from pipeline.commands.diagnose_follow import follow_and_report  # noqa: PLC0415

        options = agent_options(allow_truncated, tls_keylog, tls_embedded_keys)
        follow_and_report(files, settings, options, as_json=as_json, flat=flat)
        return
    if lake is not None:
        from pipeline.embedded.lake import refuse_lake  # noqa: PLC0415

        refuse_lake(lake)
    keeper = "--lake and --open hold" if lake is not None or open_page else None
    found, inputs = read_and_judge(files, settings, allow_truncated, tls_keylog, tls_embedded_keys, keeper)
    unjudged = why_nothing_was_judged(found.looked, inputs.stats, has_findings=bool(found.findings.num_rows))
    has_failed = warn_of_errors(found.errors, Console(stderr=True))
    rows = in_order(found.findings.to_pylist())
    # Before anything is printed: whoever reads that may go away.
    trouble = _write(lake, found) if lake is not None else None
    if as_json:
        for row in rows:
            sys.stdout.buffer.write(json_line(row))
        sys.stdout.flush()
        if unjudged is not None:
            _warn(Console(stderr=True), unjudged)
    else:
        _show(found, rows, inputs, files, lake if trouble is None else None, unjudged, flat=flat)
    if open_page and trouble is None:
        from pipeline.commands.diagnose_open import open_page as show_page  # noqa: PLC0415

        trouble = show_page(found, lake, settings)
    is_critical = any(row["severity"] == "critical" for row in rows)
    if is_critical:
        if trouble is not None:
            Console(stderr=True).print(Text(f"error: {trouble}", "bold red"), soft_wrap=True)
        raise typer.Exit(1)
    if trouble is not None:
        raise trouble
    if has_failed or unjudged is not None or not inputs.is_whole:
        raise typer.Exit(2)


def _write(lake: Path, found: Diagnosis) -> UserError | None:
    """Leave the tables; why that could not be, for when all that was found is printed."""
    from pipeline.embedded.lake import write_lake  # noqa: PLC0415 - loads deltalake
    from pipeline.embedded.private_folder import left_on_signals  # noqa: PLC0415

    try:
        with left_on_signals():
            write_lake(lake, found.tables)
    except UserError as error:
        return error
    return None


def _show(
    found: Diagnosis,
    rows: list[dict[str, Any]],
    inputs: Inputs,
    files: list[str],
    lake: Path | None,
    unjudged: str | None,
    *,
    flat: bool,
) -> None:
    """For a person: what was read, what was not judged and why, and what is wrong."""
    from pipeline.commands.findings import (  # noqa: PLC0415
        lake_commands,
        say_what_serves,
        show_findings,
        what_was_looked_at,
        what_was_read,
    )
    from pipeline.commands.incidents import show_incidents  # noqa: PLC0415

    console = Console()
    is_for_pipe = not terminal_width()  # where lines go whole
    console.print(Text(what_was_read(found, inputs.stats, is_whole=inputs.is_whole)), soft_wrap=is_for_pipe)
    if unjudged is not None:
        console.print(Text(unjudged, "bold yellow"), soft_wrap=is_for_pipe)
        if not rows:
            return
    if flat:
        show_findings(rows, console)
    else:
        commands = partial(lake_commands, str(lake)) if lake is not None else _capture_commands(files, found)
        if lake is not None and rows:
            say_what_serves(str(lake), console)
        show_incidents(found.incidents.to_pylist(), rows, commands, console)
    if not rows:
        console.print(Text(what_was_looked_at(found)), soft_wrap=is_for_pipe)


def _capture_commands(files: list[str], found: Diagnosis) -> Commands:
    """Commands that show an incident of captures: of one that is still there the message itself."""
    from pipeline.embedded.frame_numbers import frame_numbers  # noqa: PLC0415

    evidence = {row["finding_id"]: row["evidence"] for row in found.findings.to_pylist()}
    numbers: Mapping[str, int] = {}
    names = " ".join(map(quote, files))
    if found.places is not None and len(files) == 1 and Path(files[0]).is_file():
        numbers = frame_numbers(found.places, {one for some in evidence.values() for one in some[:3]})

    def commands(row: Row) -> list[str]:
        number = next((numbers[one] for one in evidence.get(row["root_id"], ()) if one in numbers), None)
        shown = [f"wirelake explain {names} --frame {number}"] if number is not None else []
        if files != ["-"]:
            shown.append(f"wirelake diagnose {names} --open")
        return shown

    return commands


def agent_options(allow_truncated: bool | None, tls_keylog: str | None, tls_embedded_keys: bool) -> list[str]:
    """These options as ``capture read`` takes them."""
    return [
        *([] if allow_truncated is None else ["--allow-truncated" if allow_truncated else "--strict"]),
        *(["--tls-keylog", tls_keylog] if tls_keylog is not None else []),
        *(["--tls-embedded-keys"] if tls_embedded_keys else []),
    ]


def read_and_judge(
    files: Sequence[str],
    settings: Settings,
    allow_truncated: bool | None,
    tls_keylog: str | None,
    tls_embedded_keys: bool,
    keeper: str | None,
) -> tuple[Diagnosis, Inputs]:
    """Read and judge captures, and say what is missing.

    Args:
        files: captures, or a landing zone.
        settings: of reading and judging.
        allow_truncated, tls_keylog, tls_embedded_keys: how they are read.
        keeper: who keeps all tables in memory, as the begin of a sentence; None: only what is reported is kept.

    Raises:
        UserError: nothing can be read, or there is nothing to report.
    """
    from pipeline.capture.reading_options import show_progress  # noqa: PLC0415
    from pipeline.embedded.diagnosis import diagnose as diagnose_landed  # noqa: PLC0415 - loads DuckDB and Arrow
    from pipeline.embedded.inputs import open_inputs  # noqa: PLC0415
    from pipeline.embedded.streaming_diagnoser import diagnose_pieces  # noqa: PLC0415

    errors = Console(stderr=True)
    with ExitStack() as stack:
        with show_progress(errors, ", ".join(files)) as show:
            inputs = stack.enter_context(
                open_inputs(
                    files,
                    allow_truncated=allow_truncated,
                    tls_keylog=tls_keylog,
                    tls_embedded_keys=tls_embedded_keys,
                    work=settings.work.limits(),
                    on_progress=show,
                )
            )
        warn_of(inputs, errors)
        if keeper is not None:
            _warn_of_size(inputs, errors, keeper)
            found = diagnose_landed(inputs.landed(), settings.stream)
        elif inputs.rows > MANY_FRAMES:
            found = diagnose_pieces(inputs.pieces(PIECE_FRAMES), settings.stream)
        else:
            found = diagnose_landed(inputs.landed(), settings.stream, "report")
    _demand_messages(found, inputs)
    return found, inputs


def warn_of(inputs: Inputs, errors: Console) -> None:
    """Say what is missing; refuse to judge nothing."""
    from pipeline.capture.runs.summary import nothing_found  # noqa: PLC0415

    for text in warnings_of(inputs):
        _warn(errors, text)
    if not inputs.rows and inputs.set_aside:
        raise UserError("no landing file matches its manifest; copy the landing zone again")
    if not inputs.rows and not inputs.has_connections:
        raise UserError(nothing_found(inputs.stats))


def warnings_of(inputs: Inputs) -> tuple[str, ...]:
    """What is missing of what was read, a sentence each."""
    from pipeline.capture.runs.summary import warnings  # noqa: PLC0415

    cut = [inputs.cut] if inputs.cut else []
    return (*cut, *(warnings(inputs.stats) if inputs.stats is not None else ()), *inputs.set_aside)


def _warn_of_size(inputs: Inputs, errors: Console, who_holds: str) -> None:
    """Say how much memory all tables take, where that is worth a word; ``who_holds`` them begins the sentence."""
    if inputs.rows > HEAVY_FRAMES:
        _warn(
            errors,
            f"{who_holds} all {inputs.rows:,} frames in memory, some {inputs.rows * FRAME_BYTES / 1e9:,.0f} GB; "
            "`wirelake capture read` and `wirelake stream` do not",
        )


def _demand_messages(found: Diagnosis, inputs: Inputs) -> None:
    """Say why there is nothing to report.

    Raises:
        UserError: no message was found, and no connection is worth a finding.
    """
    from pipeline.capture.runs.summary import nothing_found  # noqa: PLC0415

    if not inputs.rows and not found.findings.num_rows:
        raise UserError(nothing_found(inputs.stats))


def _warn(errors: Console, text: str) -> None:
    errors.print(Text(f"warning: {text}", "yellow"), soft_wrap=True)
