"""``wirelake explain``: one message, field by field, with the bytes beside it."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Annotated

import typer
from rich.text import Text

from decoder import Codec, Message
from decoder.advice import advise
from decoder.codec import PROTOCOLS
from decoder.detect import cut_mongodb, is_mongodb
from decoder.explain import Explanation, as_objects
from decoder.explain import explain as explain_frame
from decoder.guess import guess_response
from decoder.model import Direction
from decoder.paste import PasteError, read_paste
from decoder.prefix import SIZE, split_length_prefix
from pipeline.capture.cli import TlsEmbeddedKeys, TlsKeyLog
from pipeline.capture.runs.summary import KEYS_UNUSED
from pipeline.capture.stats import CaptureStats
from pipeline.commands.apis import kafka_api_key
from pipeline.commands.messages import ordered_frames
from pipeline.commands.tree import say, show_message, terminal
from pipeline.errors import UserError
from pipeline.settings import load_settings
from pipeline.terminal import Console, json_line, printable

_GUESSES = 5


@dataclass(frozen=True, slots=True)
class _Subject:
    """A message to explain.

    Attributes:
        base: where it begins in what was pasted.
        declared: bytes that the length prefix in front of it announces, None if there is none.
        remarks: what there is to say of the bytes around it.
    """

    frame: bytes
    direction: Direction
    api_key: int | None
    api_version: int | None
    flags: int = 0
    protocol: str = "kafka"
    base: int = 0
    declared: int | None = None
    remarks: tuple[str, ...] = ()


def explain(
    file: Annotated[str | None, typer.Argument(help="Capture to take the message from.")] = None,
    frame: Annotated[
        int | None, typer.Option("--frame", min=1, help="Its number, as `wirelake decode` shows it.")
    ] = None,
    hex_text: Annotated[
        str | None,
        typer.Option("--hex", help="Bytes instead of a file: hex, or a dump with offsets; '-' reads them from stdin."),
    ] = None,
    protocol: Annotated[
        str | None, typer.Option(help="With --hex: kafka or mongodb; by default as the bytes tell.")
    ] = None,
    direction: Annotated[
        str | None,
        typer.Option(help="With --hex: request (by default) or response. A MongoDB message tells it by itself."),
    ] = None,
    api_key: Annotated[
        str | None, typer.Option(help="With --hex of a response: the request's api, by key or name.")
    ] = None,
    api_version: Annotated[int | None, typer.Option(help="With --hex of a response: the request's version.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a field.")] = False,
    tls_keylog: TlsKeyLog = None,
    tls_embedded_keys: TlsEmbeddedKeys = False,
) -> None:
    """Show what each byte of one message means, and the exact byte where it stops making sense.

    Takes plain hex, 0x…, and dumps of xxd, hexdump -C, tcpdump -X and Wireshark, with or without Kafka's length prefix.
    What stands compressed in a MongoDB message is shown below it.

    Examples:

      wirelake explain incident.pcap --frame 42

      wirelake explain --hex '00 12 00 00 00 00 00 07 00 04 64 65 6d 6f'

      xxd message.bin | wirelake explain --hex -

      wirelake explain --hex "$BYTES" --direction response --api-key Fetch --api-version 17

      wirelake explain --hex "$(xxd -p message.bin)" --protocol mongodb
    """
    codec = Codec()
    if hex_text is not None:
        subject = _pasted(
            _standard_input() if hex_text == "-" else hex_text, protocol, direction, _key(api_key), api_version, codec
        )
    elif file is not None and frame is not None:
        subject = _captured(file, frame, tls_keylog, tls_embedded_keys)
    else:
        raise UserError("name a capture and --frame N, or paste bytes with --hex; see `wirelake explain --help`")
    explanation = explain_frame(
        subject.frame,
        subject.direction,
        subject.api_key,
        subject.api_version,
        subject.flags,
        codec,
        protocol=subject.protocol,
    )
    if as_json:
        for line in as_objects(explanation):
            sys.stdout.buffer.write(json_line(line))
        sys.stdout.flush()
    else:
        _show(explanation, subject, codec)


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


def _pasted(
    text: str, protocol: str | None, direction: str | None, api_key: int | None, api_version: int | None, codec: Codec
) -> _Subject:
    if protocol not in (None, *PROTOCOLS):
        raise UserError(f"--protocol is {' or '.join(PROTOCOLS)}, not {protocol!r}")
    if direction not in (None, "request", "response"):
        raise UserError(f"--direction is request or response, not {direction!r}")
    try:
        paste = read_paste(text)
    except PasteError as error:
        raise UserError(f"--hex: {error}") from error
    remarks = []
    if paste.skipped:
        remarks.append(f"the first {paste.skipped} bytes are headers of the packet and were skipped")
    side: Direction = "response" if direction == "response" else "request"
    if protocol == "mongodb" or (protocol is None and api_key is None and is_mongodb(paste.data)):
        cut = cut_mongodb(paste.data)
        told = side if direction is not None else cut.direction
        remarks += [cut.remark] if cut.remark else []
        return _Subject(cut.frame, told, None, None, 0, "mongodb", paste.skipped, None, tuple(remarks))
    if side == "response" and (api_key is None or api_version is None):
        raise UserError(_how_to_name(paste.data, api_key, codec))
    split = split_length_prefix(paste.data, side, api_key, api_version, codec)
    if split.remark:
        remarks.append(split.remark)
    base = paste.skipped + (0 if split.declared is None else SIZE)
    return _Subject(split.frame, side, api_key, api_version, 0, "kafka", base, split.declared, tuple(remarks))


def _how_to_name(data: bytes, api_key: int | None, codec: Codec) -> str:
    """What to add for a response, with what it may be."""
    text = "a Kafka response does not name its api: add --api-key and --api-version of its request"
    declared = int.from_bytes(data[:SIZE], "big")
    frame = data[SIZE:] if declared == len(data) - SIZE else data
    found = [one for one in guess_response(frame, codec) if api_key in (None, one.api_key)]
    if not found:
        return f"{text}. No known response fits these bytes: they may be cut off, or more than one message"
    lines = [f"{text}. These fit to the last byte, the likeliest first:"]
    for one in found[:_GUESSES]:
        first, last = one.versions[0], one.versions[-1]
        versions = f"v{last}" if first == last else f"v{first} to v{last}"
        lines.append(f"  {one.api_name + ' ' + versions:<34} --api-key {one.api_key} --api-version {last}")
    if len(found) > _GUESSES:
        lines.append(f"  and {len(found) - _GUESSES} more")
    return "\n".join(lines)


def _captured(path: str, number: int, tls_keylog: str | None, tls_embedded_keys: bool) -> _Subject:
    count, stats = 0, CaptureStats()
    frames = ordered_frames(
        [path],
        allow_truncated=True,
        tls_keylog=tls_keylog,
        tls_embedded_keys=tls_embedded_keys,
        work=load_settings().work,
        stats=stats,
    )
    for count, item in enumerate(frames, start=1):
        if count == number:
            return _Subject(item.frame, item.direction, item.api_key, item.api_version, item.flags, item.protocol)
    hint = f"; {KEYS_UNUSED}" if stats.unused_keys else ""
    raise UserError(
        f"{path} holds {count} messages, there is no frame {number}; `wirelake decode {path}` lists them{hint}"
    )


def _show(explanation: Explanation, subject: _Subject, codec: Codec) -> None:
    console = terminal()
    _head(explanation, subject, console)
    for remark in subject.remarks:
        say(f"note: {remark}", "yellow", console)
    show_message(explanation, subject.frame, subject.base, console)
    if subject.protocol == "mongodb":
        return
    for advice in advise(
        explanation,
        subject.frame,
        subject.direction,
        subject.api_key,
        subject.api_version,
        declared=subject.declared,
        codec=codec,
    ):
        say(f"→ {advice}", "", console)


def _head(explanation: Explanation, subject: _Subject, console: Console) -> None:
    message = explanation.message
    name = printable(message.api_name or "") or (
        "unknown api" if subject.protocol == "kafka" else _opcode_name(message)
    )
    version = "" if message.api_version is None else f" v{message.api_version}"
    behind = ", behind a length prefix" if subject.declared is not None else ""
    console.print(
        Text(f"{name}{version} {subject.direction}, {len(subject.frame)} bytes{behind}: {message.status}", "bold"),
        soft_wrap=True,
    )


def _opcode_name(message: Message) -> str:
    """Of a MongoDB message that does not tell its command."""
    return message.header.get("originalOpName") or message.header.get("opName") or "MongoDB"
