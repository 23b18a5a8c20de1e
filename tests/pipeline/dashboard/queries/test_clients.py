"""Which client breaks on which release of Kafka: verdicts, and their matrix."""

from __future__ import annotations

import pytest

from decoder.kafka.schema.releases import releases
from pipeline.analysis.clients import refused
from pipeline.dashboard.queries.clients import verdicts


def test_a_release_refuses_what_it_has_removed_and_another_may_have_taken_it_back() -> None:
    found = refused(["JoinGroup v0", "Produce v2", "Fetch v12", "Nothing v1", "WriteTxnMarkers v0"])
    assert list(found) == list(releases())
    assert found["3.9.2"] == []
    assert found["4.0.0"] == ["JoinGroup v0", "Produce v2"]
    assert found["4.0.1"] == ["Produce v2"]


def test_clients_that_break_on_most_releases_come_first() -> None:
    pytest.importorskip("altair")
    from pipeline.dashboard.web.pictures.clients_picture import matrix  # noqa: PLC0415 - not without Altair

    rows = [
        {"protocol": protocol, "client_id": name, "client_ip": "1.1.1.1", "api_versions": versions}
        for name, protocol, versions in (
            ("new", "kafka", ["Fetch v12"]),
            ("", "kafka", ["Produce v0"]),
            ("only 4.0.0", "kafka", ["JoinGroup v1"]),
            ("shop", "mongodb", []),
        )
    ]
    found = verdicts(rows)
    assert [(one.client, one.breaks) for one in found] == [
        ("no client id at 1.1.1.1", len(releases()) - 1), ("only 4.0.0 at 1.1.1.1", 1), ("new at 1.1.1.1", 0),
    ]  # fmt: skip
    chart = matrix(found, dark=False).to_dict()
    cells = next(iter(chart["datasets"].values()))
    assert {(cell["client"], cell["release"]): cell["text"] for cell in cells}["new at 1.1.1.1", "4.0.0"] == "answered"
    assert len(cells) == 3 * len(releases())
