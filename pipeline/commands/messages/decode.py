"""``wirelake decode``: a capture in, one message or one record a line out. No Spark, no lake."""

from __future__ import annotations

import heapq
import sys
import time
from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path
from typing import Annotated, NamedTuple

import typer
from rich.text import Text

from decoder import Codec, Frame
from decoder.model import PayloadPolicy
from pipeline.capture.packets.pipe import stop_on_signals
from pipeline.capture.packets.sources import STDIN, capture_files
from pipeline.capture.reading_options import AllowTruncated, TlsEmbeddedKeys, TlsKeyLog
from pipeline.capture.runs.one_capture import decryption_of
from pipeline.capture.runs.summary import nothing_found, warnings
from pipeline.capture.stats import CaptureStats
from pipeline.capture.tcp.work_limits import WorkLimits
from pipeline.commands.messages.apis import WantedApi
from pipeline.commands.messages.descriptions import Describers
from pipeline.commands.messages.failures import Failures
from pipeline.commands.messages.message_filter import MessageFilter, Wanted
from pipeline.commands.messages.message_lines import MessageLines
from pipeline.commands.messages.messages import Decoded, MessageReader, as_object, iso_time, ordered_frames
from pipeline.commands.messages.record_lines import record_line, record_object, records_of
from pipeline.commands.messages.tcp_events import TcpEvent, tcp_events
from pipeline.commands.unjudged import warn_of_errors
from pipeline.config.common_options import Conf
from pipeline.config.settings import load_settings
from pipeline.errors import UserError
from pipeline.humanize import pluralize
from pipeline.terminal.console import Console, json_line, printable
from pipeline.terminal.lines import Lines
from pipeline.terminal.pager import paged

_FLUSH_S = 0.05
"""Of a pipe that is never silent, what was printed is passed on so often."""


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
        bool, typer.Option("--records", help="Print each record, decompressed, instead of each message.")
    ] = False,
    payload: Annotated[
        Payload, typer.Option(help="With --records: 'full' shows keys, values and header values too.")
    ] = Payload.lengths,
    allow_truncated: AllowTruncated = None,
    group: Annotated[
        str | None, typer.Option(help="Only messages that name this group; * and ? stand for others.")
    ] = None,
    topic: Annotated[
        str | None, typer.Option(help="Only those that name this topic, of MongoDB the namespace; * and ? as above.")
    ] = None,
    partition: Annotated[
        int | None, typer.Option(help="Only those that name this partition, of --topic if given.")
    ] = None,
    client: Annotated[
        str | None, typer.Option(help="Only those of clients of this client id; * and ? as above.")
    ] = None,
    host: Annotated[str | None, typer.Option(help="Only those from or to this address, or address:port.")] = None,
    connection: Annotated[
        str | None, typer.Option(help="Only those of this connection: its id, or the client's address:port.")
    ] = None,
    errors: Annotated[
        bool, typer.Option("--errors", help="Only responses that hold an error, and what does not decode.")
    ] = False,
    slower_than: Annotated[
        str | None,
        typer.Option(
            help="Only responses that took longer, e.g. 250us, 20ms or 1.5s; a number alone is milliseconds. Waiting "
            "behind earlier requests of the connection is not counted."
        ),
    ] = None,
    since: Annotated[
        str | None, typer.Option(help="Only from this time on (UTC), e.g. 04:46:08 or an ISO time.")
    ] = None,
    until: Annotated[str | None, typer.Option(help="Only up to this time (UTC).")] = None,
    follow: Annotated[
        bool,
        typer.Option("--follow", help="Continue with a file that grows, or a directory into which files are rotated."),
    ] = False,
    tcp: Annotated[
        bool,
        typer.Option(
            "--tcp",
            help="Show SYN, FIN, RST, zero windows, TLS alerts between messages; of captures at rest, not of a pipe.",
        ),
    ] = False,
    tls_keylog: TlsKeyLog = None,
    tls_embedded_keys: TlsEmbeddedKeys = False,
    conf: Conf = None,
) -> None:
    """Print every Kafka and MongoDB message of a capture.

    Requests and responses appear in time order.

    Each line states what was asked and, after an arrow, what the server answered. Filters apply to a response together
    with its request. Lines are cut to the terminal's width and go through a pager (PAGER, by default less -FRX); in a
    file or a pipe they are whole. Messages from standard input, and those that --follow reads, are printed as they
    arrive.

    --records prints the records that Produce, Fetch and ShareFetch carry, each with the number of its message
    ("frame"): topic, partition, offset (in a Produce request relative to its batch), time (UTC), sizes and the names
    of the headers. A batch whose records cannot be read is one line with the reason. In JSON the bytes are base64.

    Lost and unrecognised bytes are reported on standard error. If no message matches the filters, names that do occur
    are listed there and the exit code is 0. It is 2 if the capture holds no message, if options contradict each other,
    or if an internal error kept a message from being shown.

    Examples:

      wirelake decode incident.pcap

      wirelake decode incident.pcap --api OffsetCommit --group billing --topic payments --partition 2

      wirelake decode incident.pcap --errors --since 04:46:08

      wirelake decode incident.pcapng.gz --json | jq 'select(.api_name == "OffsetCommit") | .body'

      tcpdump -i any -U -w - port 9092 | wirelake decode - --slower-than 500ms

      wirelake decode incident.pcap --tcp --host 10.0.0.7:9092

      wirelake decode incident.pcap --conf conf/local.yaml    # work: what reading may cost

      wirelake decode incident.pcap --records --api Fetch --json | jq 'select(.topic == "orders") | .value_size'

      wirelake decode incident.pcap --records --payload full --json | jq -r '.value // empty | @base64d'
    """
    _check_ways(files, follows=follow, decrypts=tls_keylog is not None or tls_embedded_keys, tcp=tcp, records=records)
    _check_payload(payload, records=records)
    wanted, describers = None if api is None else WantedApi(api), Describers()
    chosen = MessageFilter(
        Wanted(group, topic, partition, client, host, errors, connection, slower_than, since, until), describers
    )
    # The agent overwrites what the policy does not keep; to look at records in passing, they must still be there.
    policy: PayloadPolicy = "full" if records else "lengths"
    work = load_settings(conf).work.limits()
    reading = _Reading(policy, work, tls_keylog, tls_embedded_keys, allow_truncated, CaptureStats())
    with paged(not as_json and not follow and STDIN not in files):
        form = _Form(records=records, payload=payload is Payload.full, as_json=as_json)
        shown = _Shown(wanted, chosen, describers, form)
        for path in files if follow else capture_files(files):
            if path == STDIN or follow:
                _take_arriving(path, shown.take, reading, follows=follow)
            else:
                _take_at_rest(path, shown, reading, tcp=tcp)
        sys.stdout.flush()
    if not shown.events or reading.stats.frames:
        _report_rest(reading.stats, wanted, chosen if chosen.asks and not shown.messages else None)
    if warn_of_errors(shown.failures.errors, Console(stderr=True)):
        raise typer.Exit(2)


