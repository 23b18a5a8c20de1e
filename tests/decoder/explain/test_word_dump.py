"""Dumps of words, as hexdump, od and xxd -e print them on a little-endian machine."""

from __future__ import annotations

import random
import shutil
import subprocess
from collections.abc import Callable

import pytest

from decoder import Codec
from decoder.explain.choice import choose_reading
from decoder.explain.paste import PasteError, readings
from decoder.protocol import Context
from tests.decoder.explain.test_paste import DATA, ascii_of, rows
from tests.decoder.kafka.encode import request, response
from tests.decoder.mongodb.build import command

HEARTBEAT = request(12, 3, {"groupId": "orders-app", "generationId": 4, "memberId": "A-1"}, client_id="app")
METADATA = response(3, 12, {"clusterId": "abc", "topics": [{"name": "orders"}]})


def words(data: bytes, size: int, form: str) -> list[str]:
    """Little-endian words; the last one is filled with zeros."""
    padded = data + bytes(-len(data) % size)
    return [format(int.from_bytes(padded[at : at + size], "little"), form) for at in range(0, len(padded), size)]


def dump(data: bytes, size: int, form: str, offset: str, gap: str = " ", *, ends: bool = True) -> str:
    lines = [f"{at:{offset}}{gap}{gap.join(words(row, size, form))}" for at, row in rows(data)]
    return "\n".join([*lines, f"{len(data):{offset}}"] if ends else lines)


def xxd_e(data: bytes, size: int = 4) -> str:
    lines = []
    for at, row in rows(data):
        cells = [row[place : place + size][::-1].hex().rjust(2 * size) for place in range(0, len(row), size)]
        lines.append(f"{at:08x}: {' '.join(cells):<{(2 * size + 1) * 16 // size}} {ascii_of(row)}")
    return "\n".join(lines)


FORMS: dict[str, Callable[[bytes], str]] = {
    "hexdump": lambda data: dump(data, 2, "04x", "07x"),
    "hexdump -x": lambda data: dump(data, 2, "04x", "07x", "    "),
    "hexdump -o": lambda data: dump(data, 2, "06o", "07x", "  "),
    "hexdump -d": lambda data: dump(data, 2, "05d", "07x", "   "),
    "hexdump -b": lambda data: dump(data, 1, "03o", "07x"),
    "od": lambda data: dump(data, 2, "06o", "07o"),
    "od -x": lambda data: dump(data, 2, "04x", "07o"),
    "od -A d -x": lambda data: dump(data, 2, "04x", "07d"),
    "od -t x1": lambda data: dump(data, 1, "02x", "07o"),
    "od -t x4": lambda data: dump(data, 4, "08x", "07o"),
    "od -t x8": lambda data: dump(data, 8, "016x", "07o"),
    "od -b": lambda data: dump(data, 1, "03o", "07o"),
    "xxd -e": xxd_e,
    "xxd -e -g 2": lambda data: xxd_e(data, 2),
}
SIZES = (1, 2, 3, 15, 16, 17, 18, 31, 33, 43, 300)


@pytest.mark.parametrize("form", FORMS)
def test_the_bytes_are_those_of_the_wire(form):
    source = random.Random(5)
    for size in SIZES:
        for data in (DATA[:size], source.randbytes(size), b"ab cd 12 " * (size // 9 + 1)):
            assert data in [one.data for one in readings(FORMS[form](data))]
            if size > 3:
                assert readings(FORMS[form](data))[0].data == data


@pytest.mark.parametrize("form", [form for form in FORMS if not form.startswith("xxd")])
def test_the_dumps_above_are_those_of_the_tools(form):
    if shutil.which(form.split()[0]) is None:
        pytest.skip(f"{form.split()[0]} is not installed")
    shown = subprocess.run(form.split(), input=DATA, capture_output=True, check=True).stdout.decode()
    assert [line.rstrip() for line in shown.splitlines()] == FORMS[form](DATA).splitlines()


def chosen(text: str, context: Context = Context(), *, is_direction_given: bool = False):  # noqa: B008
    return choose_reading(readings(text), context, Codec(), is_direction_given=is_direction_given)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("message", [HEARTBEAT, HEARTBEAT + b"\0", command({"ping": 1, "$db": "admin"})])
def test_the_order_that_makes_a_message_is_chosen(form, message):
    spoken, found = chosen(FORMS[form](message))
    assert found.frame == message
    assert spoken.name == ("mongodb" if b"ping" in message else "kafka")
    is_swapped = any("little-endian words" in remark for remark in found.remarks)
    assert is_swapped == (form not in ("hexdump -b", "od -b", "od -t x1"))


def test_of_a_response_too():
    _, found = chosen(FORMS["hexdump"](METADATA), Context("response", 3, 12), is_direction_given=True)
    assert found.frame == METADATA


@pytest.mark.parametrize(("size", "form"), [(2, "04x"), (4, "08x"), (8, "016x"), (2, "06o"), (1, "03o")])
@pytest.mark.parametrize("cut", [0, 1, 2, 3])
def test_words_without_offsets_are_tried(size, form, cut):
    message = request(12, 3, {"groupId": "g" * cut, "memberId": "m" * 12})
    _, found = chosen(" ".join(words(message, size, form)))
    assert found.frame == message


def test_a_cut_off_message_is_shown_as_far_as_it_goes():
    _, found = chosen(FORMS["hexdump"](HEARTBEAT[:-4]))
    assert found.frame == HEARTBEAT[:-4]


@pytest.mark.parametrize(("form", "number"), [("hexdump", "two"), ("od -t x4", "four"), ("od -t x8", "eight")])
def test_words_that_make_no_message_are_refused(form, number):
    with pytest.raises(PasteError, match=f"words of {number} bytes; use hexdump -C"):
        chosen(FORMS[form](random.Random(1).randbytes(90)))


def test_bytes_in_their_order_are_left_alone():
    for text in (HEARTBEAT.hex(), HEARTBEAT.hex(" ", 2), "ffff" * 9):
        _, found = chosen(text)
        assert found.frame.hex() == text.replace(" ", "")
        assert not found.remarks


@pytest.mark.parametrize(
    "text",
    [
        "           00 01 02 03 04 05 06 07 08 09 0A 0B 0C 0D 0E 0F\n\n"
        "00000000   {a}  ................\n00000010   {b}  ..",
        "          Offset Bytes                                           Ascii\n"
        "                 00 01 02 03 04 05 06 07 08 09 0A 0B 0C 0D 0E 0F\n"
        "          ------ ----------------------------------------------- -----\n"
        "0000000000000000 {a}\n0000000000000010 {b}",
        "         +-------------------------------------------------+\n"
        "         |  0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f |\n"
        "+--------+-------------------------------------------------+----------------+\n"
        "|00000000| {a} |{ta}|\n|00000010| {b} |{tb}|\n"
        "+--------+-------------------------------------------------+----------------+",
    ],
    ids=["Format-Hex", "Format-Hex of PowerShell 7", "Netty"],
)
def test_dumps_within_a_frame(text):
    first, second = DATA[:16], DATA[16:20]
    shown = text.format(a=first.hex(" "), b=second.hex(" "), ta=ascii_of(first), tb=ascii_of(second))
    assert readings(shown)[0].data == DATA[:20]
