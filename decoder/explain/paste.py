"""Bytes of pasted text: plain hex, and the dumps of xxd, hexdump, od, tcpdump, Wireshark and Format-Hex."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from dataclasses import dataclass

from decoder.explain.word_dump import read_word_dumps, words_without_offsets

_OFFSET_LINE = re.compile(r"^\s*(?:0x)?([0-9a-fA-F]{3,8}|0{8}[0-9a-fA-F]{8})(:?)(\s+|$)(.*)$")
_BYTE_GROUP = re.compile(r"\s*((?:[0-9a-fA-F]{2})+)(?![^\s|>])")
_C_BYTES = re.compile(r"\b0x([0-9a-fA-F]{1,2})\b")
_BETWEEN_DIGITS = re.compile(r"""0[xX]|[\s:,;'"`\u201c\u201d\u2018\u2019-]""")
_PYTHON_BYTES = re.compile(r"""\s*b['"]""")
_QUOTED = re.compile(r"""b?(['"])(.*)\1""", re.DOTALL)
_TOKEN = re.compile(r"""\\x[0-9a-fA-F]{2}|\\[nrt0\\'"]|[ -\[\]-~]""")
_ESCAPED = re.compile(f"(?:{_TOKEN.pattern})+")
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "0": "\0"}
_CAPTION = re.compile(
    r"^\s*(?:\d\d:\d\d:\d\d\.\d+ |IP6? |Label: |Offset\s+Bytes|-{3,}|\+-{3,}|[|\s]\s+00? +0?1 +0?2 +0?3 )"
)
_PAIR = 2
_WORDS = (2, 4, 8)
_WIDEST = 64
"""Bytes in one line of a dump."""


class PasteError(ValueError):
    """Raised when a text holds no bytes in any known form; the message names the forms that are."""


@dataclass(frozen=True, slots=True)
class Paste:
    """The bytes of a pasted text.

    Attributes:
        data: the bytes, without the headers of a packet.
        form: what the text was taken for.
        skipped: bytes of Ethernet, IP and TCP headers in front of ``data``.
        word: bytes in each little-endian word that the text shows, whose bytes were reversed for ``data``; 1: the text
            shows bytes in their order.
    """

    data: bytes
    form: str
    skipped: int = 0
    word: int = 1


def read_paste(text: str) -> Paste:
    """Read pasted text the likeliest way.

    Raises:
        PasteError: it is in no known form.
    """
    return readings(text)[0]


def readings(text: str) -> list[Paste]:
    """All ways to read pasted text, the likeliest first; at least one.

    Raises:
        PasteError: it is in no known form.
    """
    if not text.strip():
        raise PasteError("nothing was pasted")
    lines = [shown for line in text.splitlines() if (shown := _without_frame(line)).strip() and not _is_caption(shown)]
    found = list(_dumps(lines)) or list(_others(text))
    if not found:
        raise PasteError(_complaint(text))
    return found


def _dumps(lines: list[str]) -> Iterator[Paste]:
    data = _dump(lines)
    found = [words for words in read_word_dumps(lines) if words.size > 1 or words.little != data]
    in_order = data is not None and (
        not found or found[0].has_colons or found[0].size == 1 or found[0].is_little is False
    )
    if data is not None and in_order and (not found or not found[0].is_little):
        yield _dumped(data)
    for words in found:
        if words.is_little is not False:
            yield from (
                _dumped(words.little[: len(words.little) - cut], words.size) for cut in range(words.padding + 1)
            )
    for words in found:
        if not words.is_little:
            yield _dumped(words.big)
    if data is not None and not in_order:
        yield _dumped(data)


def _dumped(data: bytes, word: int = 1) -> Paste:
    headers = packet_headers(data)
    return Paste(data[headers:], "hex dump", headers, word)


def _others(text: str) -> Iterator[Paste]:
    """Forms without offsets. Plain hex may be words, too, whose order only its meaning shows."""
    for form, read in (("hex", _plain), ("escaped text", _escaped), ("C array", _c_array), ("base64", _base64)):
        data = read(text)
        if data is not None:
            yield Paste(data, form)
            if form == "hex" and len(data) % _PAIR == 0:
                yield from (Paste(_reversed(data, size), form, word=size) for size in _WORDS if len(data) % size == 0)
            break
    yield from (Paste(data, "hex dump", word=size) for data, size in words_without_offsets(text))


def _reversed(data: bytes, size: int) -> bytes:
    return b"".join(data[at : at + size][::-1] for at in range(0, len(data), size))


def packet_headers(data: bytes) -> int:
    """Bytes of Ethernet, IPv4 or IPv6, and TCP headers in front of a packet's payload; 0 if it begins with none."""
    link = 14 if data[12:14] in (b"\x08\x00", b"\x86\xdd") and len(data) > 54 else 0
    ip = data[link:]
    if len(ip) >= 40 and ip[0] >> 4 == 4 and ip[9] == 6 and int.from_bytes(ip[2:4], "big") == len(ip):
        head = 4 * (ip[0] & 0xF)
    elif len(ip) >= 60 and ip[0] >> 4 == 6 and ip[6] == 6 and int.from_bytes(ip[4:6], "big") == len(ip) - 40:
        head = 40
    else:
        return 0
    if head < 20 or len(ip) < head + 20:
        return 0
    payload = link + head + 4 * (ip[head + 12] >> 4)
    return payload if payload < len(data) else 0


