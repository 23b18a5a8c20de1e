"""A message as a line for people: as many columns as the terminal has room for, then what matters in its words."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone

from decoder.errors import ErrorCode
from pipeline.commands.messages.descriptions import Describers
from pipeline.commands.messages.messages import Decoded
from pipeline.commands.messages.tcp_events import Place, TcpEvent
from pipeline.terminal.console import printable
from pipeline.terminal.lines import Lines, Part, columns_of, cut

_PORTS, _MEDIUM, _WIDE = 100, 120, 160
"""Columns from which on a line has ports of named clients; versions, clients, servers; sizes and correlation ids."""
_ARROW = " → "
_ROOM = 48
"""Columns in which a question keeps its half beside an answer that is longer."""
_LEAST = 10
"""Columns of a question that still show something."""
_NAME = 15
"""Columns that the name of a client has on a narrow terminal, in place of its address."""
_MOST_NAMED = 10_000
"""Connections whose clients' names are kept."""
_STATUS_STYLES = {"ok": "green", "partial": "yellow", "redacted": "cyan"}


class MessageLines:
    """Writes messages as lines.

    Args:
        lines: where to; its width decides on the columns.
        describers: whose words to use.
    """

    def __init__(self, lines: Lines, describers: Describers) -> None:
        self._lines, self._describers = lines, describers
        width = lines.width or _WIDE
        self._is_wide, self._is_medium, self._has_ports = width >= _WIDE, width >= _MEDIUM, width >= _PORTS
        self._ends = 0
        self._names: dict[tuple[Place, Place], str] = {}
        self._second, self._clock = -1, ""

    def write(self, item: Decoded, remark: str = "") -> None:
        """Write a message; ``remark`` is before its words."""
        parts = list(self._front(item))
        message = item.message
        if remark:
            parts.append((printable(f"[{remark}] "), "cyan"))
        words = printable(self._describers.describe(item))
        if words:
            if self._lines.width:
                words = _fitting(words, self._lines.width - sum(columns_of(text) for text, _ in parts))
            is_wrong = item.frame.direction == "response" and self._describers.errors(item)
            parts.append((words, "yellow" if is_wrong else ""))
        if message.error_code is not None:
            problem = f"{' ' if words else ''}{message.status} {message.error_code} at byte {message.error_offset}"
            if message.error_code == ErrorCode.CONNECTION_CLOSED:
                problem += f": {message.error_detail}"
            parts.append((problem, _STATUS_STYLES.get(message.status, "red")))
        self._lines.write(parts)

    def _front(self, item: Decoded) -> Iterator[Part]:
        """What all messages have."""
        frame, message = item.frame, item.message
        is_request = frame.direction == "request"
        name = message.api_name or ("?" if message.api_key is None else f"api {message.api_key}")
        yield f"{item.number:>6} ", "dim"
        yield self._time(frame.ts), ""
        yield self._places(item), "dim"
        version = "" if message.api_version is None or not self._is_medium else f" v{message.api_version}"
        yield f"{name}{version} ", "bold" if is_request else ""
        if self._is_wide:
            number = "" if frame.correlation_id is None else f"#{frame.correlation_id} "
            yield f"{number}{frame.size} B ", "dim"
        if item.latency_us is not None:
            yield f"{took(item.latency_us, item.service_us, is_short=not self._is_medium)} ", "blue"
        if message.client_id and self._is_medium:
            yield f"{message.client_id!r} ", "magenta"

    def write_more(self, number: int, last: Decoded) -> None:
        """Write how many exchanges say the same as the one before, and when and where the last one was."""
        until = f"the last at {self._time(last.frame.ts).rstrip()}, message {last.number}"
        self._lines.write([(" " * 7, ""), (f"… {number:,} more that say the same, {until}", "dim")])

    def write_tcp(self, event: TcpEvent) -> None:
        """Write an event of TCP among the messages."""
        parts = [(" " * 7, ""), (self._time(event.ts), "")]
        parts.append((self._ends_of(event.client, event.server, is_request=event.is_of_client), "dim"))
        parts.append((event.flags, "red" if event.flags in ("RST", "ZERO WINDOW") else "cyan"))
        if event.alert:
            parts.append((f"{' ' if event.flags else ''}TLS alert {event.alert}", "red"))
        self._lines.write(parts)

    def _time(self, ts: int) -> str:
        second, micros = divmod(ts, 1_000_000)
        if second != self._second:
            self._second = second
            self._clock = datetime.fromtimestamp(second, timezone.utc).strftime("%H:%M:%S")
        return f"{self._clock}.{micros:06d} " if self._is_medium else f"{self._clock}.{micros // 1000:03d} "

    def _places(self, item: Decoded) -> str:
        frame = item.frame
        client, server = (frame.client_ip, frame.client_port), (frame.server_ip, frame.server_port)
        name = item.message.client_id or (item.request and item.request.client_id)
        if name and not self._is_medium:
            self._names[client, server] = printable(name)
            if len(self._names) > _MOST_NAMED:
                del self._names[next(iter(self._names))]
        return self._ends_of(client, server, is_request=frame.direction == "request")

    def _ends_of(self, client: Place, server: Place, *, is_request: bool) -> str:
        name = self._names.get((client, server))
        if name is None:
            end = f"{client[0]}:{client[1]}"
        else:
            end = f"{cut(name, _NAME)}:{client[1]}" if self._has_ports else cut(name, _NAME)
        ends = f"{end} {'→' if is_request else '←'}"
        if self._is_medium:
            ends = f"{ends} {server[0]}:{server[1]}"
        self._ends = max(self._ends, columns_of(ends))
        return f"{ends}{' ' * (self._ends - columns_of(ends))} "


_LEAST_WAIT_US = 100_000
"""Shorter waiting is not shown."""


def took(latency_us: int, service_us: int | None, *, is_short: bool) -> str:
    """How long a response took, and how long once its turn came, if most of that was waiting behind others."""
    text = _latency(latency_us, is_short=is_short)
    if service_us is None or latency_us - service_us < max(_LEAST_WAIT_US, service_us):
        return text
    return f"{text} ({_latency(service_us, is_short=is_short)} after its turn came)"


def _fitting(words: str, room: int) -> str:
    """The words in this many columns: what was asked, which is in the request's line, gives way to the answer."""
    asked, arrow, answer = words.partition(_ARROW)
    if not arrow or columns_of(words) <= room:
        return words
    left = room - columns_of(answer) - len(_ARROW)
    if room >= _ROOM:
        left = max(left, room // 2)
    if left < _LEAST:
        return f"{_ARROW}{answer}".lstrip()
    return f"{cut(asked, left) if room >= _ROOM else _cut_asked(asked, left)}{_ARROW}{answer}"


def _cut_asked(asked: str, columns: int) -> str:
    """What was asked in this many columns; where its last word ends there, an ellipsis would only hide that word."""
    whole = asked[:columns]
    return whole if asked[columns : columns + 1] == " " and columns_of(whole) == columns else cut(asked, columns)


def _latency(microseconds: int, *, is_short: bool) -> str:
    """``1.3 ms``, or as short as can be."""
    milliseconds = microseconds / 1000
    if is_short:
        return f"{milliseconds:.1f}ms" if milliseconds < 9.95 else f"{milliseconds:.0f}ms"
    return f"{milliseconds:.1f} ms"
