"""``wirelake capture``: packets into the landing zone."""

from __future__ import annotations

import sys
from enum import Enum
from typing import Annotated

import orjson
import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from decoder.kafka.schema.table import api_names
from pipeline.capture.agent import DEFAULT_AGENT_ID, read_capture
from pipeline.capture.packet import CaptureError
from pipeline.capture.sources import capture_files
from pipeline.capture.stats import CaptureStats

capture_app = typer.Typer(help="Capture traffic: packets into the landing zone.", no_args_is_help=True)

_REASONS = {
    "tls": "encrypted (TLS)",
    "no_data": "carried no data",
    "not_recognised": "other protocols",
}


_TLS_PEERS_SHOWN = 10


class Payload(str, Enum):
    """What of record keys, values and headers may be stored."""

    lengths = "lengths"
    full = "full"


TlsKeyLog = Annotated[
    str | None, typer.Option(help="Key log (as SSLKEYLOGFILE makes programs write) to decrypt TLS with; needs tshark.")
]


@capture_app.callback()
def _group() -> None:
    """Capture traffic: packets into the landing zone."""


@capture_app.command()
def read(
    files: Annotated[
        list[str],
        typer.Argument(help="Captures: pcap or pcapng, also .gz/.zst; a directory of them; '-' for stdin."),
    ],
    landing: Annotated[str, typer.Option(help="Directory of the landing zone; made if it is not there.")],
    agent_id: Annotated[
        str, typer.Option(help="Name of this agent; part of the ids, so keep it the same for the same source.")
    ] = DEFAULT_AGENT_ID,
    payload: Annotated[
        Payload, typer.Option(help="What of record keys and values lands; credentials never do.")
    ] = Payload.lengths,
    allow_truncated: Annotated[bool, typer.Option(help="Read the complete packets of a cut-off capture.")] = False,
    tls_keylog: TlsKeyLog = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as one JSON object.")] = False,
) -> None:
    """Read capture files into the landing zone. Reading a file again changes nothing.

    A file that cannot be read, or is cut off, lands not at all; the other files do, and the exit code is 2.

    Examples:

      wirelake capture read incident.pcap --landing landing

      wirelake capture read /var/captures --landing landing --agent-id broker-host-1 --json

      wirelake capture read incident.pcap --tls-keylog keys.log --landing landing

      tcpdump -i any -w - port 9092 | wirelake capture read - --landing landing
    """
    errors = Console(stderr=True)
    total, failed = CaptureStats(), False
    for given in files:
        try:
            for path in capture_files([given]):
                failed |= not _read_one(total, path, landing, agent_id, payload, allow_truncated, tls_keylog, errors)
        except CaptureError as error:
            failed = True
            _tell(errors, error)
    if as_json:
        sys.stdout.buffer.write(orjson.dumps(total.as_dict(), option=orjson.OPT_APPEND_NEWLINE))
        sys.stdout.flush()
    elif total.packets:
        _summarise(total)
    if failed:
        raise typer.Exit(2)


def _read_one(
    total: CaptureStats,
    path: str,
    landing: str,
    agent_id: str,
    payload: Payload,
    allow_truncated: bool,
    tls_keylog: str | None,
    errors: Console,
) -> bool:
    """Read one file and add its counts; whether it was good."""
    columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    with Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal) as progress:
        task = progress.add_task(path)

        def show(stats: CaptureStats) -> None:
            progress.update(
                task, description=f"{path}: {stats.packets:,} packets, {sum(stats.frames.values()):,} frames"
            )

        try:
            stats = read_capture(
                [path],
                landing,
                agent_id=agent_id,
                payload_policy=payload.value,
                allow_truncated=allow_truncated,
                tls_keylog=tls_keylog,
                on_progress=show,
            )
        except CaptureError as error:
            _tell(errors, error)
            return False
    total.add(stats)
    return True


def _tell(console: Console, error: CaptureError) -> None:
    console.print(Text(f"error: {error}", "bold red"), soft_wrap=True)


def _summarise(stats: CaptureStats) -> None:
    console = Console()
    table = Table("api", "version", "requests", "responses", title="Kafka messages", title_justify="left")
    for column in table.columns[1:]:
        column.justify = "right"
    names = api_names()
    for api in sorted(stats.requests.keys() | stats.responses.keys(), key=lambda a: (a[0] is None, a)):
        key, version = api
        name = "(request not seen, or SASL token)" if key is None else names.get(key, f"unknown api {key}")
        shown = "" if version is None else str(version)
        table.add_row(name, shown, f"{stats.requests[api]:,}", f"{stats.responses[api]:,}")
    if table.row_count:
        console.print(table)
    recognised = ", ".join(f"{count:,} {name}" for name, count in sorted(stats.connections.items())) or "0"
    console.print(Text(f"{stats.packets:,} packets, connections recognised: {recognised}"))
    if stats.decrypted:
        console.print(Text(f"  decrypted: {stats.decrypted:,} connections"))
    for reason, count in sorted(stats.not_recognised.items()):
        console.print(Text(f"  not read: {count:,} connections {_REASONS.get(reason, reason)}"))
    if stats.tls:
        _tell_tls(console, stats)
    for reason, count in sorted(stats.skipped.items()):
        console.print(Text(f"  skipped: {count:,} packets, {reason.replace('_', ' ')}"))
    if stats.truncated:
        console.print(Text(f"  cut off: {stats.truncated:,} messages whose end was not captured"))
    if stats.gaps:
        console.print(Text(f"  lost: {stats.bytes_lost:,} bytes in {stats.gaps:,} gaps", "yellow"))
    if not stats.connections:
        console.print(Text("No Kafka connection found: nothing landed.", "yellow"))
    present = f", {len(stats.files_present):,} were there already" if stats.files_present else ""
    console.print(Text(f"{len(stats.files):,} landing files written{present}"))


def _tell_tls(console: Console, stats: CaptureStats) -> None:
    """Who encrypts, the busiest first, and what to do about it."""
    for peers, count in stats.tls.most_common(_TLS_PEERS_SHOWN):
        name = f" ({peers.server_name})" if peers.server_name else ""
        console.print(Text(f"    {peers.client_ip} to {peers.server_ip} port {peers.server_port}{name}: {count:,}"))
    if len(stats.tls) > _TLS_PEERS_SHOWN:
        console.print(Text("    … (--json lists more)"))
    console.print(
        Text(
            "    to read them: capture behind the TLS endpoint, or give the key log of a client or server "
            "(--tls-keylog FILE)",
            "yellow",
        ),
        soft_wrap=True,
    )
