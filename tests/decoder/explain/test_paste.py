from __future__ import annotations

import base64
import random
import struct
from contextlib import suppress

import pytest

from decoder.explain.paste import Paste, PasteError, packet_headers, read_paste

DATA = bytes.fromhex("0003000c0000002a0003617070000200000000000000000000000000000000076f726465727300010000")


def rows(data: bytes, width: int = 16) -> list[tuple[int, bytes]]:
    return [(at, data[at : at + width]) for at in range(0, len(data), width)]


def ascii_of(data: bytes) -> str:
    return "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in data)


def xxd(data: bytes) -> str:
    return "\n".join(f"{at:08x}: {row.hex(' ', -2):<39}  {ascii_of(row)}" for at, row in rows(data))


def hexdump(data: bytes) -> str:
    lines = [f"{at:08x}  {row[:8].hex(' '):<23}  {row[8:].hex(' '):<23}  |{ascii_of(row)}|" for at, row in rows(data)]
    return "\n".join([*lines, f"{len(data):08x}"])


def tcpdump(data: bytes) -> str:
    lines = [f"\t0x{at:04x}:  {row.hex(' ', -2):<39}  {ascii_of(row)}" for at, row in rows(data)]
    return "\n".join(["12:00:00.000000 IP 127.0.0.1.50000 > 127.0.0.1.9092: Flags [P.], length 9", *lines])


def wireshark(data: bytes) -> str:
    return "\n".join(f"{at:04x}   {row.hex(' '):<47}   {ascii_of(row)}" for at, row in rows(data))


def follow_stream(data: bytes) -> str:
    lines = []
    for at, row in rows(data):
        text = ascii_of(row)
        lines.append(f"    {at:08x}  {row[:8].hex(' '):<23}  {row[8:].hex(' '):<23}   {text[:8]} {text[8:]}")
    return "\n".join(lines)


def od(data: bytes) -> str:
    lines = [f"{at:06x} {row.hex(' '):<47}  >{ascii_of(row)}<" for at, row in rows(data)]
    return "\n".join([*lines, f"{len(data):06x}"])


def without_text(data: bytes) -> str:
    return "\n".join(f"{at:04x}  {row.hex(' ')}" for at, row in rows(data))


DUMPS = [xxd, hexdump, tcpdump, wireshark, follow_stream, od, without_text]


@pytest.mark.parametrize("dump", DUMPS)
def test_dumps_with_offsets(dump):
    source = random.Random(7)
    for size in (1, 2, 15, 16, 17, 33, 43, 300):
        for data in (DATA[:size], source.randbytes(size), b"ab cd 12 " * (size // 9 + 1), bytes(size)):
            paste = read_paste(dump(data))
            assert (paste.data, paste.form) == (data, "hex dump")


def test_a_star_repeats_the_line_above():
    text = "00000000  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n*\n00000030  07 08  |..|\n"
    assert read_paste(text).data == bytes(48) + b"\7\x08"


@pytest.mark.parametrize(
    "text",
    [
        DATA.hex(),
        DATA.hex(" "),
        DATA.hex(":").upper(),
        DATA.hex(" ", 2),
        DATA.hex(" ", 4),
        "0x" + DATA.hex(),
        ", ".join(f"0x{byte:02X}" for byte in DATA),
        DATA.hex(" ")[:47] + "\n" + DATA.hex(" ")[48:] + "\n",
        f'"{DATA.hex()}"',
        f"'{DATA.hex(' ')}'",
        f"“0x{DATA.hex()}”\n",
        f' "{DATA.hex(":")}" ',
        "\n".join(f'"{row.hex(" ")}"' for _, row in rows(DATA)),
    ],
)
def test_plain_hex(text):
    assert read_paste(text).data == DATA
    assert read_paste(text).form == "hex"


def test_hex_digits_may_be_the_text_of_bytes():
    assert read_paste("b'0012ab'") == Paste(b"0012ab", "escaped text")
    assert read_paste("'0012ab'") == Paste(b"\0\x12\xab", "hex")


def test_other_forms():
    assert read_paste(repr(DATA)) == read_paste("".join(f"\\x{byte:02x}" for byte in DATA))
    assert read_paste(repr(DATA)).data == DATA
    array = "char peer0_0[] = { /* Packet 4 */\n" + ", ".join(f"0x{byte:02x}" for byte in DATA) + " };"
    assert read_paste(array).data == DATA
    assert read_paste(base64.b64encode(DATA).decode()).data == DATA


@pytest.mark.parametrize("link", [b"", b"\0" * 12 + b"\x08\x00"])
def test_the_headers_of_a_packet_are_skipped(link):
    payload = struct.pack(">i", len(DATA)) + DATA
    tcp = struct.pack(">HHIIBBHHH", 50000, 9092, 1, 1, 0x80, 0x18, 512, 0, 0) + bytes(12)
    ip = struct.pack(
        ">BBHHHBBH4s4s", 0x45, 0, 20 + len(tcp) + len(payload), 1, 0, 64, 6, 0, b"\x7f\0\0\1", b"\x7f\0\0\1"
    )
    packet = link + ip + tcp + payload
    paste = read_paste(tcpdump(packet))
    assert (paste.data, paste.skipped) == (payload, len(packet) - len(payload))
    assert packet_headers(payload) == 0


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "nothing was pasted"),
        ("  \n", "nothing was pasted"),
        ("0003000", "7 hex digits are not whole bytes"),
        ("hello world!", "'h' is no hex digit; known forms: plain hex, 0x"),
    ],
)
def test_what_is_no_bytes(text, complaint):
    with pytest.raises(PasteError, match=complaint):
        read_paste(text)


def test_any_text_is_bytes_or_a_complaint():
    source = random.Random(3)
    for _ in range(3000):
        text = "".join(source.choice("0123456789abcdefx:| \n\t\\*.>'\"b/,=Z") for _ in range(source.randrange(60)))
        with suppress(PasteError):
            assert isinstance(read_paste(text).data, bytes)
