"""A capture of one direction is named as such; silence about it is no good news, and unanswered requests are none."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.paths import CAPTURES
from tests.pipeline.embedded.test_diagnose import run

HEADER = struct.Struct("<IIII")
PORT = 9092


def rewritten(to: Path, keep: Callable[[int, int], bytes | None]) -> Path:
    """healthy.pcap with the packets for which ``keep`` of source and destination port gives the address to use.

    The recording is classic pcap of Ethernet frames without options of IP: ports are at bytes 34 and 36.
    """
    data = (CAPTURES / "healthy.pcap").read_bytes()
    parts, at = [data[:24]], 24
    while at < len(data):
        length = HEADER.unpack_from(data, at)[2]
        packet = bytearray(data[at + 16 : at + 16 + length])
        source, target = struct.unpack_from(">HH", packet, 34)
        address = keep(source, target)
        if address is not None:
            if address:
                packet[26:30] = address
            parts += [data[at : at + 16], bytes(packet)]
        at += 16 + length
    to.write_bytes(b"".join(parts))
    return to


def requests_only(tmp_path: Path) -> Path:
    return rewritten(tmp_path / "requests.pcap", lambda _, target: b"" if target == PORT else None)


def responses_only(tmp_path: Path) -> Path:
    return rewritten(tmp_path / "responses.pcap", lambda source, _: b"" if source == PORT else None)


def translated(tmp_path: Path) -> Path:
    """Responses come from another address than the one that requests go to."""
    return rewritten(tmp_path / "half.pcap", lambda source, _: bytes([10, 9, 8, 7]) if source == PORT else b"")


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in run(path, "--json").stdout.splitlines()]


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (requests_only, "holds only requests of the connections to 127.0.0.1:9092"),
        (responses_only, "holds only responses of the connections to 127.0.0.1:9092"),
        (translated, "10.9.8.7:9092 answers what 127.0.0.1:9092 is asked"),
    ],
)
def test_one_direction_is_named_and_nothing_else_is_said(
    tmp_path: Path, made: Callable[[Path], Path], words: str
) -> None:
    path = made(tmp_path)
    done = run(path)
    assert words in " ".join(done.stdout.split())
    assert "Nothing was judged: " in done.stdout
    assert "looks wrong" not in done.stdout
    assert "snap length" not in done.stdout
    assert done.exit_code == 2
    found = rows(path)
    assert {row["rule"] for row in found} == {"capture_loss"}
    assert {json.loads(row["details"])["captured"] for row in found} <= {"requests", "responses"}


def test_a_whole_capture_is_judged(tmp_path: Path) -> None:
    done = run(rewritten(tmp_path / "whole.pcap", lambda *_: b""))
    assert done.exit_code == 0
    assert "Nothing was judged" not in done.stdout
