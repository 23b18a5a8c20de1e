"""``wirelake decode``: a capture in, one message or one record a line out. No Spark, no lake."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from enum import Enum
from typing import Annotated

import typer
from rich.text import Text

from decoder import Codec
from decoder.model import PayloadPolicy
from pipeline.capture.cli import TlsEmbeddedKeys, TlsKeyLog
from pipeline.capture.runs.summary import warnings
from pipeline.capture.stats import CaptureStats
from pipeline.commands.apis import WantedApi
from pipeline.commands.messages import Decoded, as_object, decoded_messages, iso_time, ordered_frames
from pipeline.commands.record_lines import record_line, record_object, records_of
from pipeline.errors import UserError
from pipeline.settings import load_settings
from pipeline.terminal import Console, json_line, printable

_STYLES = {"ok": "green", "partial": "yellow", "redacted": "cyan"}


class Payload(str, Enum):
    """What is shown of a record."""

    lengths = "lengths"
    full = "full"


def decode(
    files: Annotated[list[str], typer.Argument(help="Captures: pcap or pcapng, also .gz/.zst; '-' for stdin.")],
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line, with header and body.")] = False,
    api: Annotated[
        str | None,
        typer.Option(help="Only this api, by name (in any case) or key, e.g. OffsetCommit or 8; of MongoDB: find."),
    ] = None,
    records: Annotated[
        bool, typer.Option("--records", help="One line a record, decompressed, in place of one a message.")
    ] = False,
    payload: Annotated[
        Payload, typer.Option(help="With --records: 'full' shows keys, values and header values too.")
    ] = Payload.lengths,
    allow_truncated: Annotated[bool, typer.Option(help="Read the complete packets of a cut-off capture.")] = False,
    tls_keylog: TlsKeyLog = None,
    tls_embedded_keys: TlsEmbeddedKeys = False,
) -> None:
    """Print every Kafka and MongoDB message of a capture, requests and responses in the order of time.

    With --records the records that Produce, Fetch and ShareFetch carry, each with the number of its message ("frame"):
    topic, partition, offset (in a Produce request relative to its batch), time, sizes and the names of the headers.
    Records that cannot be read are one line with the reason a batch. In JSON the bytes are base64.

    What was lost or not recognised is reported on standard error. The exit code is 2 if no message was found.

    Examples:

      wirelake decode incident.pcap

      wirelake decode incident.pcapng.gz --json | jq 'select(.api_name == "OffsetCommit") | .body'

      tcpdump -i any -w - port 9092 | wirelake decode -

      wirelake decode incident.pcap --records --api Fetch --json | jq 'select(.topic == "orders") | .value_size'

      wirelake decode incident.pcap --records --payload full --json | jq -r '.value // empty | @base64d'
    """
    if payload is Payload.full and not records:
        raise UserError("--payload full shows keys and values: it needs --records")
    # The agent overwrites what the policy does not keep; to look at records in passing, they must still be there.
    policy: PayloadPolicy = "full" if records else "lengths"
    wanted, stats = WantedApi(api) if api is not None else None, CaptureStats()
    frames = ordered_frames(
        files,
        allow_truncated=allow_truncated,
        payload_policy=policy,
        tls_keylog=tls_keylog,
        tls_embedded_keys=tls_embedded_keys,
        work=load_settings().work,
        stats=stats,
    )
    messages = decoded_messages(frames)
    chosen = messages if wanted is None else filter(wanted.accepts, messages)
    if records:
        _print_records(chosen, as_json=as_json, payload=payload is Payload.full)
    else:
        _print_messages(chosen, as_json=as_json)
    _report_rest(stats, wanted)


def _print_messages(messages: Iterator[Decoded], *, as_json: bool) -> None:
    console = Console()
    for item in messages:
        if as_json:
            sys.stdout.buffer.write(json_line(as_object(item)))
        else:
            console.print(_line(item), soft_wrap=True)
    sys.stdout.flush()


def _print_records(messages: Iterator[Decoded], *, as_json: bool, payload: bool) -> None:
    codec, console = Codec(), Console()
    for message in messages:
        for item in records_of(message, codec, payload=payload):
            if as_json:
                line = record_object(message, item, payload=payload)
                sys.stdout.buffer.write(json_line(line))
            else:
                console.print(record_line(message, item, payload=payload), soft_wrap=True)
    sys.stdout.flush()


def _report_rest(stats: CaptureStats, wanted: WantedApi | None) -> None:
    """Report what was not printed, though the capture held it or should have held it."""
    errors = Console(stderr=True)
    for warning in warnings(stats):
        errors.print(Text(f"warning: {warning}", "yellow"), soft_wrap=True)
    messages = sum(stats.frames.values())
    if not messages:
        raise UserError(
            "no Kafka or MongoDB message found. Is the traffic encrypted (TLS), or the capture cut before the "
            "connections began?"
        )
    if wanted is not None and not wanted.found:
        wanted.check()
        errors.print(Text(f"warning: none of the {messages:,} messages is of this api", "yellow"), soft_wrap=True)


def _line(item: Decoded) -> Text:
    frame, message = item.frame, item.message
    is_request = frame.direction == "request"
    client, server = f"{frame.client_ip}:{frame.client_port}", f"{frame.server_ip}:{frame.server_port}"
    name = printable(message.api_name or "") or ("?" if message.api_key is None else f"api {message.api_key}")
    version = "" if message.api_version is None else f" v{message.api_version}"
    text = Text()
    text.append(f"{item.number:>6} ", "dim")
    text.append(f"{iso_time(frame.ts)[11:-1]} ")
    text.append(f"{client} → {server} " if is_request else f"{client} ← {server} ", "dim")
    text.append(f"{name}{version} ", "bold" if is_request else "")
    number = "" if frame.correlation_id is None else f"#{frame.correlation_id} "
    text.append(f"{number}{frame.size} B ")
    if item.latency_us is not None:
        text.append(f"{item.latency_us / 1000:.1f} ms ", "blue")
    if message.client_id:
        text.append(f"{message.client_id!r} ", "magenta")
    if message.error_code is not None:
        text.append(
            f"{message.status} {message.error_code} at byte {message.error_offset}", _STYLES.get(message.status, "red")
        )
    return text
