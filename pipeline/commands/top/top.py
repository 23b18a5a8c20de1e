"""``wirelake top``: who is behind, what is slow, what is wrong, while traffic continues."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline.capture.reading_options import AllowTruncated, TlsEmbeddedKeys, TlsKeyLog
from pipeline.commands.top.sort import Order, Sort
from pipeline.config.common_options import Conf
from pipeline.errors import UserError
from pipeline.terminal.console import Console
from pipeline.terminal.lines import terminal_width

if TYPE_CHECKING:
    from pipeline.config.settings import Settings
    from pipeline.embedded.live_monitor import LiveMonitor

_WIDTH = 120
"""Where the output goes to a file or a pipe."""


def top(
    files: Annotated[
        list[str],
        typer.Argument(
            help="One of: '-' for standard input, a directory into which files are rotated, a landing zone, a capture. "
            "With --once also several captures."
        ),
    ],
    every: Annotated[float, typer.Option(min=0.5, max=3600, help="Seconds from one screen to the next.")] = 2.0,
    window: Annotated[
        float, typer.Option(min=1, max=3600, help="Seconds that rates, latencies and trends look back.")
    ] = 60.0,
    once: Annotated[
        bool, typer.Option("--once", help="Read everything, print one screen and exit, for scripts.")
    ] = False,
    sort: Annotated[
        list[Sort] | None,
        typer.Option(help="Order groups by lag or trend, all else by rate, p99 or errors; may be given twice."),
    ] = None,
    port: Annotated[
        list[int] | None,
        typer.Option(min=1, max=65535, help="Only servers on this TCP port; may be given several times."),
    ] = None,
    conf: Conf = None,
    allow_truncated: AllowTruncated = None,
    tls_keylog: TlsKeyLog = None,
    tls_embedded_keys: TlsEmbeddedKeys = False,
) -> None:
    """Watch groups, apis, clients and incidents live. Needs no Java.

    Groups are sorted by lag, with its trend from commit to commit and its history; apis and commands by rate, with
    their latency, which is in parentheses where the server waits by design, as in a long poll. Incidents appear as
    they begin, the first with what to do now.

    Keys: q quits, l and t sort groups by lag and trend, r, p and e sort all else by rate, p99 and errors. A file or a
    pipe receives a screen every few seconds. When the input ends, the last screen stays.

    With --once the exit code is 1 if an incident is critical; it is 2 if nothing could be read, if a pipe broke off,
    or if a rule failed.

    Examples:

      ssh broker-1 sudo tcpdump -i any -U -w - port 9092 | wirelake top -

      wirelake top /var/ring --sort trend --sort p99

      wirelake top landing --port 9092 --every 5

      wirelake top incident.pcap --once

      timeout 30 tcpdump -i any -U -w - port 27017 | wirelake top - --once
    """
    from pipeline.commands.diagnose import agent_options  # noqa: PLC0415
    from pipeline.config.settings import load_settings  # noqa: PLC0415
    from pipeline.embedded.live_monitor import LiveMonitor  # noqa: PLC0415 - loads DuckDB and Arrow

    if files == ["-"] and sys.stdin is not None and sys.stdin.isatty():
        raise UserError(
            "standard input is a terminal: pipe a capture into it, e.g. "
            "`tcpdump -i any -U -w - port 9092 | wirelake top -`"
        )
    order = Order()
    for one in sort or ():
        order = order.by(one)
    settings = load_settings(conf)
    window_us, ports = int(window * 1e6), frozenset(port or ())
    if once:
        watch, is_cut = _watched(files, settings, window_us, ports, allow_truncated, tls_keylog, tls_embedded_keys)
        _show_once(", ".join(files), watch, order)
        if is_cut or watch.errors:
            raise typer.Exit(2)
        return
    if len(files) != 1:
        raise UserError("several captures need --once: without it one of '-', a directory, a landing zone, a capture")
    from pipeline.commands.top.watch import watch_and_show  # noqa: PLC0415

    options = agent_options(allow_truncated, tls_keylog, tls_embedded_keys)
    watch = LiveMonitor(settings.stream, window_us, ports)
    watch_and_show(files[0], watch, order, every, options, settings, _console())


def _console() -> Console:
    """Standard output; where that is no terminal, of a width that has room for most."""
    return Console(width=None if sys.stdout.isatty() else terminal_width() or _WIDTH)


def _watched(
    files: list[str],
    settings: Settings,
    window_us: int,
    ports: frozenset[int],
    allow_truncated: bool | None,
    tls_keylog: str | None,
    tls_embedded_keys: bool,
) -> tuple[LiveMonitor, bool]:
    """All that is there, judged; and whether a pipe was cut off."""
    from pipeline.analysis.frames.effort import Effort  # noqa: PLC0415
    from pipeline.capture.reading_options import show_progress  # noqa: PLC0415
    from pipeline.commands.diagnose import PIECE_FRAMES, warn_of  # noqa: PLC0415
    from pipeline.embedded.inputs import open_inputs  # noqa: PLC0415
    from pipeline.embedded.live_monitor import LiveMonitor  # noqa: PLC0415

    errors = Console(stderr=True)
    with ExitStack() as stack:
        with show_progress(errors, ", ".join(files)) as show:
            inputs = stack.enter_context(
                open_inputs(
                    files, allow_truncated=allow_truncated, tls_keylog=tls_keylog,
                    tls_embedded_keys=tls_embedded_keys, work=settings.work.limits(), on_progress=show,
                )
            )  # fmt: skip
        warn_of(inputs, errors)
        watch = LiveMonitor(settings.stream, window_us, ports, by_kernel=Effort(inputs.rows).pays() or None)
        for frames, gaps in inputs.pieces(PIECE_FRAMES):
            watch.add(frames, gaps)
    watch.judge()
    return watch, bool(inputs.cut)


def _show_once(name: str, watch: LiveMonitor, order: Order) -> None:
    from pipeline.commands.top.screen import Shown, screen  # noqa: PLC0415
    from pipeline.commands.top.watch import why_nothing  # noqa: PLC0415
    from pipeline.commands.unjudged import warn_of_errors  # noqa: PLC0415

    now = watch.now()
    if now is None:
        raise UserError(why_nothing(watch, None))
    console = _console()
    with watch.noting_errors():
        drawn = screen(now, Shown(name, order), console.width)
    console.print(drawn)
    warn_of_errors(watch.errors, Console(stderr=True))
    if any(row["severity"] == "critical" for row in now.incidents):
        raise typer.Exit(1)