class _Form(NamedTuple):
    """How messages are printed: whether by their records, with keys and values, as JSON."""

    records: bool
    payload: bool
    as_json: bool


class _Reading(NamedTuple):
    """How captures are read, and the counts of what was seen in them."""

    policy: PayloadPolicy
    work: WorkLimits
    tls_keylog: str | None
    tls_embedded_keys: bool
    allow_truncated: bool | None
    stats: CaptureStats


class _Shown:
    """Prints the messages that are asked for.

    Args:
        wanted: the api that is asked for; None: all of them.
        chosen: what else is.
        describers: what messages say, and the names in them.
        form: how they are printed.

    Attributes:
        messages, events: how many messages, and events of TCP, were printed.
        failures: messages that an internal error kept from being printed.
    """

    def __init__(self, wanted: WantedApi | None, chosen: MessageFilter, describers: Describers, form: _Form) -> None:
        self.messages, self.events, self.failures = 0, 0, Failures()
        self._wanted, self._chosen, self._describers, self._as_json = wanted, chosen, describers, form.as_json
        self._notes_names = chosen.asks or form.records or not form.as_json
        self._reader = MessageReader(
            keeps_requests=self._notes_names, failures=self.failures, as_text=not self._notes_names
        )
        self._lines = MessageLines(Lines(), describers)
        self._show = _printer(describers, self._lines, records=form.records, as_json=form.as_json, payload=form.payload)

    def take(self, frame: Frame) -> None:
        """Print a message, if it is asked for."""
        item = self._reader.read(frame)
        with self.failures.of(item.number, frame.exchange_id):
            if self._notes_names:
                self._describers.note(item)
            is_api = self._wanted is None or self._wanted.accepts(item)
            if is_api and (not self._chosen.asks or self._chosen.accepts(item)):
                self.messages += 1
                self._show(item)

    def take_tcp(self, event: TcpEvent) -> None:
        """Print an event of TCP, if its connection is asked for."""
        if self._chosen.accepts_tcp(event):
            self.events += 1
            _show_tcp(event, None if self._as_json else self._lines)


