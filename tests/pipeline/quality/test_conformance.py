"""Versions that are used are those that brokers advertise, in each recording; others are counted."""

from __future__ import annotations

import json
from datetime import date
from typing import Any

import pyarrow as pa
import pytest

from pipeline.analysis.fit import schema_of
from pipeline.quality.conformance import versions
from pipeline.quality.reconcile import asked_here
from pipeline.tables import EXCHANGES, FRAMES
from tests.paths import CAPTURES
from tests.pipeline.quality.test_relations import EVERY, diagnosed
from tests.pipeline.rows import row

LONG_AGO = date(1, 1, 2)
FETCH, API_VERSIONS, UNSUPPORTED = 1, 18, 35


def counted(frames: pa.Table, exchanges: pa.Table) -> list[tuple[str, int, int]]:
    with asked_here({FRAMES.full_name: frames, EXCHANGES.full_name: exchanges}) as ask:
        return [(one["subject"], one["expected"], one["found"]) for one in versions(ask, LONG_AGO).to_pylist()]


def states(most: int, error: int = 0, **values: Any) -> dict[str, Any]:
    """A response to ApiVersions that allows Fetch from version 4 on."""
    body = {"errorCode": error, "apiKeys": [{"apiKey": FETCH, "minVersion": 4, "maxVersion": most}]}
    return row(FRAMES, api_key=API_VERSIONS, direction="response", body=json.dumps(body), **values)


def fetched(version: int, **values: Any) -> dict[str, Any]:
    return row(EXCHANGES, api_key=FETCH, api_name="Fetch", api_version=version, **values)


def judged(frames: list[dict[str, Any]], exchanges: list[dict[str, Any]]) -> list[tuple[str, int, int]]:
    tables = (pa.Table.from_pylist(rows, schema_of(t)) for rows, t in ((frames, FRAMES), (exchanges, EXCHANGES)))
    return counted(*tables)


@pytest.mark.parametrize(("version", "fits"), [(3, 0), (4, 1), (12, 1), (13, 0)])
def test_a_version_is_within_what_was_advertised(version: int, fits: int) -> None:
    assert judged([states(12)], [fetched(version)]) == [(f"Fetch v{version}", 1, fits)]


def test_a_broker_that_was_upgraded_has_advertised_both() -> None:
    assert judged([states(12), states(17)], [fetched(17), fetched(17), fetched(18)]) == [
        ("Fetch v17", 2, 2),
        ("Fetch v18", 1, 0),
    ]


def test_an_api_that_was_not_advertised_has_no_version() -> None:
    other = row(EXCHANGES, api_key=0, api_name="Produce", api_version=3)
    assert judged([states(12)], [other]) == [("Produce v3", 1, 0)]


@pytest.mark.parametrize(
    ("frames", "exchange"),
    [
        ([states(12)], fetched(13, error_codes=[UNSUPPORTED])),  # the broker said so itself
        ([states(12)], fetched(13, status="unanswered")),
        ([states(12)], fetched(13, server_ip="192.0.2.7")),  # which has advertised nothing
        ([states(12, error=UNSUPPORTED)], fetched(13)),
        ([states(12) | {"body": "[1"}], fetched(13)),
        ([states(12) | {"body": '{"errorCode":0,"apiKeys":[7]}'}], fetched(13)),
    ],
)
def test_what_cannot_be_judged_does_not_count(frames: list[dict[str, Any]], exchange: dict[str, Any]) -> None:
    assert judged(frames, [exchange]) == []


def test_recordings_use_what_was_advertised() -> None:
    for name in ("stuck_commit.pcap", "old_format.pcap", "version_negotiation.pcap"):
        tables = diagnosed(CAPTURES / name)
        found = counted(tables[FRAMES.full_name], tables[EXCHANGES.full_name])
        assert found, name
        assert [one for one in found if one[1] != one[2]] == []


@pytest.mark.proof
@pytest.mark.parametrize("capture", EVERY, ids=lambda path: path.name)
def test_every_recording_uses_what_was_advertised(capture: Any) -> None:
    tables = diagnosed.__wrapped__(capture)
    found = counted(tables[FRAMES.full_name], tables[EXCHANGES.full_name])
    assert [one for one in found if one[1] != one[2]] == []
