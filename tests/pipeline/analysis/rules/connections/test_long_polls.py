"""Clients whose request timeout is shorter than fetch.max.wait.ms."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pipeline.analysis.rules.connections.doors import SERVER, found, packets, rows
from tests.pipeline.analysis.rules.connections.poll_stages import polls


@pytest.mark.parametrize("resets", [False, True])
def test_each_fetch_is_given_up(tmp_path: Path, resets: bool) -> None:
    some = packets(*polls(resets=resets))
    (row,) = [row for row in rows(tmp_path, some) if row["severity"] != "info"]
    assert (row["rule"], row["subject"]) == ("connection_churn", "app/10.0.0.5/Fetch")
    assert row["summary"].startswith(
        f"app at 10.0.0.5 closed 8 connections to {SERVER}:9092 within 30 s without an answer to Fetch, which "
        "lets the broker wait 40 s for records"
    )


@pytest.mark.parametrize(
    "how",
    [
        pytest.param({"times": 2}, id="twice"),
        pytest.param({"waits": 45}, id="a broker that does not answer in time"),
        pytest.param({"waits": 3}, id="clients that stop"),
        pytest.param({"waits": 6, "spread": 4}, id="at any moment"),
        pytest.param({"answers": True}, id="answered"),
    ],
)
def test_what_is_none(tmp_path: Path, how: dict[str, float]) -> None:
    assert not any(rule == "connection_churn" for rule in found(tmp_path, *polls(**how)))
