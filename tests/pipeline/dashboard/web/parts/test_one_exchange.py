"""The bytes of one frame, as the page shows them."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from pipeline.commands.messages.tree import explained_row, is_long
from tests.decoder.kafka.explain.test_advice import metadata
from tests.decoder.mongodb.build import command, compressed, sequence
from tests.requirements import require_streamlit


@pytest.fixture(autouse=True)
def _streamlit() -> None:
    require_streamlit()


def lines_of(data: bytes, protocol: str = "kafka") -> list[str]:
    from pipeline.dashboard.web.parts.one_exchange import as_lines  # noqa: PLC0415 - needs Streamlit

    explanation = explained_row(_frame(data, protocol))
    assert explanation is not None
    return as_lines(explanation, data).splitlines()


def _frame(data: bytes, protocol: str) -> dict[str, Any]:
    key, version = struct.unpack(">hh", data[:4]) if protocol == "kafka" else (None, None)
    return {
        "frame": data, "direction": "request", "api_key": key, "api_version": version, "flags": 0, "protocol": protocol,
    }  # fmt: skip


def test_a_malformed_frame_shows_where_and_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")  # of the server's terminal, which nobody sees
    lines = lines_of(metadata(b"\x0d"))
    (stop,) = [index for index, line in enumerate(lines) if line.startswith("stopped at byte 31 in topics[0].name: ")]
    assert "^^" in "".join(lines[stop:])
    assert 100 < max(map(len, lines)) <= 140


def test_a_compressed_message_is_shown_with_what_is_inside() -> None:
    data = command({"find": "orders", "filter": {"sku": "a"}})
    lines = lines_of(compressed(data, "zlib"), "mongodb")
    assert f"Uncompressed, as if sent by itself, {len(data)} bytes: ok" in lines
    assert any("orders" in line for line in lines)
    broken = data[:21] + struct.pack("<i", 99) + data[25:]
    assert sum(line.startswith("stopped at byte") for line in lines_of(compressed(broken, "zlib"), "mongodb")) == 2


def test_of_many_fields_the_first_and_the_last_are_shown() -> None:
    inserted = command({"insert": "orders"}, sequence("documents", *({"n": n} for n in range(3000))))
    for data in (inserted, compressed(inserted, "zlib")):
        lines = lines_of(data, "mongodb")
        assert len(lines) < 1100
        assert sum(line.endswith(" more fields …") for line in lines) == 1
        assert "messageLength" in lines[1]
        assert lines[-1].split()[-1] == "2999"


@pytest.mark.parametrize(("count", "is_too_long"), [(10, False), (300, True)])
def test_what_is_inside_a_small_frame_may_be_too_long(count: int, is_too_long: bool) -> None:
    data = command({"insert": "orders", "documents": ["x" * 1000] * count})
    assert is_long(compressed(data, "zlib"), "mongodb") is is_too_long
    assert is_long(data, "mongodb") is is_too_long
