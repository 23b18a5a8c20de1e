"""Decoding a pandas batch: one row in, one row out, whatever the frame."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from decoder import Codec
from pipeline.streaming import decode_kernel
from pipeline.streaming.decode import decode_batch
from tests.decoder.kafka.encode import request
from tests.decoder.mongodb.build import command, compressed
from tests.hostile.mongodb import samples as mongodb_samples
from tests.hostile.samples import made, recorded

CODEC = Codec()
API_VERSIONS = bytes.fromhex("0012000000000007000464656d6f")


def frames(*rows: dict[str, Any]) -> pd.DataFrame:
    usual = {"protocol": "kafka", "direction": "request", "api_key": None, "api_version": None, "flags": 0}
    return pd.DataFrame([usual | row for row in rows])


def test_a_frame_becomes_header_and_body() -> None:
    row = decode_batch(CODEC, frames({"frame": API_VERSIONS})).iloc[0]
    assert (row.decode_status, row.api_name, row.client_id, row.error_code) == ("ok", "ApiVersions", "demo", None)
    assert json.loads(row.header)["correlationId"] == 7
    assert json.loads(row.body) == {}


def test_a_response_is_read_by_the_key_that_pandas_made_a_float() -> None:
    response = bytes.fromhex("00000007000000000001001200000003")
    asked = {"frame": response, "direction": "response", "api_key": 18.0, "api_version": 0.0}
    row = decode_batch(CODEC, frames({"frame": API_VERSIONS, "api_key": float("nan")}, asked)).iloc[1]
    assert (row.decode_status, json.loads(row.body)["apiKeys"][0]["maxVersion"]) == ("ok", 3)


def test_messages_inside_bytes_fields_have_a_column_of_their_own() -> None:
    subscription = bytes.fromhex("0000 00000001 0006") + b"orders" + bytes.fromhex("ffffffff")
    protocols = [{"name": "range", "metadata": subscription}]
    joining = request(11, 0, {"protocolType": "consumer", "protocols": protocols})
    decoded = decode_batch(CODEC, frames({"frame": joining}, {"frame": API_VERSIONS}))
    (found,) = json.loads(decoded.embedded.iloc[0])
    assert (found["path"], found["body"]["topics"]) == ("protocols/0/metadata", ["orders"])
    assert decoded.embedded.iloc[1] is None


def test_a_bad_frame_costs_one_row() -> None:
    decoded = decode_batch(CODEC, frames({"frame": b"\x00"}, {"frame": API_VERSIONS}, {"frame": b""}))
    assert list(decoded.decode_status) == ["malformed", "ok", "malformed"]
    assert decoded.error_code.iloc[0] == "buffer_underflow"


def test_the_bytes_of_what_no_release_knows_stay_beside_its_header() -> None:
    raw = bytes.fromhex("03e7 0001 00000007 0002 6d65 010203")
    row = decode_batch(CODEC, frames({"frame": raw})).iloc[0]
    assert (row.decode_status, row.body, row.frame) == ("unknown_api", None, raw)
    assert json.loads(row.header)["clientId"] == "me"


def test_a_protocol_that_this_codec_does_not_know_is_a_row_too() -> None:
    row = decode_batch(CODEC, frames({"frame": b"\x00" * 16, "protocol": "gopher"})).iloc[0]
    assert (row.decode_status, row.error_code) == ("unknown_api", "unknown_api")


def test_a_fault_of_the_codec_is_a_row_that_says_so() -> None:
    class Broken(Codec):
        def decode(self, *_: Any, **__: Any) -> Any:
            raise RuntimeError("fault")

    row = decode_batch(Broken(), frames({"frame": API_VERSIONS})).iloc[0]
    assert (row.decode_status, row.error_code, row.error_offset) == ("malformed", "internal", 0)


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
    plain, compiled = decode_batch(CODEC, batch), decode_batch(CODEC, batch, by_kernel=True)
    for name in plain.columns:
        assert pa.array(compiled[name]).to_pylist() == pa.array(plain[name]).to_pylist(), name


def test_a_batch_larger_than_the_kernel_takes_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decode_kernel, "_BYTES_AT_ONCE", 80)
    batch = frames(*[{"frame": API_VERSIONS}] * 7, {"frame": b"\0"}, {"frame": API_VERSIONS + b"\0" * 50})
    compiled = decode_batch(CODEC, batch, by_kernel=True)
    assert compiled.decode_status.tolist() == ["ok"] * 7 + ["malformed"] * 2
    many = frames(*[{"frame": compressed(command({"ping": "x" * 100}), "zlib"), "protocol": "mongodb"}] * 3)
    assert [len(piece) for piece in decode_kernel._pieces(many)] == [1, 1, 1]
    assert decode_batch(CODEC, many, by_kernel=True).api_name.tolist() == ["ping"] * 3
    assert decode_batch(CODEC, batch.iloc[:0], by_kernel=True).empty
