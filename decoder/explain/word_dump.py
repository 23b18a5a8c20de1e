"""Dumps that show words instead of bytes: plain ``hexdump``, ``od``, ``xxd -e``; offsets in hex, octal or decimal.

These tools read each word as the machine does, so on nearly all machines its bytes are in reverse order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_LINE = re.compile(r"^\s*(?:0x)?([0-9a-fA-F]{4,16})(:?)(?:\s+(\S.*))?$")
_CELL = re.compile(r"\s*([0-9a-fA-F]+)(?=\s|$)")
_HEX = 16
_OFFSET_RADIX = (_HEX, 8, 10)
_LARGEST = 1 << 24
"""Bytes of a dump. A ``*`` that repeats a line may stand for any number."""


@dataclass(frozen=True, slots=True)
class Cell:
    """How a tool writes one word: digits, their base, and the bytes that it takes."""

    digits: int
    radix: int
    size: int


_CELL_FORMS = (
    Cell(2, 16, 1), Cell(4, 16, 2), Cell(8, 16, 4), Cell(16, 16, 8),
    Cell(3, 8, 1), Cell(6, 8, 2), Cell(11, 8, 4), Cell(22, 8, 8),
    Cell(5, 10, 2), Cell(8, 2, 1),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class WordDump:
    """The bytes of such a dump.

    Attributes:
        little, big: the bytes, if words are little-endian or big-endian.
        size: bytes in a word.
        is_little: what the text beside the words shows; None if there is no such text.
        padding: bytes of the last word that may not be of the data, since no offset shows where the dump ends.
        has_colons: offsets end with a colon, as xxd and tcpdump write them, which print bytes in their order.
    """

    little: bytes
    big: bytes
    size: int
    is_little: bool | None
    padding: int
    has_colons: bool


@dataclass(frozen=True, slots=True)
class _Row:
    """One line: the offset as it is written, and what follows it; ``rest`` is None for a ``*``."""

    offset: str
    rest: str | None


@dataclass(frozen=True, slots=True)
class _Words:
    """The words of one line in both orders, and the text beside them."""

    little: bytes
    big: bytes
    text: str


def read_word_dumps(lines: Sequence[str]) -> Iterator[WordDump]:
    """All ways to read the lines of a dump with an offset in front of each; none if they are none.

    There may be two: a ``*`` up to 0000100 stands for 64 bytes in od's octal offsets, for 256 in those of hexdump.
    """
    rows, colons = [], False
    for line in lines:
        match = None if line.strip() == "*" else _LINE.match(line)
        if match is None and line.strip() != "*":
            return
        rows.append(_Row("", None) if match is None else _Row(match[1], match[3] or ""))
        colons = colons or (match is not None and bool(match[2]))
    if not rows or rows[0].rest is None or (len(rows) == 1 and len(rows[0].offset) % 2 == 0 and not colons):
        return
    for form in _CELL_FORMS:
        for radix in _OFFSET_RADIX:
            if form.size > 1 or radix != _HEX or form.radix != _HEX:
                found = _read(rows, form, radix, has_colons=colons)
                if found is not None:
                    yield found


def _read(rows: Sequence[_Row], form: Cell, radix: int, *, has_colons: bool) -> WordDump | None:
    try:
        places = [None if row.rest is None else int(row.offset, radix) for row in rows]
    except ValueError:
        return None
    first = places[0] or 0
    little, big, last = bytearray(), bytearray(), _Words(b"", b"", "")
    verdicts: set[bool] = set()
    repeats = False
    for index, (row, place) in enumerate(zip(rows, places, strict=True)):
        if row.rest is None or place is None:
            repeats = True
            continue
        while repeats and last.little and len(little) < place - first <= _LARGEST:
            little += last.little
            big += last.big
        repeats = False
        following = places[index + 1] if index + 1 < len(places) else None
        words = _words(row.rest, form, None if following is None else following - place, may_be_short=has_colons)
        if place - first != len(little) or words is None:
            return None
        last = words
        little += last.little
        big += last.big
        if last.text and (is_little := _is_text_of(last.text, last.little)) != _is_text_of(last.text, last.big):
            verdicts.add(is_little)
    if not little or len(verdicts) > 1:
        return None
    padding = 0 if rows[-1].rest == "" or has_colons else padding_of(little, form.size)
    return WordDump(
        bytes(little), bytes(big), form.size, verdicts.pop() if verdicts else None, padding, has_colons
    )  # fmt: skip


def _words(rest: str, form: Cell, size: int | None, *, may_be_short: bool) -> _Words | None:
    """The words of a line, and the text beside them.

    Args:
        rest: the line behind its offset.
        form: of the words.
        size: bytes of the line, known from the next line's offset.
        may_be_short: whether the last word may have fewer digits, as xxd -e writes it.
    """
    little, big, pos = bytearray(), bytearray(), 0
    while (match := _CELL.match(rest, pos)) and (size is None or len(little) < size):
        if little and _is_text_of(rest[pos:], bytes(little)):
            break
        cell = match[1]
        is_short = may_be_short and form.radix == _HEX and len(cell) < form.digits and len(cell) % 2 == 0
        if len(cell) != form.digits and not is_short:
            break
        word = _number(cell, form.radix, len(cell) // 2 if is_short else form.size)
        if word is None:
            break
        little += word[::-1]
        big += word
        pos = match.end()
        if is_short:
            break
    if size is not None:
        if not 0 <= size <= len(little) or len(little) - size >= form.size:
            return None
        whole = size - size % form.size
        little, big = little[:size], big[:whole] + little[whole:size]
    text = rest[pos:].strip()
    is_read = not text or text[0] in "|>" or _is_text_of(text, bytes(little)) or _is_text_of(text, bytes(big))
    return _Words(bytes(little), bytes(big), text) if is_read else None


def _number(cell: str, radix: int, size: int) -> bytes | None:
    """The bytes of one word, the highest first."""
    try:
        return int(cell, radix).to_bytes(size, "big")
    except (ValueError, OverflowError):
        return None


def _is_text_of(text: str, data: bytes) -> bool:
    shown = re.sub(r"\s", "", text)
    expected = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in data).replace(" ", "")
    return expected in (shown, shown[1:-1])


def words_without_offsets(text: str) -> Iterator[tuple[bytes, int]]:
    """What words without offsets may be (``od -An``): their bytes, and the bytes in a word."""
    cells = text.split()
    if not cells or len({len(cell) for cell in cells}) > 1:
        return
    for form in _CELL_FORMS:
        words = [_number(cell, form.radix, form.size) for cell in cells] if len(cells[0]) == form.digits else [None]
        if None in words or (form.radix, form.size) == (_HEX, 1):
            continue
        little = b"".join(word[::-1] for word in words if word is not None)
        for padding in range(padding_of(little, form.size) + 1):
            yield little[: len(little) - padding], form.size


def padding_of(little: Sequence[int], size: int) -> int:
    """Zeros at the end of the last word: bytes that may not have been there."""
    padding = 0
    while padding < min(size, len(little)) - 1 and little[-1 - padding] == 0:
        padding += 1
    return padding
