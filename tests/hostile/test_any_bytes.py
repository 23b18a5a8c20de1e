"""Any bytes whatever, as any api: a message with a status that is known."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decoder.explain.frame import explain
from decoder.kafka.explain.prefix import split_length_prefix
from decoder.kafka.records.batches import batch_spans, summarise
from decoder.kafka.schema.table import api_versions
from decoder.model import FrameFlags
from decoder.redact import redact
from tests.decoder.kafka.landed import landed
from tests.hostile.invariants import CODEC, decode
from tests.hostile.samples import RECORDS, made

DIRECTIONS = st.sampled_from(["request", "response"])
KEYS = st.none() | st.sampled_from(sorted(api_versions())) | st.integers(-(2**15), 2**15 - 1)
VERSIONS = st.none() | st.integers(0, 18) | st.integers(-(2**15), 2**15 - 1)
FLAGS = st.just(0) | st.integers(0, 2 * max(FrameFlags) - 1)


@settings(max_examples=1500, deadline=None, derandomize=True)
@given(st.binary(max_size=300), DIRECTIONS, KEYS, VERSIONS, FLAGS)
def test_any_bytes(data, direction, key, version, flags):
    decode(data, direction, key, version, flags)


@pytest.mark.slow
@settings(max_examples=1500, deadline=None, derandomize=True)
@given(st.binary(max_size=200), st.sampled_from(sorted(api_versions().items())), st.integers(0, 18), st.booleans())
def test_any_body_of_a_real_request(body, api, version, flexible):
    key, (low, high) = api
    header = struct.pack(">hhih", key, low + version % (high - low + 1), 7, -1) + b"\0" * flexible
    decode(header + body, "request", None, None)


@pytest.mark.slow
@settings(max_examples=500, deadline=None, derandomize=True)
@given(st.sampled_from(made()), st.integers(0, 10_000), st.binary(max_size=12), st.integers(0, 12))
def test_any_bytes_in_the_middle_of_a_frame(sample, at, inserted, dropped):
    at %= len(sample.data)
    data = sample.data[:at] + inserted + sample.data[at + dropped :]
    sort = (sample.direction, sample.api_key, sample.api_version)
    decode(data, *sort)
    assert len(redact(landed(data, *sort)).frame) == len(data)
    assert explain(data, *sort, codec=CODEC).lines or not data


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.binary(max_size=100))
def test_any_bytes_pasted_into_explain(data):
    split = split_length_prefix(data)
    assert data.endswith(split.frame + data[len(data) - split.rest :])


@pytest.mark.slow
@settings(max_examples=1000, deadline=None, derandomize=True)
@given(st.sampled_from([b"", *RECORDS]), st.binary(max_size=100), st.integers(0, 10_000), st.integers(0, 255))
def test_any_bytes_as_records(good, junk, at, value):
    data = bytearray(good + junk)
    if data:
        data[at % len(data)] = value
    spans = list(batch_spans(bytes(data), 0, len(data)))
    assert len(spans) == len(summarise(bytes(data), 0, len(data)))
    assert [span.start for span in spans] == [0, *(span.end for span in spans)][: len(spans)]
    assert not spans or spans[-1].end == len(data)
    assert all(span.status == "ok" for span in spans[:-1])
