"""``wirelake explain``: one message, field by field, with the bytes beside it."""

from __future__ import annotations

import re
import sys
from typing import Annotated, Literal

import orjson
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from decoder.explain import Explanation, as_objects, split_length_prefix
from decoder.explain import explain as explain_frame
from pipeline.commands.messages import ordered_frames
from pipeline.errors import UserError


def explain(
    file: Annotated[str | None, typer.Argument(help="Capture to take the message from.")] = None,
    frame: Annotated[
        int | None, typer.Option("--frame", min=1, help="Its number, as `wirelake decode` shows it.")
    ] = None,
    hex_text: Annotated[
        str | None, typer.Option("--hex", help="Bytes in hex instead of a file; '-' reads them from stdin.")
    ] = None,
    direction: Annotated[str, typer.Option(help="With --hex: request or response.")] = "request",
    api_key: Annotated[int | None, typer.Option(help="With --hex of a response: the request's api key.")] = None,
    api_version: Annotated[int | None, typer.Option(help="With --hex of a response: the request's version.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a field.")] = False,
) -> None:
    """Show what each byte of one message means, and the exact byte where it stops making sense.

    Examples:

      wirelake explain incident.pcap --frame 42

      wirelake explain --hex '00 12 00 00 00 00 00 07 00 04 64 65 6d 6f'

      wirelake explain --hex "$BYTES" --direction response --api-key 1 --api-version 17
    """
    remark = None
    if hex_text is not None:
        explanation, remark = _from_hex(hex_text, direction, api_key, api_version)
    elif file is not None and frame is not None:
        explanation = _from_capture(file, frame)
    else:
        raise UserError("name a capture and --frame N, or paste bytes with --hex; see `wirelake explain --help`")
    if as_json:
        for line in as_objects(explanation):
            sys.stdout.buffer.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
        sys.stdout.flush()
    else:
        _show(explanation, remark)


def _from_hex(
    text: str, direction: str, api_key: int | None, api_version: int | None
) -> tuple[Explanation, str | None]:
    if direction not in ("request", "response"):
        raise UserError(f"--direction is request or response, not {direction!r}")
    if text == "-":
        text = sys.stdin.read()
    digits = re.sub(r"0x|[\s:,]", "", text)
    try:
        data = bytes.fromhex(digits)
    except ValueError as error:
        raise UserError(f"--hex takes pairs of hex digits (spaces, colons, commas and 0x are fine): {error}") from error
    side: Literal["request", "response"] = "request" if direction == "request" else "response"
    if side == "response" and (api_key is None or api_version is None):
        raise UserError("a Kafka response does not name its api: add --api-key and --api-version of its request")
    remark = None
    if side == "request":
        data, remark = split_length_prefix(data)
    elif len(data) > 4 and int.from_bytes(data[:4], "big") == len(data) - 4:
        data = data[4:]
    return explain_frame(data, side, api_key, api_version), remark


def _from_capture(path: str, number: int) -> Explanation:
    count = 0
    for count, item in enumerate(ordered_frames([path], allow_truncated=True), start=1):
        if count == number:
            return explain_frame(item.frame, item.direction, item.api_key, item.api_version, item.flags)
    raise UserError(f"{path} holds {count} messages, there is no frame {number}; `wirelake decode {path}` lists them")


def _show(explanation: Explanation, remark: str | None) -> None:
    console = Console()
    message = explanation.message
    name = message.api_name or "unknown api"
    console.print(Text(f"{name} v{message.api_version} — {message.status}", "bold"))
    if remark:
        console.print(Text(f"note: {remark}", "yellow"))
    table = Table(box=None, pad_edge=False)
    for title in ("bytes", "hex", "field", "type", "value"):
        table.add_column(title, overflow="fold", no_wrap=title in ("bytes",))
    for line in explanation.lines:
        where = f"{line.start}-{line.end - 1}" if line.end > line.start + 1 else str(line.start)
        style = "bold red" if line.is_error else ""
        marker = "✗ " if line.is_error else ""
        table.add_row(where, line.hex, "  " * line.depth + marker + line.name, line.type, Text(line.value), style=style)
    console.print(table)
    if message.error_offset is not None and message.status not in ("ok", "redacted"):
        console.print(Text(f"stopped at byte {message.error_offset}: {message.error_detail}", "bold red"))
