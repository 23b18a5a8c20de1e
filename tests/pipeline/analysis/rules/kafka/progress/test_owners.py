"""Whose commits leave a partition out: by client and host, and by port and member where two processes are alike."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pipeline.analysis.incidents.incidents import grouped
from tests.pipeline.analysis.rules.kafka.positions.stage import Client, Stage, records

SUBJECT = ("partition_dropped_from_commits", "payments/orders-0")


def left_out(other: Client, seconds: int = 180, *, fetches: bool = False) -> dict[tuple[str, str], dict[str, Any]]:
    """A member commits only one of the two partitions that it holds, from the first minute on."""
    stage, first = Stage(), Client("app", "payments", 42_001, "app-a")
    held = {first: (0, 1), other: (2,)}
    for offset, (member, some) in enumerate(held.items()):
        stage.join(0.1 + offset / 50, member, some)
    for at in range(seconds):
        end = 2 * (at + 1)
        for partition in range(3):
            stage.produce(at + 0.2 + partition / 50, partition, end - 2, 2)
        for member, some in held.items():
            goes_on = [n for n in some if n or at < 60]
            stage.fetch(
                at + 0.4, member, *((n, end - 2, end, records(end - 2, 2)) for n in (some if fetches else goes_on))
            )
            stage.commit(at + 0.6, member, dict.fromkeys(goes_on, end))
            stage.heartbeat(at + 0.8, member)
    return stage.findings()


@pytest.mark.parametrize(
    ("other", "name"),
    [
        (Client("app", "payments", 42_001, "app-b", host="10.0.0.6"), "app at 10.0.0.5"),
        (Client("app", "payments", 42_002, "app-b"), "app at 10.0.0.5 (member app-a, 10.0.0.5:42001)"),
    ],
    ids=["another host", "the same host"],
)
def test_the_owner_is_named_so_that_it_can_be_found(other: Client, name: str) -> None:
    row = left_out(other)[SUBJECT]
    assert f"by {name}, which holds it" in row["summary"]
    assert row["details"]["clients"] == ["app at 10.0.0.5"]
    (incident,) = grouped([{**row, "details": json.dumps(row["details"])}]).incidents
    shown = name.replace("app at 10.0.0.5", "app (10.0.0.5)") if other.host == "10.0.0.6" else name
    assert incident["headline"].startswith(f"{shown} of group payments no longer commits orders-0")
    assert incident["immediate_action"].startswith(
        f"Take a stack dump of {shown}, then restart it: its worker for orders-0 has died or hangs"
    )


def test_who_still_fetches_what_it_does_not_commit_has_not_paused_it() -> None:
    row = left_out(Client("app", "payments", 42_001, "app-b", host="10.0.0.6"), 110, fetches=True)[SUBJECT]
    (incident,) = grouped([{**row, "details": json.dumps(row["details"])}]).incidents
    assert incident["headline"].startswith(
        "app (10.0.0.5) of group payments still fetches orders-0 but no longer commits it, although it commits the "
        "topic's other partitions: 100 records wait there"
    )
    assert incident["immediate_action"].startswith(
        "Take a stack dump of app (10.0.0.5): it still fetches orders-0, so nothing is paused."
    )
