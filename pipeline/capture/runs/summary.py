"""What a capture run reports at its end: a table for people, one JSON object for programs."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from rich.table import Table
from rich.text import Text

from decoder.kafka.schema.table import api_names
from decoder.mongodb.codec.wire import OPCODES
from pipeline.capture.sessions.mismatch_text import misunderstandings, other_protocols
from pipeline.capture.stats import CLOSINGS, NOTICES, CaptureStats, order
from pipeline.humanize import pluralize
from pipeline.terminal.console import Console, json_line

_REASONS = {
    "tls": "encrypted (TLS)",
    "no_data": "carried no data",
    "not_captured": "carried data, but none of it was captured: use a larger snap length (tcpdump -s 0)",
    "not_recognised": "other protocols",
    "budget": "skipped: over the CPU budget for connections without answers",
}

_TLS_PEERS_SHOWN = 10
_UNITS = ((86_400, "days"), (3600, "hours"), (60, "minutes"), (1, "seconds"))

KEYS_UNUSED = (
    "the capture holds keys of TLS connections, which were not used: --tls-embedded-keys decrypts with them (by tshark)"
)


def print_json(stats: CaptureStats) -> None:
    """One object on standard output, see CaptureStats."""
    sys.stdout.buffer.write(json_line(stats.as_dict()))
    sys.stdout.flush()


def print_summary(stats: CaptureStats) -> None:
    """For people, on standard output."""
    console = Console()
    _print_messages(console, stats)
    recognised = ", ".join(f"{count:,} {name}" for name, count in sorted(stats.connections.items())) or "0"
    console.print(Text(f"{pluralize(stats.packets, 'packet')}, connections recognised: {recognised}"))
    if stats.decrypted:
        console.print(Text(f"  decrypted: {pluralize(stats.decrypted, 'connection')}"))
    for reason in sorted(stats.not_recognised):
        console.print(Text(f"  {_not_read(stats, reason)}"))
    if stats.unused_keys:
        console.print(Text(f"  {KEYS_UNUSED}", "yellow"), soft_wrap=True)
    if stats.tls:
        _print_tls(console, stats)
    for reason, count in sorted(stats.skipped.items()):
        console.print(Text(f"  skipped: {pluralize(count, 'packet')}, {reason.replace('_', ' ')}"))
    for closing in closings(stats):
        console.print(Text(f"  {closing}"))
    for unusual in (*misunderstandings(stats), *_losses(stats), *_unusual(stats)):
        console.print(Text(f"  {unusual}", "yellow"))
    if stats.ring_files_missed:
        console.print(Text(f"  lost: {stats.ring_files_missed:,} files of the ring", "bold red"))
    if stats.kernel_dropped is not None:
        console.print(Text(f"  {_dropped(stats)}", "bold red" if stats.kernel_dropped else ""))
    if not stats.connections:
        console.print(Text("No Kafka or MongoDB connection found: nothing landed.", "yellow"))
    present = f", {len(stats.files_present):,} were there already" if stats.files_present else ""
    console.print(Text(f"{len(stats.files):,} landing {'file' if len(stats.files) == 1 else 'files'} written{present}"))


def closings(stats: CaptureStats) -> list[str]:
    """Who closed connections in the middle of a message, a clause each."""
    return [
        f"{f'a {who}' if count == 1 else f'{who}s'} closed {pluralize(count, 'connection')} {where}"
        for name, (who, where) in CLOSINGS.items()
        if (count := stats.closed[name])
    ]


def warnings(stats: CaptureStats) -> list[str]:
    """What a capture held, or should have held, that was not read; each in a sentence of its own."""
    reasons = sorted(reason for reason in stats.not_recognised if reason != "no_data")
    dropped = [_dropped(stats)] if stats.kernel_dropped else []
    keys = [KEYS_UNUSED] if stats.unused_keys else []
    times = [f"{stats.notices[name]:,} {NOTICES[name]}" for name in ("times_clamped",) if stats.notices[name]]
    times += [_set_back(stats)] if stats.clock_set_back_us else []
    unread = [_not_read(stats, reason) for reason in reasons]
    return [*keys, *misunderstandings(stats), *unread, *_losses(stats), *times, *dropped]


def nothing_found(stats: CaptureStats | None) -> str:
    """Why a capture has nothing to judge, as far as its counts (None: unknown) show."""
    if stats is not None and not stats.packets:
        return "the capture holds no packet: is it of the right interface and port, and was there any traffic?"
    found = "no Kafka or MongoDB message found"
    if stats is not None and (sentences := misunderstandings(stats)):
        return f"{found}: {sentences[0]}"
    if stats is not None and stats.not_recognised["tls"]:
        return (
            f"{found}: the traffic is encrypted (TLS). Capture behind the TLS endpoint, or give the key log of a "
            "client or server (--tls-keylog FILE)"
        )
    if stats is not None and stats.not_recognised["not_recognised"]:
        kinds = other_protocols(stats)
        return f"{found}: what was captured are other protocols{f' ({kinds})' if kinds else ''}. Is it the right port?"
    if stats is not None and (silent := stats.not_recognised["no_data"]):
        return (
            f"{found}: {pluralize(silent, 'connection')} carried no byte. `wirelake connections` lists how each ended; "
            "SYNs alone may be a capture filter, or what a firewall rejects"
        )
    return f"{found}. Was the capture cut before the connections began?"


def _not_read(stats: CaptureStats, reason: str) -> str:
    count = pluralize(stats.not_recognised[reason], "connection")
    kinds = other_protocols(stats) if reason == "not_recognised" else ""
    return f"not read: {count}, {_REASONS.get(reason, reason)}{f' ({kinds})' if kinds else ''}"


def _losses(stats: CaptureStats) -> Iterator[str]:
    yield from stats.cut_off
    if stats.truncated:
        yield f"cut off: {pluralize(stats.truncated, 'message')} whose end was not captured"
    if stats.gaps:
        yield f"lost: {pluralize(stats.bytes_lost, 'byte')} in {pluralize(stats.gaps, 'gap')}"
    if stats.joined_midway:
        midway = pluralize(stats.bytes_midway, "byte")
        yield f"under way when the capture began: {midway} that are in no message, no loss"


def _unusual(stats: CaptureStats) -> Iterator[str]:
    for name, count in sorted(stats.notices.items()):
        if name != "clock_set_back":
            yield f"{count:,} {NOTICES.get(name, name)}"
    if stats.clock_set_back_us:
        yield _set_back(stats)


def _set_back(stats: CaptureStats) -> str:
    count = stats.notices["clock_set_back"]
    times = "once, by" if count == 1 else f"{count:,} times, by up to"
    seconds = round(stats.clock_set_back_us / 1_000_000)
    size, unit = next((size, unit) for size, unit in _UNITS if seconds >= 2 * size or size == 1)
    return f"the clock was set back {times} {seconds // size:,} {unit}: what spans such a moment has a wrong duration"


def _dropped(stats: CaptureStats) -> str:
    return f"dropped by the kernel: {pluralize(stats.kernel_dropped or 0, 'packet')}"


def _print_messages(console: Console, stats: CaptureStats) -> None:
    """How many of each api and version."""
    table = Table("api", "version", "requests", "responses", title="Messages", title_justify="left")
    for column in table.columns[1:]:
        column.justify = "right"
    names = api_names()
    for api in sorted(stats.requests.keys() | stats.responses.keys(), key=order):
        key, version = api
        # a Kafka api comes with its version, a MongoDB opcode without
        known = OPCODES if version is None else names
        name = "(request not seen, or SASL token)" if key is None else known.get(key, f"unknown api {key}")
        shown = "" if version is None else str(version)
        table.add_row(name, shown, f"{stats.requests[api]:,}", f"{stats.responses[api]:,}")
    if table.row_count:
        console.print(table)


def _print_tls(console: Console, stats: CaptureStats) -> None:
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
