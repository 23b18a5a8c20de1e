"""What of a capture may reach a terminal or a log: names and values come from the wire, and with them what steers it.

Everything that this program shows goes through here, so that no command can forget to escape. ``Console`` is rich's,
made safe; ruff refuses rich's own elsewhere.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import orjson
from rich.console import Console as _Console
from rich.console import ConsoleOptions, RenderableType
from rich.segment import Segment

_SPACES = frozenset("\n\t")


def printable(text: str, keep: Iterable[str] = ()) -> str:
    """``text`` with an escape in place of each character that is not printable (CWE-150), line ends included.

    Not printable are control characters (C0, DEL, C1), line and paragraph separators, and format characters such as
    those that turn the direction of text (CVE-2021-42574), as Python's ``str.isprintable`` has it.

    Args:
        text: what is to be shown.
        keep: characters that stay, printable or not.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else repr(c)[1:-1] for c in text)


def printable_lines(text: str) -> str:
    """As :func:`printable`, of a text of ours that may have several lines."""
    return printable(text, _SPACES)


class Console(_Console):
    """A console on which nothing but its own styles can steer the terminal, whatever is drawn.

    Text is printed as it is: ``pip install '.[spark]'`` keeps its brackets, which Rich would read as a style.
    """

    def __init__(self, **options: Any) -> None:
        """See rich; without its markup and its names of emoji."""
        super().__init__(**{"markup": False, "emoji": False, **options})
        self._nesting = threading.local()

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """See rich: the pieces of text that anything becomes before it is written.

        Rich renders what a table or a group holds by this method too: what is outermost makes all of it safe at once.
        """
        if getattr(self._nesting, "is_inner", False):
            return super().render(renderable, options)
        self._nesting.is_inner = True
        try:
            segments = list(super().render(renderable, options))
        finally:
            self._nesting.is_inner = False
        return [_safe(segment) for segment in (segments if self.is_terminal else _unpadded(segments))]


def _safe(segment: Segment) -> Segment:
    if segment.control or segment.text.isprintable():
        return segment
    return Segment(printable_lines(segment.text), segment.style)


def _unpadded(segments: Iterable[Segment]) -> Iterator[Segment]:
    """The same without what fills a line to its end: a file, or what is copied out of it, needs no filled columns."""
    blanks: list[Segment] = []
    for segment in segments:
        if segment.control:
            yield segment
            continue
        for part in _LINE_END.split(segment.text):
            text = part.rstrip(" ")
            if text == "\n":
                blanks = []
            if text:
                yield from (*blanks, Segment(text, segment.style))
                blanks = []
            if text != part:
                blanks.append(Segment(part[len(text) :], segment.style))
    yield from blanks


_LINE_END = re.compile("(\n)")
_STEERS = re.compile(
    # DEL and C1; Arabic letter mark; Mongolian vowel separator; zero-width and bidirectional characters; line and
    # paragraph separators; byte order mark and interlinear annotations; musical, shorthand and tag characters
    "[\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U00013430-\U0001345f"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0001-\U000e007f]"
)


def json_line(value: Any, default: Callable[[Any], Any] | None = None, option: int = 0) -> bytes:
    """A value as a line of JSON in which no character steers a terminal: escapes that mean the same stand for them.

    Args:
        value: what is to be written.
        default, option: as of orjson.dumps.

    Raises:
        TypeError: a value that JSON has no form for.
    """
    data = orjson.dumps(value, default, option | orjson.OPT_APPEND_NEWLINE)
    if data.isascii() and b"\x7f" not in data:
        return data
    return _STEERS.sub(_escape, data.decode()).encode()


def _escape(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


class LogFormatter(logging.Formatter):
    """Formats log lines; a message stays one line."""

    def format(self, record: logging.LogRecord) -> str:
        """See logging."""
        return printable_lines(super().format(record))


def log_to_terminal() -> None:
    """Warnings go to standard error, a line each."""
    handler = logging.StreamHandler()
    handler.setFormatter(LogFormatter("%(message)s"))
    logging.basicConfig(handlers=[handler], level=logging.WARNING)
