"""``wirelake connections``: the TCP connections of a capture, a landing zone or a lake, and how each ended."""

from __future__ import annotations

import sys
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from pipeline.capture.cli import AllowTruncated, TlsEmbeddedKeys, TlsKeyLog
from pipeline.errors import UserError
from pipeline.folders import is_lake
from pipeline.lines import many
from pipeline.tables import GAPS
from pipeline.terminal import Console, json_line

if TYPE_CHECKING:
    from pipeline.analysis.connections import Values

MOST_SHOWN = 200
_SECOND_US = 1_000_000
_WIDE = 120
"""Columns of a terminal that all of a connection takes; a narrower one shows its ends, and how it ended."""


def connections(
    files: Annotated[
        list[str],
        typer.Argument(help="Captures (pcap, pcapng, .gz, .zst; '-' for stdin), a landing zone, or a lake."),
    ],
    failed: Annotated[
        bool, typer.Option("--failed", help="Only those that were not accepted, or ended amid a request.")
    ] = False,
    host: Annotated[str | None, typer.Option(help="Only those from or to this address, or address:port.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a connection.")] = False,
    allow_truncated: AllowTruncated = None,
    tls_keylog: TlsKeyLog = None,
    tls_embedded_keys: TlsEmbeddedKeys = False,
) -> None:
    """List TCP connections: who opened them, what they carried, who ended them and in what state.

    The exit code is 2 if something cannot be read, else 0.

    Examples:

      wirelake connections incident.pcap

      wirelake connections incident.pcap --failed

      wirelake connections landing --host 10.0.0.7:9092

      wirelake connections lake --json | jq 'select(.silence_us > 300000000) | .client_ip'
    """
    from pipeline.analysis.connections import is_failed, is_of  # noqa: PLC0415 - loads Arrow

    found = _found(files, allow_truncated, tls_keylog, tls_embedded_keys)
    shown = [one for one in found if (not failed or is_failed(one)) and (host is None or is_of(one, host))]
    if as_json:
        for one in shown:
            sys.stdout.buffer.write(json_line(one))
        sys.stdout.flush()
    else:
        _show(shown, found, Console())


def _found(
    files: list[str], allow_truncated: bool | None, tls_keylog: str | None, tls_embedded_keys: bool
) -> list[Values]:
    from pipeline.analysis.connections import connections_of  # noqa: PLC0415 - loads Arrow

    lakes = [place for place in files if is_lake(place)]
    if lakes and len(files) > 1:
        raise UserError(f"{lakes[0]} is a lake: name it alone")
    if lakes:
        from pipeline.open_tables import read_table  # noqa: PLC0415 - by delta-rs

        rows = read_table(lakes[0], GAPS)
        return [] if rows is None else connections_of(rows)
    from pipeline.capture.cli import show_progress  # noqa: PLC0415
    from pipeline.commands.diagnose import warn_of  # noqa: PLC0415
    from pipeline.embedded.inputs import open_inputs  # noqa: PLC0415

    errors = Console(stderr=True)
    with show_progress(errors, ", ".join(files)) as show, open_inputs(
        files, allow_truncated=allow_truncated, tls_keylog=tls_keylog, tls_embedded_keys=tls_embedded_keys,
        on_progress=show,
    ) as inputs:  # fmt: skip
        gaps = inputs.gaps()
        found = connections_of(gaps)
        if not found:
            warn_of(inputs, errors)
    return found


def _show(shown: list[Values], found: list[Values], console: Console) -> None:
    from pipeline.analysis.connections import ending, of_each_kind, speaks  # noqa: PLC0415

    if not shown:
        what = "No connection matches." if found else "No connection is recorded: read the capture again."
        console.print(Text(what, "bold green" if found else "yellow"))
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    is_narrow = console.width < _WIDE
    for head in ("began (UTC)", "client", "server"):
        table.add_column(head, no_wrap=True)
    table.add_column("ended")
    for head in () if is_narrow else ("speaks", "lasted", "bytes", "sent again"):
        table.add_column(head, justify="left" if head == "speaks" else "right", no_wrap=True)
    for one in shown[:MOST_SHOWN]:
        count = int(one.get("connections", 1))
        client = many(count, "connection") if count > 1 or "client_ip" not in one else _end(one, "client")
        began = f"{datetime.fromtimestamp(one['began_us'] / _SECOND_US, timezone.utc):%H:%M:%S.%f}"[:-3]
        lasted = f"{(one['ended_us'] - one['began_us']) / _SECOND_US:,.3f} s"
        more = () if is_narrow else (speaks(one), lasted, _pair(one, "bytes"), _pair(one, "again"))
        table.add_row(began, client, _end(one, "server"), ending(one), *more)
    console.print(table)
    if len(shown) > MOST_SHOWN:
        console.print(Text(f"… and {many(len(shown) - MOST_SHOWN, 'more row')}: --json lists all.", "dim"))
    total = sum(int(one.get("connections", 1)) for one in shown)
    kinds = ", ".join(f"{number:,} {what}" for what, number in of_each_kind(shown).items())
    console.print(Text(f"\n{many(total, 'connection')}: {kinds}.", "dim"))


def _end(one: Values, side: str) -> str:
    ip, port = str(one.get(f"{side}_ip", "")), one.get(f"{side}_port", 0)
    if not ip:
        return "several"
    return (f"[{ip}]" if ":" in ip else ip) + (f":{port}" if port else ", several ports")


def _pair(one: Values, name: str) -> str:
    """Of the client and of the server."""
    values = one.get(name)
    return "" if not values or not any(values) else " / ".join(f"{value:,}" for value in values)