def _dump(lines: list[str]) -> bytes | None:
    """A dump with an offset in front of each line; the ASCII column may be there or not, ``*`` repeats a line."""
    places: list[tuple[int, str] | None] = []
    for line in lines:
        if line.strip() == "*":
            places.append(None)
            continue
        match = _OFFSET_LINE.match(line)
        if match is None or not (match[2] or match[3] != " " or not match[4] or len(lines) > 1):
            return None
        places.append((int(match[1], 16), match[4]))
    if not places or places[0] is None:
        return None
    first = places[0][0]
    if len(lines) == 1 and first != 0:
        return None
    return _assemble(places, first)


def _is_caption(line: str) -> bool:
    """A packet's summary line above its bytes, as tcpdump prints it, or the head of a table of bytes."""
    return bool(_CAPTION.match(line))


def _without_frame(line: str) -> str:
    """A line without the frame that Netty draws around a dump."""
    return re.sub(r"^\s*\|([0-9a-fA-F]{8})\|", r"\1 ", line)


def _assemble(places: list[tuple[int, str] | None], first: int) -> bytes | None:
    data, row, is_repeated = bytearray(), b"", False
    for index, place in enumerate(places):
        if place is None:
            is_repeated = True
            continue
        offset, rest = place
        while is_repeated and row and len(data) < offset - first:
            data += row
        is_repeated = False
        if offset - first != len(data):
            return None
        following = places[index + 1] if index + 1 < len(places) else None
        row = _row(rest, None if following is None else following[0] - offset)
        data += row
    return bytes(data)


def _row(rest: str, size: int | None) -> bytes:
    """The bytes of one line behind its offset. ``size`` is known from the next line's offset."""
    found, ends = bytearray(), []
    pos = 0
    while (match := _BYTE_GROUP.match(rest, pos)) and len(found) < _WIDEST:
        found += bytes.fromhex(match[1])
        pos = match.end()
        ends.append((len(found), pos))
    if size is not None and 0 < size <= len(found):
        return bytes(found[:size])
    for count, end in reversed(ends):
        if _is_ascii_column(rest[end:], bytes(found[:count])):
            return bytes(found[:count])
    is_all = not ends or not rest[ends[-1][1] :].strip()
    gaps = [count for count, end in ends if rest[end : end + 2] == "  "]
    return bytes(found if is_all or not gaps else found[: gaps[-1]])


def _is_ascii_column(rest: str, data: bytes) -> bool:
    """Whether what follows some bytes of a line is the same bytes as text; spaces may be lost at its ends."""
    shown = re.sub(r"\s", "", rest).replace("·", ".")
    expected = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in data).replace(" ", "")
    return bool(rest.strip()) and expected in (shown, shown[1:-1])


def _plain(text: str) -> bytes | None:
    digits = _BETWEEN_DIGITS.sub("", text)
    if _PYTHON_BYTES.match(text) or len(digits) % 2 or not re.fullmatch(r"[0-9a-fA-F]+", digits):
        return None
    return bytes.fromhex(digits)


def _escaped(text: str) -> bytes | None:
    r"""``b'\x00\x03abc'`` as Python prints it, or ``\x00\x03`` as shells and Wireshark write it."""
    body = text.strip()
    quoted = _QUOTED.fullmatch(body)
    if quoted is None and "\\x" not in body:
        return None
    body = quoted[2] if quoted else body
    if not _ESCAPED.fullmatch(body):
        return None
    return b"".join(_unescape(token) for token in _TOKEN.findall(body))


def _unescape(token: str) -> bytes:
    if token.startswith("\\x"):
        return bytes.fromhex(token[2:])
    return _ESCAPES.get(token[1:], token[1:]).encode() if token.startswith("\\") else token.encode()


def _c_array(text: str) -> bytes | None:
    digits = _C_BYTES.findall(text)
    return bytes(int(digit, 16) for digit in digits) if digits else None


def _base64(text: str) -> bytes | None:
    body = re.sub(r"\s", "", text)
    if len(body) < 8 or len(body) % 4 or not re.fullmatch(r"[A-Za-z0-9+/]+={0,2}", body):
        return None
    return base64.b64decode(body)


def _complaint(text: str) -> str:
    digits = _BETWEEN_DIGITS.sub("", text)
    known = "plain hex, 0x…, or a dump of xxd, hexdump -C, od -t x1, tcpdump -X or Wireshark"
    odd = re.search(r"[^0-9a-fA-F]", digits)
    if odd is None:
        return f"{len(digits)} hex digits are not whole bytes: one is missing, or one too many"
    return f"{odd[0]!r} is no hex digit; known forms: {known}"
