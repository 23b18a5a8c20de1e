"""Which request versions of a client does Kafka 4 refuse? As the schema table of both releases shows."""

from __future__ import annotations

import pytest

from pipeline.analysis.clients import Client


@pytest.mark.parametrize(
    ("versions", "removed"),
    [
        ({("Produce", 3), ("Fetch", 4), ("Metadata", 0), ("ApiVersions", 3)}, []),
        ({("Produce", 2), ("Produce", 9)}, [("Produce", 2)]),
        ({("Fetch", 3), ("ListOffsets", 0)}, [("Fetch", 3), ("ListOffsets", 0)]),
        ({("LeaderAndIsr", 7)}, []),  # gone as a whole, but only controllers send it, which are upgraded themselves
        ({("JoinGroup", 0)}, []),  # 4.0.0 alone refuses it
        ({("Fetch", 99)}, []),  # not old, but not known
        (set(), []),
    ],
)
def test_removed_versions(versions: set[tuple[str, int]], removed: list[tuple[str, int]]) -> None:
    assert Client(0, 0, versions=versions).removed() == removed


def test_the_oldest_version_of_each_api() -> None:
    assert Client(0, 0, versions={("Fetch", 12), ("Fetch", 4), ("Produce", 9)}).oldest() == [
        ("Fetch", 4),
        ("Produce", 9),
    ]