def _take_at_rest(path: str, shown: _Shown, reading: _Reading, *, tcp: bool) -> None:
    """Print the messages of a capture that does not grow, with ``tcp`` the events of TCP between them."""
    frames = ordered_frames(
        [path],
        allow_truncated=reading.allow_truncated,
        payload_policy=reading.policy,
        tls_keylog=reading.tls_keylog,
        tls_embedded_keys=reading.tls_embedded_keys,
        work=reading.work,
        stats=reading.stats,
    )
    for one in _with_events(frames, path, reading.allow_truncated) if tcp else frames:
        if isinstance(one, Frame):
            shown.take(one)
        else:
            shown.take_tcp(one)


def _take_arriving(path: str, take: Callable[[Frame], None], reading: _Reading, *, follows: bool) -> None:
    """Print the messages of a pipe or of what grows as they arrive."""
    from pipeline.commands.messages.arriving import take_arriving  # noqa: PLC0415 - a file at rest needs none of it

    if path != STDIN and not Path(path).exists():
        raise UserError(f"{path} does not exist; --follow takes a capture file or the directory of a ring")
    flushed = 0.0

    def take_now(frame: Frame) -> None:
        nonlocal flushed
        take(frame)
        if time.monotonic() - flushed > _FLUSH_S:
            sys.stdout.flush()
            flushed = time.monotonic()

    decryption = decryption_of([path], reading.tls_keylog, use_embedded=reading.tls_embedded_keys)  # refuses a pipe
    with decryption, stop_on_signals() as stop:
        take_arriving(
            path,
            take_now,
            sys.stdout.flush,
            stop,
            follows=follows,
            allow_truncated=reading.allow_truncated,
            payload_policy=reading.policy,
            work=reading.work,
            stats=reading.stats,
        )


def _check_payload(payload: Payload, *, records: bool) -> None:
    if payload is Payload.full and not records:
        raise UserError("--payload full shows keys and values: it needs --records")


def _check_ways(files: list[str], *, follows: bool, decrypts: bool, tcp: bool, records: bool) -> None:
    if follows and (len(files) > 1 or decrypts):
        raise UserError("--follow reads one file or directory, and does not decrypt")
    if tcp and (records or follows or STDIN in files):
        raise UserError("--tcp shows messages of captures at rest: it goes neither with --records nor with a pipe")


def _with_events(frames: Iterator[Frame], path: str, allow_truncated: bool | None) -> Iterator[Frame | TcpEvent]:
    """Frames with the events of TCP between them, in the order of time."""
    return heapq.merge(frames, tcp_events(path, allow_truncated=allow_truncated), key=_time)


def _time(item: Frame | TcpEvent) -> int:
    return item.ts


def _show_tcp(event: TcpEvent, lines: MessageLines | None) -> None:
    """Print an event of TCP; without ``lines`` as JSON."""
    if lines is None:
        sys.stdout.buffer.write(json_line(event.as_object(iso_time(event.ts))))
    else:
        lines.write_tcp(event)


def _printer(
    describers: Describers, lines: MessageLines, *, records: bool, as_json: bool, payload: bool
) -> Callable[[Decoded], None]:
    """What prints a message, or its records."""

    def show_object(item: Decoded) -> None:
        sys.stdout.buffer.write(json_line(as_object(item)))

    if not records:
        return show_object if as_json else lines.write
    codec, console = Codec(), Console()

    def show_records(message: Decoded) -> None:
        for item in records_of(message, codec, describers, payload=payload):
            if as_json:
                sys.stdout.buffer.write(json_line(record_object(message, item, payload=payload)))
            else:
                console.print(record_line(message, item, payload=payload), soft_wrap=True)

    return show_records


def _report_rest(stats: CaptureStats, wanted: WantedApi | None, asked: MessageFilter | None) -> None:
    """Report what was not printed, though the capture held it or should have held it.

    Args:
        stats: of the captures.
        wanted: the api that was asked for.
        asked: what else was, if no message is like that.
    """
    errors = Console(stderr=True)
    for warning in warnings(stats):
        errors.print(Text(f"warning: {warning}", "yellow"), soft_wrap=True)
    messages = sum(stats.frames.values())
    if not messages:
        raise UserError(nothing_found(stats))
    none = f"warning: none of the {pluralize(messages, 'message')} is"
    if asked is not None and (wanted is None or wanted.found):
        why = asked.why_none()
        errors.print(Text(printable(f"{none} like that{why and f'; {why}'}"), "yellow"), soft_wrap=True)
    if wanted is not None and not wanted.found:
        wanted.check()
        errors.print(Text(f"{none} of this api", "yellow"), soft_wrap=True)
