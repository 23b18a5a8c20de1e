"""``wirelake connections``: the TCP connections of a capture, a landing zone or a lake, and how each ended."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from pipeline.capture.reading_options import AllowTruncated, TlsEmbeddedKeys, TlsKeyLog
from pipeline.errors import UserError
from pipeline.humanize import pluralize
from pipeline.lake.path_checks import is_lake
from pipeline.tables import CONNECTIONS, GAPS
from pipeline.terminal.console import Console, json_line

if TYPE_CHECKING:
    import pyarrow as pa

    from pipeline.analysis.connections import Row

MOST_SHOWN = 200
_WIDE = 120
"""Columns of a terminal that all of a connection takes; a narrower one shows its ends, and how it ended."""


def connections(
    files: Annotated[
        list[str],
        typer.Argument(help="Captures (pcap, pcapng, .gz, .zst; '-' for stdin), a landing zone, or a lake."),
    ],
    failed: Annotated[
        bool, typer.Option("--failed", help="Only those that were not accepted, or ended in the middle of a request.")
    ] = False,
    host: Annotated[str | None, typer.Option(help="Only those from or to this address, or address:port.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a connection.")] = False,
    allow_truncated: AllowTruncated = None,
    tls_keylog: TlsKeyLog = None,
    tls_embedded_keys: TlsEmbeddedKeys = False,
) -> None:
    """List TCP connections, and how those that failed ended.

    Each line states who opened a connection, what it carried, who ended it and in what state.

    The exit code is 2 if something cannot be read, else 0.

    Examples:

      wirelake connections incident.pcap

      wirelake connections incident.pcap --failed

      wirelake connections landing --host 10.0.0.7:9092

      wirelake connections lake --json | jq 'select(.silence_us > 300000000) | .client_ip'
    """
    from pipeline.analysis.connections import is_of  # noqa: PLC0415 - loads Arrow

    found = _found(files, allow_truncated, tls_keylog, tls_embedded_keys)
    shown = [one for one in found if (not failed or one["is_failed"]) and (host is None or is_of(one, host))]
    if as_json:
        for one in shown:
            sys.stdout.buffer.write(json_line(one))
        sys.stdout.flush()
    else:
        _show(shown, found, Console())


def _found(
    files: list[str], allow_truncated: bool | None, tls_keylog: str | None, tls_embedded_keys: bool
) -> list[Row]:
    lakes = [place for place in files if is_lake(place)]
    if lakes and len(files) > 1:
        raise UserError(f"{lakes[0]} is a lake: name it alone")
    if lakes:
        return _counted(_held(lakes[0]))
    from pipeline.analysis.connections import connections  # noqa: PLC0415 - loads Arrow
    from pipeline.capture.reading_options import show_progress  # noqa: PLC0415
    from pipeline.commands.diagnose import warn_of  # noqa: PLC0415
    from pipeline.embedded.inputs import open_inputs  # noqa: PLC0415

    errors = Console(stderr=True)
    with show_progress(errors, ", ".join(files)) as show, open_inputs(
        files, allow_truncated=allow_truncated, tls_keylog=tls_keylog, tls_embedded_keys=tls_embedded_keys,
        on_progress=show,
    ) as inputs:  # fmt: skip
        found = _counted(connections(inputs.gaps()))
        if not found:
            warn_of(inputs, errors)
    return found


def _held(lake: str) -> pa.Table:
    """The connections of a lake; of one of an older release, that has none, what its agents state."""
    from pipeline.analysis.connections import connections  # noqa: PLC0415 - loads Arrow
    from pipeline.analysis.fit import schema_of  # noqa: PLC0415
    from pipeline.lake.delta_reader import read_table  # noqa: PLC0415 - by delta-rs

    held = read_table(lake, CONNECTIONS)
    if held is not None and held.num_rows:
        return held
    gaps = read_table(lake, GAPS)
    return schema_of(CONNECTIONS).empty_table() if gaps is None else connections(gaps)


def _counted(found: pa.Table) -> list[Row]:
    """Those that are no copies, in the order in which they began."""
    rows = found.sort_by([("first_ts", "ascending"), ("connection_id", "ascending")]).to_pylist()
    return [row for row in rows if row["counted_connection_id"] is None]


def _show(shown: list[Row], found: list[Row], console: Console) -> None:
    from pipeline.analysis.connections import of_each_kind, speaks  # noqa: PLC0415

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
        is_one = one["connections"] == 1 and one["client_ip"]
        client = _end(one, "client") if is_one else pluralize(one["connections"], "connection")
        began = f"{one['first_ts']:%H:%M:%S.%f}"[:-3]
        lasted = f"{(one['last_ts'] - one['first_ts']).total_seconds():,.3f} s"
        more = () if is_narrow else (speaks(one), lasted, _pair(one, "bytes"), _pair(one, "sent_again"))
        table.add_row(began, client, _end(one, "server"), one["ended"], *more)
    console.print(table)
    if len(shown) > MOST_SHOWN:
        console.print(Text(f"… and {pluralize(len(shown) - MOST_SHOWN, 'more row')}: --json lists all.", "dim"))
    total = sum(one["connections"] for one in shown)
    kinds = ", ".join(f"{number:,} {what}" for what, number in of_each_kind(shown).items())
    console.print(Text(f"\n{pluralize(total, 'connection')}: {kinds}.", "dim"))


def _end(one: Row, side: str) -> str:
    ip, port = one[f"{side}_ip"], one[f"{side}_port"]
    if not ip:
        return "several"
    return (f"[{ip}]" if ":" in ip else ip) + (f":{port}" if port else ", several ports")


def _pair(one: Row, name: str) -> str:
    """Of the client and of the server."""
    values = one[f"client_{name}"] or 0, one[f"server_{name}"] or 0
    return " / ".join(f"{value:,}" for value in values) if any(values) else ""
