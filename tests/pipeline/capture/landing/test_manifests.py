"""What a manifest states is taken within bounds, whatever it states."""

from __future__ import annotations

import json

import pytest

from decoder.model import MAX_TS_US, MIN_TS_US
from pipeline.capture.landing.manifests import parsed, place_of

PLACE = "date=2026-01-01/a-1-0000.parquet"


def manifest_bytes(**changed: object) -> bytes:
    known = {"path": PLACE, "rows": 1, "bytes": 2, "sha256": "0" * 64, "min_ts": "2026-01-01T00:00:00.000001Z"}
    return json.dumps(known | changed).encode()


@pytest.mark.parametrize(
    ("time", "taken"),
    [
        ("9999-12-31T23:59:59.999999Z", MAX_TS_US),
        ("1969-12-31T23:59:59Z", MIN_TS_US),
        ("0001-01-01T00:00:00+23:59", MIN_TS_US),
        ("1970-01-01T00:00:01Z", 1_000_000),
    ],
)
def test_times_are_clamped_as_those_of_frames(time: str, taken: int) -> None:
    manifest = parsed(manifest_bytes(min_ts=time), PLACE)
    assert manifest is not None
    assert manifest.first_us == taken


def test_numbers_of_which_a_sum_would_not_fit_are_no_manifest() -> None:
    assert parsed(manifest_bytes(), PLACE) is not None
    assert parsed(manifest_bytes(frame_bytes=2**61), PLACE) is None


def test_a_name_with_a_time_that_no_agent_gives_is_no_file_of_ours() -> None:
    assert place_of("frames", "a-1767225600000000-0000") == "date=2026-01-01/a-1767225600000000-0000.parquet"
    assert place_of("frames", "a-999999999999999999-0000") is None
