"""Servers that a driver does not accept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pipeline.analysis.codes.mongodb.drivers import least_wire_version, mongodb_of
from pipeline.analysis.rules.run import finding_rows
from pipeline.config.settings import StreamSettings
from pipeline.embedded.diagnosis import diagnose
from pipeline.embedded.inputs import read_inputs
from tests.pipeline.analysis.rules.old_server import polls
from tests.pipeline.capture.wire import pcap


def judged(folder: Path, **how: Any) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Findings above info, and incidents."""
    capture = folder / "polls.pcap"
    capture.write_bytes(pcap(polls(**how)))
    found = diagnose(read_inputs([str(capture)]), StreamSettings())
    rows = [row for row in finding_rows(found.findings) if row["severity"] != "info"]
    return rows, found.incidents.to_pylist()


def test_a_driver_that_is_too_new_is_named_with_both_versions(tmp_path: Path) -> None:
    ((row,), (incident,)) = judged(tmp_path)
    assert (row["rule"], row["subject"], row["severity"]) == ("mongo_command_failed", "admin/hello of shop", "warning")
    details = json.loads(row["details"])
    assert (details["wire_version"], details["least_wire_version"], details["times"]) == (6, 8, 6)
    assert "sent no command" in row["summary"]
    assert incident["headline"] == (
        "10.0.0.9:27017 is too old for the driver of shop (10.0.0.5): it speaks wire versions up to 6 (MongoDB 3.6), "
        "nodejs 7.0.0 needs 8 or newer (MongoDB 4.2)"
    )
    assert "still accepts MongoDB 3.6" in incident["immediate_action"]


def test_an_application_without_name_goes_by_its_address(tmp_path: Path) -> None:
    ((row,), _) = judged(tmp_path, application=None)
    assert row["subject"] == "admin/hello of 10.0.0.5"


@pytest.mark.parametrize(
    "how",
    [
        {"wire_version": 8},
        {"wire_version": None},
        {"version": "5.9.0"},
        {"version": "unknown"},
        {"driver": "a driver that nobody knows"},
        {"asks": {"count": "orders", "$db": "shop"}},
    ],
    ids=["new enough", "not stated", "an old driver", "no version", "another driver", "a command"],
)
def test_what_a_driver_accepts_is_no_finding(tmp_path: Path, how: dict[str, Any]) -> None:
    assert judged(tmp_path, **how)[0] == []


@pytest.mark.parametrize(
    ("driver", "version", "least"),
    [
        ("PyMongo", "4.20.0", 9),
        ("PyMongo|c", "4.14.1", 8),
        ("PyMongo|Motor", "4.11.0|3.7", 7),
        ("PyMongo", "3.13.0", None),
        ("nodejs|Mongoose", "6.10.0|8.9.0", 7),
        ("mongo-java-driver|sync", "5.5.1", 8),
        ("mongo-go-driver", "v2.4.0", 8),
        ("mongo-go-driver", "2.10.0", 9),
        ("mongoc / ext-mongodb:PHP", "2.1.0 / 2.1.0", 8),
        (None, "7.0", None),
        ("nodejs", None, None),
    ],
)
def test_the_least_wire_version_is_that_of_the_release(driver: str | None, version: str | None, least: int) -> None:
    assert least_wire_version(driver, version) == least


def test_a_wire_version_is_named_by_the_release_of_mongodb() -> None:
    assert [mongodb_of(version) for version in (0, 1, 6, 16, 21, 99)] == ["2.4", "2.4", "3.6", "5.0", "7.0", "8.0"]
    assert mongodb_of(-1) == "2.4"
