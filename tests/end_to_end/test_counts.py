"""Is every message of the wire in the lake? Counted apart from the product, by tshark's reassembly."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from tests.end_to_end.conftest import CAPTURES, SAMPLES, rows, truth

pytestmark = pytest.mark.spark

REASONS = {
    "version_negotiation": {
        ("request", "unknown_api", "unknown_api"): 1,
        ("request", "unknown_version", "unknown_version"): 2,
    }
}
"""Frames that no Kafka release can read: api key 999, and ApiVersions v99 to two brokers."""


@pytest.mark.parametrize("sample", SAMPLES)
def test_messages_by_api_and_version_equal_an_independent_count(demo_lake: Path, sample: str) -> None:
    log = truth(sample)
    frames = rows(
        demo_lake,
        "SELECT direction, api_key, api_version, decode_status, error_code FROM bronze.frames "
        f"WHERE epoch_ms(ts) BETWEEN {log['capture_start_ms'] - 1000} AND {log['capture_end_ms'] + 1000}",
    )
    # Neither what was not captured to its end, nor what its sender never sent to the end.
    whole = [f for f in frames if f["decode_status"] != "truncated" and f["error_code"] != "connection_closed"]
    counted = {
        direction: dict(Counter(f"{f['api_key']}:{f['api_version']}" for f in whole if f["direction"] == direction))
        for direction in ("request", "response")
    }
    assert counted == json.loads((CAPTURES / f"{sample}.counts.json").read_text())
    reasons = Counter(
        (f["direction"], f["decode_status"], f["error_code"]) for f in whole if f["decode_status"] != "ok"
    )
    assert dict(reasons) == REASONS.get(sample, {})
