"""An explained message: one line a field, never wrapped, and the bytes around an error."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Mapping
from typing import Any

from rich.text import Text

from decoder import Codec
from decoder.explain.explanation import BATCH, MESSAGE, Explanation, Line
from decoder.explain.frame import explain
from decoder.kafka.explain.repair import path_text
from decoder.model import Message
from decoder.protocol import Pasted, WireProtocol
from decoder.protocols import protocol_of
from pipeline.terminal.console import Console, printable

_NO_TERMINAL = 140
"""Columns when the output goes to a file or a pipe."""
_VALUE = 14
"""Columns that the values get at least, the names giving way."""
_GAP = "  "
_ROW = 16
MOST_FRAME = 256 * 1024
"""Bytes of a frame that is explained while somebody waits, and of what is compressed in it."""
MOST_FIELDS = 1000
"""Fields that are shown of it."""


def terminal() -> Console:
    """Standard output; its sentences are broken only where it has a width to break them to."""
    width = shutil.get_terminal_size((0, 0)).columns
    return Console(width=width or _NO_TERMINAL, soft_wrap=not width)


def show_head(
    explanation: Explanation, spoken: WireProtocol, subject: Pasted, console: Console, before: str = ""
) -> None:
    """Print what a message is; ``before`` is in front of it."""
    message = explanation.message
    name = printable(message.api_name or "") or spoken.kind_of(message)
    version = "" if message.api_version is None else f" v{message.api_version}"
    behind = ", behind a length prefix" if subject.declared is not None else ""
    size = len(subject.frame)
    console.print(
        Text(f"{before}{name}{version} {subject.context.direction}, {size} bytes{behind}: {message.status}", "bold"),
        soft_wrap=True,
    )


def show_message(explanation: Explanation, frame: bytes, base: int, console: Console, most: int | None = None) -> None:
    """Print the fields of a message, where its decoding stopped, and the message that came compressed in it.

    Args:
        explanation: of ``frame``.
        frame: the message's bytes.
        base: where it begins in what was pasted.
        console: where to; fields are cut to its width, and sentences broken unless it wraps softly.
        most: fields that are printed of each message, the first and the last ones; None: all.
    """
    _show_fields(explanation, console, most)
    _show_error(explanation, frame, base, console)
    inside = explanation.inside
    if inside is not None:
        console.print()
        title = f"Uncompressed, as if sent by itself, {inside.size} bytes: {inside.message.status}"
        console.print(Text(title, "bold"), soft_wrap=True)
        _show_fields(inside, console, most)
        _show_error(inside, inside.frame, 0, console)


def _show_fields(explanation: Explanation, console: Console, most: int | None) -> None:
    """Byte range, hex, name (indented), type, value."""
    width = console.width
    lines = fields_of(explanation)
    left_out = len(lines) - most if most is not None and len(lines) > most else 0
    kept = (len(lines) - left_out) // 2
    shown = [*lines[:kept], *lines[kept + left_out :]] if left_out else lines
    rows = [cells_of(line, 16 if width >= 120 else 8 if width >= 100 else 4) for line in shown]
    titles = ("bytes", "hex", "field", "type", "value")
    columns = list(zip(titles, *rows, strict=True))
    sizes = [max(map(len, column)) for column in columns]
    sizes[2] = max(len(row[2]) for row in (titles, *rows) if row[3])  # headings may run on to the right
    others = sizes[0] + sizes[1] + sizes[3] + 4 * len(_GAP)
    sizes[2] = min(sizes[2], max(12, width - others - _VALUE))
    for index, row in enumerate((titles, *rows)):
        if left_out and index == kept + 1:
            console.print(Text(f"… {left_out:,} more fields …", "dim"), soft_wrap=True)
        style = "dim" if index == 0 else "bold red" if row[2].lstrip().startswith("✗") else ""
        console.print(_row(row, sizes, width, style), soft_wrap=True)


def _show_error(explanation: Explanation, frame: bytes, base: int, console: Console) -> None:
    """Where decoding stopped, with the bytes around it; ``base``: where the message begins in what was pasted."""
    text, at = error_of(explanation.message, base), explanation.message.error_offset
    if not text or at is None:
        return
    console.print()
    print_sentence(text, "bold red", console)
    _show_bytes(frame, at, base, console)


def _show_bytes(frame: bytes, offset: int, base: int, console: Console) -> None:
    """Print the bytes around ``offset`` of a frame, as a dump with a mark below it; ``base`` is added to offsets."""
    row = (offset + base) // _ROW * _ROW - base
    for start in range(max(row - _ROW, -base), row + 2 * _ROW, _ROW):
        if start >= len(frame) and start > row:
            break
        cells = [
            f"{frame[at]:02x}" if 0 <= at < len(frame) else "  " for at in range(start, start + _ROW)
        ]  # fmt: skip
        letters = "".join(
            chr(frame[at]) if 0x20 <= frame[at] < 0x7F else "." for at in range(max(start, 0), start + _ROW)
            if at < len(frame)
        )  # fmt: skip
        pad = " " * max(0, -start)
        text = f"  {start + base:04x}  {' '.join(cells[:8])}  {' '.join(cells[8:])}  {pad}{letters}"
        console.print(Text(text.rstrip(), "dim"), soft_wrap=True)
        if start == row:
            column = offset - row
            console.print(Text(" " * (8 + 3 * column + (column >= 8)) + "^^", "bold red"), soft_wrap=True)


def print_sentence(text: str, style: str, console: Console) -> None:
    """Print a sentence, broken between words to the console's width unless it wraps softly."""
    text = printable(text)
    whole = console.soft_wrap
    shown = text if whole else textwrap.fill(text, console.width, subsequent_indent="  ", break_on_hyphens=False)
    console.print(Text(shown, style), soft_wrap=True)


