"""``wirelake explain --exchange``: a request and its response, beside each other where there is room."""

from __future__ import annotations

import io
import sys
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import zip_longest

from rich.text import Text

from decoder import Codec, Frame
from decoder.explain.explanation import Explanation, as_objects
from decoder.protocol import Context, Pasted
from decoder.protocols import protocol_of
from pipeline.capture.sessions.pending_requests import HOLD_FRAMES
from pipeline.commands.messages.descriptions import Describers
from pipeline.commands.messages.message_lines import MessageLines
from pipeline.commands.messages.messages import MessageReader
from pipeline.commands.messages.tree import show_head, show_message, terminal
from pipeline.terminal.console import Console, json_line
from pipeline.terminal.lines import Lines

_BESIDE = 160
"""Columns from which on both halves are beside each other."""

Numbered = tuple[int, Frame]


def find_exchange(frames: Iterable[Frame], number: int) -> tuple[list[Numbered], int]:
    """The frame of this number (from 1) with the other half of its exchange, if that is there; and frames looked at."""
    waiting: OrderedDict[str, Numbered] = OrderedDict()
    found: Numbered | None = None
    count = 0
    for count, frame in enumerate(frames, start=1):
        name = frame.exchange_id
        if found is not None and name == found[1].exchange_id:
            return [found, (count, frame)], count
        before = waiting.pop(name, None) if name is not None else None
        if count == number:
            if name is None or before is not None:
                return [*([before] if before else []), (count, frame)], count
            found = count, frame
        elif found is None and name is not None and frame.direction == "request":
            waiting[name] = count, frame
            if len(waiting) > HOLD_FRAMES:
                waiting.popitem(last=False)
    return ([found] if found is not None else []), count


def show_exchange(halves: list[Numbered], *, as_json: bool) -> None:
    """Print an exchange: in one line, then both halves field by field."""
    codec = Codec()
    explained = [(number, frame, _explain(frame, codec)) for number, frame in halves]
    if as_json:
        for number, frame, explanation in explained:
            for line in as_objects(explanation):
                sys.stdout.buffer.write(json_line({"frame": number, "direction": frame.direction, **line}))
        sys.stdout.flush()
        return
    _print_lines(halves)
    console = terminal()
    beside = console.width >= _BESIDE and not console.soft_wrap and len(halves) > 1
    width = (console.width - 3) // 2 if beside else console.width
    shown = []
    for number, frame, explanation in explained:
        written = io.StringIO()
        target = Console(
            file=written, width=width, soft_wrap=console.soft_wrap, force_terminal=console.is_terminal,
            no_color=console.no_color,
        )  # fmt: skip
        subject = Pasted(frame.frame, Context(frame.direction, frame.api_key, frame.api_version, frame.flags))
        show_head(explanation, protocol_of(frame.protocol), subject, target, f"#{number} ")
        show_message(explanation, frame.frame, 0, target)
        shown.append(Text.from_ansi(written.getvalue()))
    if beside:
        console.print()
        for row in _beside(shown[0], shown[1], width):
            console.print(row, soft_wrap=True)
        return
    for text in shown:
        console.print()
        console.print(text, soft_wrap=True)


def _beside(left: Text, right: Text, width: int) -> Iterator[Text]:
    for one, other in zip_longest(left.split("\n"), right.split("\n"), fillvalue=Text()):
        line = one.copy()
        line.truncate(width, pad=True)
        line.append("   ").append_text(other)
        line.rstrip()
        yield line


def _explain(frame: Frame, codec: Codec) -> Explanation:
    context = Context(frame.direction, frame.api_key, frame.api_version, frame.flags)
    return protocol_of(frame.protocol).explain(frame.frame, context, codec)


def _print_lines(halves: list[Numbered]) -> None:
    """The exchange in the lines of ``wirelake decode``."""
    reader, describers = MessageReader(keeps_requests=True), Describers()
    lines = MessageLines(Lines(), describers)
    for number, frame in halves:
        item = replace(reader.read(frame), number=number)
        describers.note(item)
        lines.write(item)
