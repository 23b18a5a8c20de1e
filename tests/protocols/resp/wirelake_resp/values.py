"""Where does a message end, and what is in it? A message of RESP is one value, or a line of words (inline command)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from decoder import limits
from decoder.work import METER

CRLF = b"\r\n"
LINES, BULKS = b"+-:_#,(", b"$!="
AGGREGATES, PAIRS = b"*~>%|", b"%|"
PUSH, ERROR = ord(">"), ord("-")
MAX_LINE = 64 * 1024
"""Bytes of a line; Redis' own limit of an inline command (PROTO_INLINE_MAX_SIZE)."""
MAX_DEPTH = 128


class MalformedError(Exception):
    """What is at byte ``at`` is no RESP."""

    def __init__(self, at: int, what: str) -> None:
        super().__init__(what)
        self.at = at


class Value(NamedTuple):
    """One value of a message.

    Attributes:
        kind: its first byte; 0 for a word of an inline command.
        start, end: all its bytes; of an aggregate those of its head alone. End exclusive.
        content, content_end: those of its text.
        depth: 0 for the outermost.
        size: elements of an aggregate, bytes of a text; -1 is null.
    """

    kind: int
    start: int
    end: int
    content: int
    content_end: int
    depth: int
    size: int


class Extent:
    """Finds the end of one message in a buffer that grows; continues where it was.

    Attributes:
        begin: where the message begins in the buffer.
    """

    def __init__(self, begin: int = 0, *, is_request: bool) -> None:
        self.begin = begin
        self._is_request = is_request
        self._at = begin
        self._left = 1

    def move(self, count: int) -> None:
        """The buffer lost its first ``count`` bytes, all of them before this message."""
        self.begin -= count
        self._at -= count

    def end(self, data: bytes | bytearray) -> int | None:
        """Offset in the buffer behind the message; None: more bytes are needed.

        Raises:
            MalformedError: this is no RESP.
        """
        if self._is_request and self._at == self.begin < len(data) and data[self._at] != ord("*"):
            return _end_of_inline(data, self._at)
        while self._left:
            if self._at >= len(data):
                return None
            kind = data[self._at]
            stop = _end_of_line(data, self._at)
            if stop is None:
                return None
            METER.units += 1
            behind = stop + 2
            if kind in AGGREGATES:
                self._left += max(_number(data, self._at, stop), 0) * (2 if kind in PAIRS else 1)
                self._left += kind == ord("|")  # attributes are before the value that they are of
            elif kind in BULKS:
                size = _number(data, self._at, stop)
                behind += size + 2 if size >= 0 else 0
                if behind - self.begin > limits.MAX_FRAME_BYTES:
                    raise MalformedError(self._at, "a text larger than a message may be")
                if behind > len(data):
                    return None
                if data[behind - 2 : behind] != CRLF and size >= 0:
                    raise MalformedError(behind - 2, "a text that does not end where its length says")
            self._at = behind
            self._left -= 1
            if self._left > limits.MAX_FRAME_BYTES:
                raise MalformedError(self._at, "more elements than a message may have")
        return self._at


def values(data: bytes, *, is_request: bool) -> Iterator[Value]:
    """The values of a message in the order of its bytes.

    Raises:
        MalformedError: it ends too early, or is no RESP. What was before it has come.
    """
    if is_request and data[:1] != b"*":
        yield from _words(data)
        return
    at, open_ends = 0, [1]
    while open_ends:
        if at >= len(data):
            raise MalformedError(at, "the message ends within a value")
        stop = _end_of_line(data, at)
        if stop is None:
            raise MalformedError(at, "the message ends within a line")
        METER.units += 1
        kind, depth = data[at], len(open_ends) - 1
        open_ends[-1] -= kind != ord("|")
        if kind in AGGREGATES:
            size = _number(data, at, stop)
            yield Value(kind, at, stop + 2, at + 1, stop, depth, size)
            if depth == MAX_DEPTH:
                raise MalformedError(at, f"more than {MAX_DEPTH} levels")
            open_ends.append(max(size, 0) * (2 if kind in PAIRS else 1))
            at = stop + 2
        elif kind in BULKS:
            size = _number(data, at, stop)
            begin = stop + 2
            end = begin + size + 2 if size >= 0 else begin
            if end > len(data):
                raise MalformedError(begin, "the message ends within a text")
            yield Value(kind, at, end, begin, begin + max(size, 0), depth, size)
            at = end
        else:
            yield Value(kind, at, stop + 2, at + 1, stop, depth, stop - at - 1)
            at = stop + 2
        while open_ends and open_ends[-1] <= 0:
            open_ends.pop()


def command_of(data: bytes) -> tuple[str, ...]:
    """The first two words of a request in capitals, as far as they are words: ``("CONFIG", "SET")``."""
    found = []
    try:
        for value in values(data, is_request=True):
            if value.kind in b"*":
                continue
            word = data[value.content : value.content_end]
            if not word.isalpha() or len(word) > _LONGEST_WORD:
                break
            found.append(word.decode().upper())
            if len(found) == 2:
                break
    except MalformedError:
        pass
    return tuple(found)


_LONGEST_WORD = 32


def _words(data: bytes) -> Iterator[Value]:
    end = _end_of_inline(data, 0)
    if end is None:
        raise MalformedError(len(data), "the line has no end")
    at, line_words = 0, data[:end].split()
    for number, word in enumerate(line_words, start=1):
        METER.units += 1
        at = data.index(word, at)
        behind = at + len(word)
        yield Value(0, at, end if number == len(line_words) else behind, at, behind, 1, len(word))
        at = behind


def _end_of_inline(data: bytes | bytearray, at: int) -> int | None:
    if not data[at : at + 1].isalpha():
        raise MalformedError(at, "neither an array nor a word")
    stop = data.find(b"\n", at, at + MAX_LINE)
    if stop < 0 and len(data) - at >= MAX_LINE:
        raise MalformedError(at, f"a line of more than {MAX_LINE} bytes")
    return None if stop < 0 else stop + 1


def _end_of_line(data: bytes | bytearray, at: int) -> int | None:
    """Where the line of a value ends, CRLF not included."""
    if data[at] not in LINES and data[at] not in BULKS and data[at] not in AGGREGATES:
        raise MalformedError(at, "no kind of value begins so")
    stop = data.find(CRLF, at, at + MAX_LINE)
    if stop < 0 and len(data) - at >= MAX_LINE:
        raise MalformedError(at, f"a line of more than {MAX_LINE} bytes")
    return None if stop < 0 else stop


def _number(data: bytes | bytearray, at: int, stop: int) -> int:
    text = bytes(data[at + 1 : stop])
    digits = text.removeprefix(b"-")
    if not digits.isdigit() or len(digits) > 10 or (len(digits) < len(text) and digits != b"1"):
        raise MalformedError(at, "a length that is no number")
    return int(text)