def fields_of(explanation: Explanation) -> list[Line]:
    """Its lines without the outer error, which is shown below the fields, with the bytes around it."""
    return [line for line in explanation.lines if not (line.is_error and line.depth == 0)]


def error_of(message: Message, base: int = 0) -> str:
    """Where decoding stopped and why, in a sentence; empty: it did not."""
    if message.error_offset is None or message.status in ("ok", "redacted"):
        return ""
    at = message.error_offset
    pasted = f" ({at + base:#06x} of what was pasted)" if base else ""
    field = f" in {path_text(message.error_path)}" if message.error_path else ""
    return f"stopped at byte {at}{pasted}{field}: {message.error_detail} [{message.error_code}]"


def explained_row(frame: Mapping[str, Any]) -> Explanation | None:
    """Each field of a row of ``bronze.frames``; None: it is too long to explain while somebody waits."""
    if is_long(frame["frame"], frame["protocol"]):
        return None
    return explain(
        frame["frame"], frame["direction"], frame["api_key"], frame["api_version"], frame["flags"], Codec(),
        protocol=frame["protocol"],
    )  # fmt: skip


def is_long(frame: bytes, protocol: str) -> bool:
    """Whether a frame, or what is compressed in it, has more bytes than are explained while somebody waits."""
    return max(len(frame), protocol_of(protocol).size_when_read(frame)) > MOST_FRAME


def cells_of(line: Line, hex_bytes: int) -> tuple[str, str, str, str, str]:
    """Byte range, hex of the first bytes, name (indented), type and value of a field, printable."""
    where = f"{line.start}-{line.end - 1}" if line.end > line.start + 1 else str(line.start)
    shown = line.hex.split()
    digits = line.hex if len(shown) <= hex_bytes else " ".join(shown[:hex_bytes]) + " …"
    name = "  " * line.depth + ("✗ " if line.is_error else "") + printable(line.name)
    value = printable(line.value)
    if line.type == MESSAGE:
        return where, digits, f"{name} ({value})", "", ""
    if line.name == BATCH:
        return where, digits, f"{name} {line.type}: {value}", "", ""
    return where, digits, name, line.type, value


def _row(row: tuple[str, ...], sizes: list[int], width: int, style: str) -> Text:
    text, used = Text(style=style), 0
    if not row[3]:
        lead = "".join(cell.ljust(size) + _GAP for cell, size in zip(row[:2], sizes, strict=False))
        return Text.assemble((lead, "dim"), (_cut(row[2], max(width - len(lead), 1)), "bold"))
    for index, (cell, size) in enumerate(zip(row[:-1], sizes[:-1], strict=True)):
        shown = _cut(cell, size)
        text.append(shown.ljust(size) + _GAP, "" if style or index == 2 else "dim")
        used += size + len(_GAP)
    text.append(_cut(row[-1], max(width - used, 1)))
    text.rstrip()
    return text


def _cut(text: str, size: int) -> str:
    return text if len(text) <= size else text[: size - 1] + "…"
