"""What commands that read captures share: options, and a line on the terminal that shows how far they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline.humanize import pluralize
from pipeline.terminal.console import Console

if TYPE_CHECKING:
    from pipeline.capture.stats import CaptureStats

AllowTruncated = Annotated[
    bool | None,
    typer.Option(
        "--allow-truncated/--strict",
        help="Read a truncated or damaged capture up to its last complete packet, or refuse it. By default files are "
        "read with a warning, and a pipe that breaks off ends with exit code 2.",
        show_default=False,
    ),
]
TlsKeyLog = Annotated[
    str | None, typer.Option(help="Key log (as SSLKEYLOGFILE makes programs write) to decrypt TLS with; needs tshark.")
]
TlsEmbeddedKeys = Annotated[
    bool,
    typer.Option("--tls-embedded-keys", help="Decrypt TLS with the keys that the pcapng itself holds; needs tshark."),
]


@contextmanager
def show_progress(console: Console, name: str) -> Iterator[Callable[[CaptureStats], None]]:
    """A line on the terminal that shows how far we are."""
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415 - takes a while

    columns = SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(name)

        def show(stats: CaptureStats) -> None:
            frames, files = sum(stats.frames.values()), len(stats.files)
            progress.update(
                task,
                description=f"{name}: {pluralize(stats.packets, 'packet')}, {pluralize(frames, 'frame')}, "
                f"{pluralize(files, 'landing file')}",
            )

        yield show
