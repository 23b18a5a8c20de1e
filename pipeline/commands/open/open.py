"""``wirelake open``: walk through a capture or a lake in a terminal, from incidents down to bytes."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from pipeline.capture.packets.sources import STDIN
from pipeline.capture.reading_options import AllowTruncated, TlsEmbeddedKeys, TlsKeyLog
from pipeline.config.common_options import Conf
from pipeline.errors import UserError
from pipeline.terminal.console import Console


def open(  # noqa: A001 - the name of the command
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE|LAKE...",
            help="Captures: pcap or pcapng, also .gz/.zst; a directory of them; a landing zone. Or one lake.",
        ),
    ],
    conf: Conf = None,
    allow_truncated: AllowTruncated = None,
    tls_keylog: TlsKeyLog = None,
    tls_embedded_keys: TlsEmbeddedKeys = False,
) -> None:
    """Walk through a capture or a lake in the terminal, from incidents down to bytes.

    It begins with incidents and groups. Enter or a click opens a line: an incident and what happened, a group, a
    partition over time, a connection, a message with its fields, the bytes of a field. Esc goes back, / filters the
    lines, ? lists the keys, q quits.

    It needs a terminal, and no Java. A capture is read as `wirelake diagnose` reads it; a lake is read only. While a
    source grows it is read again and the screen follows. `wirelake top` and `wirelake diagnose --follow` show live
    traffic within seconds.

    The exit code is 0; it is 2 if nothing could be read, if there is no terminal, or if something could not be judged.

    Examples:

      wirelake open incident.pcap

      wirelake open demo-lake

      wirelake open /var/ring/kafka.pcap0 /var/ring/kafka.pcap1

      wirelake open incident.pcapng.gz --tls-keylog keys.log
    """
    if STDIN in files:
        raise UserError(
            "`wirelake open` takes its keys from standard input: write the capture to a file, or pipe it into "
            "`wirelake diagnose -`"
        )
    if not _has_terminal():
        raise UserError(
            "`wirelake open` needs a terminal: for a pipe or a file use `wirelake diagnose FILE` or "
            "`wirelake findings --lake LAKE`"
        )
    from pipeline.commands.open.app import Walk  # noqa: PLC0415 - loads Textual, an extra
    from pipeline.commands.open.growing import Growing  # noqa: PLC0415 - loads DuckDB and Arrow
    from pipeline.commands.open.screens import Rooms  # noqa: PLC0415
    from pipeline.commands.open.source import Reading  # noqa: PLC0415
    from pipeline.commands.unjudged import warn_of_errors  # noqa: PLC0415
    from pipeline.config.settings import load_settings  # noqa: PLC0415
    from pipeline.embedded.private_folder import private_folder  # noqa: PLC0415

    reading = Reading(allow_truncated, tls_keylog, tls_embedded_keys)
    with private_folder() as folder:
        growing = Growing(files, load_settings(conf), reading, folder)
        rooms = Rooms(growing.source())
        code = Walk(rooms, growing).run()
        rooms.close()
    if warn_of_errors(rooms.errors, Console(stderr=True)):
        raise typer.Exit(2)
    raise typer.Exit(code or 0)


def _has_terminal() -> bool:
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout))
