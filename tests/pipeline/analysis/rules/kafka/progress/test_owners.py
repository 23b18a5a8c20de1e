"""Whose commits leave a partition out: by client and host, and by port and member where two processes are alike."""

from __future__ import annotations

import json

import pytest

from pipeline.analysis.incidents.incidents import grouped
from tests.pipeline.analysis.rules.kafka.positions.stage import Client
from tests.pipeline.analysis.rules.kafka.progress.owner_stages import ELSEWHERE, left_out

SUBJECT = ("partition_dropped_from_commits", "payments/orders-0")


@pytest.mark.parametrize(
    ("other", "name"),
    [
        (ELSEWHERE, "app at 10.0.0.5"),
        (Client("app", "payments", 42_002, "app-b"), "app at 10.0.0.5 (member app-a, 10.0.0.5:42001)"),
    ],
    ids=["another host", "the same host"],
)
def test_the_owner_is_named_so_that_it_can_be_found(other: Client, name: str) -> None:
    row = left_out(other).findings()[SUBJECT]
    assert f"by {name}, which holds it" in row["summary"]
    assert row["details"]["clients"] == ["app at 10.0.0.5"]
    (incident,) = grouped([{**row, "details": json.dumps(row["details"])}]).incidents
    shown = name.replace("app at 10.0.0.5", "app (10.0.0.5)") if other.host == "10.0.0.6" else name
    assert incident["headline"].startswith(f"{shown} of group payments no longer commits orders-0")
    assert incident["immediate_action"].startswith(
        f"Take a stack dump of {shown}, then restart it: its worker for orders-0 has died or hangs"
    )


def test_who_still_fetches_what_it_does_not_commit_has_not_paused_it() -> None:
    row = left_out(seconds=110, fetches=True).findings()[SUBJECT]
    (incident,) = grouped([{**row, "details": json.dumps(row["details"])}]).incidents
    assert incident["headline"].startswith(
        "app (10.0.0.5) of group payments still fetches orders-0 but no longer commits it, although it commits the "
        "topic's other partitions: 100 records are not committed"
    )
    assert incident["immediate_action"].startswith(
        "Take a stack dump of app (10.0.0.5): it still fetches orders-0, so nothing is paused."
    )
