"""``wirelake explain``: one message, field by field, with the bytes beside it."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from shlex import quote
from typing import Annotated

import typer

from decoder import Codec, Frame
from decoder.explain.choice import choose_reading
from decoder.explain.explanation import Explanation, as_objects
from decoder.explain.paste import PasteError, readings
from decoder.model import Direction
from decoder.protocol import Context, MissingContextError, Pasted, WireProtocol
from decoder.protocols import protocol_of, protocols
from pipeline.capture.reading_options import TlsEmbeddedKeys, TlsKeyLog
from pipeline.capture.runs.summary import KEYS_UNUSED
from pipeline.capture.stats import CaptureStats
from pipeline.capture.tcp.work_limits import WorkLimits
from pipeline.commands.messages.apis import kafka_api_key
from pipeline.commands.messages.explain_exchange import find_exchange, show_exchange
from pipeline.commands.messages.explain_offset import Place, show_offset
from pipeline.commands.messages.failures import Failures, one_message
from pipeline.commands.messages.messages import ordered_frames
from pipeline.commands.messages.tree import print_sentence, show_head, show_message, terminal
from pipeline.commands.unjudged import warn_of_errors
from pipeline.config.common_options import Conf
from pipeline.config.settings import load_settings
from pipeline.errors import UserError
from pipeline.humanize import pluralize
from pipeline.terminal.console import Console, json_line
from pipeline.terminal.pager import paged

_Subject = tuple[WireProtocol, Pasted]
"""A protocol, and a message to explain."""


def explain(
    file: Annotated[str | None, typer.Argument(help="Capture to take the message from.")] = None,
    frame: Annotated[
        int | None, typer.Option("--frame", min=1, help="Its number, as `wirelake decode` shows it.")
    ] = None,
    exchange: Annotated[
        bool, typer.Option("--exchange", help="With --frame: request and response, beside each other if there is room.")
    ] = False,
    follow_offset: Annotated[
        tuple[str, int, int] | None,
        typer.Option(
            metavar="TOPIC PARTITION OFFSET", help="Of a capture: every message that speaks of this offset, in words."
        ),
    ] = None,
    hex_text: Annotated[
        str | None,
        typer.Option("--hex", help="Bytes instead of a file: hex, or a dump with offsets; '-' reads them from stdin."),
    ] = None,
    protocol: Annotated[
        str | None, typer.Option(help="With --hex: kafka or mongodb; by default recognised by the bytes.")
    ] = None,
    direction: Annotated[
        str | None,
        typer.Option(help="With --hex: request (by default) or response. A MongoDB message carries it."),
    ] = None,
    api_key: Annotated[
        str | None, typer.Option(help="With --hex of a response: the request's api, by key or name.")
    ] = None,
    api_version: Annotated[int | None, typer.Option(help="With --hex of a response: the request's version.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a field.")] = False,
    tls_keylog: TlsKeyLog = None,
    tls_embedded_keys: TlsEmbeddedKeys = False,
    conf: Conf = None,
) -> None:
    """Explain one message of a capture, byte by byte.

    If a message does not decode, the first byte that makes no sense is named.

    --follow-offset lists who wrote the record, who fetched it, and who committed it or was refused. A commit of an
    offset concerns that record (the next to read) and the one before it (read).

    Takes plain hex, 0x…, and dumps of xxd, hexdump, od, tcpdump -X and Wireshark, with or without Kafka's length
    prefix. Words of two, four or eight bytes (plain hexdump, od -x, xxd -e) are put back into wire order. The content
    of a compressed MongoDB message is shown below it.

    The exit code is 2 if there is no such message, or if the input is not hex; a message that does not decode is shown
    up to the byte that fails.

    Examples:

      wirelake explain incident.pcap --frame 42

      wirelake explain incident.pcap --frame 42 --exchange

      wirelake explain incident.pcap --follow-offset payments 2 24

      wirelake explain --hex '00 12 00 00 00 00 00 07 00 04 64 65 6d 6f'

      xxd message.bin | wirelake explain --hex -

      wirelake explain --hex "$BYTES" --direction response --api-key Fetch --api-version 17

      wirelake explain --hex "$(xxd -p message.bin)" --protocol mongodb
    """
    _refuse_what_is_idle(
        {"--frame": frame, "--follow-offset": follow_offset, "--hex": hex_text},
        of_capture={"FILE": file, "--tls-keylog": tls_keylog, "--tls-embedded-keys": tls_embedded_keys or None},
        of_bytes={
            "--protocol": protocol, "--direction": direction, "--api-key": api_key, "--api-version": api_version,
        },
        exchange=exchange,
    )  # fmt: skip
    work = load_settings(conf).work.limits()
    capture = _Capture(file, tls_keylog, tls_embedded_keys, work) if file is not None else None
    if capture is not None and (follow_offset is not None or (exchange and frame is not None)):
        with paged(not as_json):
            if follow_offset is not None:
                _follow_offset(capture, Place(*follow_offset), as_json=as_json)
            else:
                _exchange(capture, frame or 0, as_json=as_json)
        return
    codec = Codec()
    if hex_text is not None:
        given = Context(api_key=_key(api_key), api_version=api_version)
        spoken, subject = _pasted(_standard_input() if hex_text == "-" else hex_text, protocol, direction, given, codec)
    elif capture is not None and frame is not None:
        spoken, subject = _captured(capture, frame)
    else:
        raise UserError(
            "name a capture and --frame N or --follow-offset, or paste bytes with --hex; see `wirelake explain --help`"
        )
    with one_message(frame or 1, None):
        explanation = spoken.explain(subject.frame, subject.context, codec)
        if as_json:
            for line in as_objects(explanation):
                sys.stdout.buffer.write(json_line(line))
            sys.stdout.flush()
        else:
            with paged(file is not None):
                _show(explanation, spoken, subject, codec)


def _refuse_what_is_idle(
    subjects: Mapping[str, object],
    *,
    of_capture: Mapping[str, object],
    of_bytes: Mapping[str, object],
    exchange: bool,
) -> None:
    """Refuse what would be ignored beside something else; None stands for what was not given.

    Raises:
        UserError: more than one thing is to be explained, or an option has nothing to say of it.
    """
    asked = _given(subjects)
    if len(asked) > 1:
        raise UserError(f"{' and '.join(asked)} exclude each other: give one of them")
    if not asked:
        return
    is_bytes = asked == ["--hex"]
    if is_bytes and (idle := _given(of_capture)):
        raise UserError(f"{idle[0]} is of a capture, and says nothing of the bytes of --hex: leave one of them out")
    if not is_bytes and (idle := _given(of_bytes)):
        raise UserError(f"{idle[0]} needs --hex, and says nothing of {asked[0]}")
    if exchange and asked != ["--frame"]:
        raise UserError(f"--exchange needs --frame, and says nothing of {asked[0]}")


def _given(options: Mapping[str, object]) -> list[str]:
    return [name for name, value in options.items() if value is not None]


@dataclass(frozen=True, slots=True)
class _Capture:
    """A capture, and how it is read."""

    path: str
    tls_keylog: str | None
    tls_embedded_keys: bool
    work: WorkLimits

    def frames(self, stats: CaptureStats | None = None) -> Iterator[Frame]:
        """Its frames, as `wirelake decode` counts them."""
        return ordered_frames(
            [self.path],
            allow_truncated=True,
            tls_keylog=self.tls_keylog,
            tls_embedded_keys=self.tls_embedded_keys,
            work=self.work,
            stats=stats,
        )


def _exchange(capture: _Capture, number: int, *, as_json: bool) -> None:
    stats = CaptureStats()
    halves, count = find_exchange(capture.frames(stats), number)
    if not halves:
        raise _no_frame(capture.path, number, count, stats)
    with one_message(number, halves[0][1].exchange_id):
        show_exchange(halves, as_json=as_json)


def _follow_offset(capture: _Capture, place: Place, *, as_json: bool) -> None:
    failures = Failures()
    path, (found, count, why) = capture.path, show_offset(capture.frames(), place, failures, as_json=as_json)
    has_failed = warn_of_errors(failures.errors, Console(stderr=True))
    if not found:
        command = f"wirelake decode {quote(path)} --topic {quote(place.topic)} --partition {place.partition}"
        raise UserError(
            f"none of the {pluralize(count, 'message')} of {path} speaks of offset {place.offset} of {place.topic}-"
            f"{place.partition}; {why or f'`{command}` lists those that name the partition'}"
        )
    if has_failed:
        raise typer.Exit(2)


def _no_frame(path: str, number: int, count: int, stats: CaptureStats) -> UserError:
    hint = f"; {KEYS_UNUSED}" if stats.unused_keys else ""
    lists = f"`wirelake decode {quote(path)}` lists them"
    return UserError(f"{path} holds {pluralize(count, 'message')}, there is no frame {number}; {lists}{hint}")


def _standard_input() -> str:
    if sys.stdin is None:
        raise UserError("--hex -: standard input is closed")
    return sys.stdin.read()


def _key(text: str | None) -> int | None:
    """An api by its key or name."""
    key = None if text is None else kafka_api_key(text)
    if text is not None and key is None:
        raise UserError(f"no Kafka api is called {text!r}; give its key or its name, e.g. 1 or Fetch")
    return key


def _pasted(text: str, protocol: str | None, direction: str | None, context: Context, codec: Codec) -> _Subject:
    """The protocol and message of a text."""
    known = protocols()
    if protocol is not None and protocol not in known:
        raise UserError(f"--protocol is {' or '.join(known)}, not {protocol!r}")
    if direction not in (None, "request", "response"):
        raise UserError(f"--direction is request or response, not {direction!r}")
    side: Direction = "response" if direction == "response" else "request"
    try:
        return choose_reading(
            readings(text), context._replace(direction=side), codec, protocol=protocol,
            is_direction_given=direction is not None,
        )  # fmt: skip
    except PasteError as error:
        raise UserError(f"--hex: {error}") from error
    except MissingContextError as error:
        raise UserError(str(error)) from error


def _captured(capture: _Capture, number: int) -> _Subject:
    count, stats = 0, CaptureStats()
    for count, item in enumerate(capture.frames(stats), start=1):
        if count == number:
            context = Context(item.direction, item.api_key, item.api_version, item.flags)
            return protocol_of(item.protocol), Pasted(item.frame, context)
    raise _no_frame(capture.path, number, count, stats)


def _show(explanation: Explanation, spoken: WireProtocol, subject: Pasted, codec: Codec) -> None:
    console = terminal()
    show_head(explanation, spoken, subject, console)
    for remark in subject.remarks:
        print_sentence(f"note: {remark}", "yellow", console)
    show_message(explanation, subject.frame, subject.base, console)
    for advice in spoken.advise(explanation, subject, codec):
        print_sentence(f"→ {advice}", "", console)
