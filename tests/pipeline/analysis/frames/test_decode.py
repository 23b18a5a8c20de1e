"""Decoding a batch of landed rows: one row in, one row out, whatever the frame."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from decoder import Codec, limits
from pipeline.analysis.frames import decode as decode_module
from pipeline.analysis.frames import kernel as decode_kernel
from pipeline.analysis.frames import pieces as decode_pieces
from pipeline.analysis.frames.decode import decode_batch
from pipeline.lake.arrow import arrow_schema
from pipeline.tables import FRAMES, LANDING_COLUMNS
from tests.decoder.kafka.encode import request
from tests.decoder.mongodb.build import command, compressed
from tests.hostile.mongodb import samples as mongodb_samples
from tests.hostile.samples import made, recorded
from tests.pipeline.rows import row

CODEC = Codec()
API_VERSIONS = bytes.fromhex("0012000000000007000464656d6f")


def frames(*rows: dict[str, Any]) -> pa.RecordBatch:
    usual = {"protocol": "kafka", "direction": "request", "api_key": None, "api_version": None, "flags": 0}
    values = [row(FRAMES, **usual | given) for given in rows]
    return pa.RecordBatch.from_pylist(values, arrow_schema(LANDING_COLUMNS))


def decode(batch: pa.RecordBatch, codec: Codec = CODEC, *, by_kernel: bool = False) -> list[SimpleNamespace]:
    pieces = decode_batch(codec, batch, by_kernel=by_kernel)
    return [SimpleNamespace(**values) for piece in pieces for values in piece.to_pylist()]


def test_a_frame_becomes_header_and_body() -> None:
    (found,) = decode(frames({"frame": API_VERSIONS}))
    assert (found.decode_status, found.api_name, found.client_id, found.error_code) == (
        "ok",
        "ApiVersions",
        "demo",
        None,
    )
    assert json.loads(found.header)["correlationId"] == 7
    assert json.loads(found.body) == {}


def test_a_response_is_read_by_the_key_of_its_request() -> None:
    response = bytes.fromhex("00000007000000000001001200000003")
    asked = {"frame": response, "direction": "response", "api_key": 18, "api_version": 0}
    _, found = decode(frames({"frame": API_VERSIONS}, asked))
    assert (found.decode_status, json.loads(found.body)["apiKeys"][0]["maxVersion"]) == ("ok", 3)


def test_messages_inside_bytes_fields_have_a_column_of_their_own() -> None:
    subscription = bytes.fromhex("0000 00000001 0006") + b"orders" + bytes.fromhex("ffffffff")
    protocols = [{"name": "range", "metadata": subscription}]
    joining = request(11, 0, {"protocolType": "consumer", "protocols": protocols})
    first, second = decode(frames({"frame": joining}, {"frame": API_VERSIONS}))
    (inside,) = json.loads(first.embedded)
    assert (inside["path"], inside["body"]["topics"]) == ("protocols/0/metadata", ["orders"])
    assert second.embedded is None


def test_a_bad_frame_costs_one_row() -> None:
    decoded = decode(frames({"frame": b"\x00"}, {"frame": API_VERSIONS}, {"frame": b""}))
    assert [found.decode_status for found in decoded] == ["malformed", "ok", "malformed"]
    assert decoded[0].error_code == "buffer_underflow"


def test_the_bytes_of_what_no_release_knows_stay_beside_its_header() -> None:
    raw = bytes.fromhex("03e7 0001 00000007 0002 6d65 010203")
    (found,) = decode(frames({"frame": raw}))
    assert (found.decode_status, found.body, found.frame) == ("unknown_api", None, raw)
    assert json.loads(found.header)["clientId"] == "me"


def test_a_protocol_that_this_codec_does_not_know_is_a_row_too() -> None:
    (found,) = decode(frames({"frame": b"\x00" * 16, "protocol": "gopher"}))
    assert (found.decode_status, found.error_code) == ("unknown_api", "unknown_api")


def test_a_fault_of_the_codec_is_a_marked_row() -> None:
    class Broken(Codec):
        def decode(self, *_: Any, **__: Any) -> Any:
            raise RuntimeError("fault")

    (found,) = decode(frames({"frame": API_VERSIONS}), Broken())
    assert (found.decode_status, found.error_code, found.error_offset) == ("malformed", "internal", 0)


def test_the_kernel_gives_the_same_columns() -> None:
    rows = [
        {"frame": s.data, "direction": s.direction, "api_key": s.api_key, "api_version": s.api_version}
        for s in (*recorded(), *made())
    ]
    rows += [{"frame": data, "direction": side, "protocol": "mongodb"} for side, data in mongodb_samples()]
    rows += [
        {"frame": b"\0"},
        {"frame": b"\0" * 16, "protocol": "gopher"},
        {"frame": b"\0\0\0\7", "direction": "response"},
    ]
    batch = frames(*rows)
    plain, compiled = decode(batch), decode(batch, by_kernel=True)
    assert len(plain) == len(rows)
    assert compiled == plain


@pytest.mark.parametrize("by_kernel", [False, True])
def test_a_batch_that_fails_is_halved_until_one_row_is_left(monkeypatch: pytest.MonkeyPatch, by_kernel: bool) -> None:
    """A column that Arrow could not hold failed the whole batch, again at each restart."""
    name = "decode_by_kernel" if by_kernel else "decode_plainly"
    module = decode_kernel if by_kernel else decode_module
    whole = getattr(module, name)

    def poisoned(codec: Codec, batch: pa.RecordBatch) -> pa.RecordBatch:
        if b"poison" in batch.column("frame").to_pylist():
            raise TypeError("ChunkedArray: secret")
        return whole(codec, batch)

    monkeypatch.setattr(module, name, poisoned)
    batch = frames(*[{"frame": API_VERSIONS}] * 5, {"frame": b"poison"}, *[{"frame": API_VERSIONS}] * 5)
    found = decode(batch, by_kernel=by_kernel)
    assert [row.decode_status for row in found] == ["ok"] * 5 + ["malformed"] + ["ok"] * 5
    assert (found[5].error_code, found[5].body, found[5].frame) == ("internal", None, b"poison")
    assert found[0].api_name == found[10].api_name == "ApiVersions"


@pytest.mark.parametrize("by_kernel", [False, True])
def test_a_body_that_no_column_should_hold_is_left_out(monkeypatch: pytest.MonkeyPatch, by_kernel: bool) -> None:
    monkeypatch.setattr(limits, "TEXT_FLOOR", 1)
    monkeypatch.setattr(limits, "TEXT_PER_BYTE", 0)
    (found,) = decode(frames({"frame": API_VERSIONS}), by_kernel=by_kernel)
    assert (found.decode_status, found.error_code, found.error_offset) == ("partial", "body_too_large", 0)
    assert (found.header, found.body, found.api_name) == (None, None, "ApiVersions")


def test_a_batch_larger_than_the_kernel_takes_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decode_pieces, "_BYTES_AT_ONCE", 80)
    batch = frames(*[{"frame": API_VERSIONS}] * 7, {"frame": b"\0"}, {"frame": API_VERSIONS + b"\0" * 50})
    found = decode(batch, by_kernel=True)
    assert [row.decode_status for row in found] == ["ok"] * 7 + ["malformed", "ok"]
    assert [row.error_code for row in found][7:] == ["buffer_underflow", "trailing_bytes"]
    many = frames(*[{"frame": compressed(command({"ping": "x" * 100}), "zlib"), "protocol": "mongodb"}] * 3)
    assert [len(piece) for piece in decode_pieces.pieces(many)] == [1, 1, 1]
    assert [found.api_name for found in decode(many, by_kernel=True)] == ["ping"] * 3
    assert decode(batch.slice(0, 0), by_kernel=True) == []
