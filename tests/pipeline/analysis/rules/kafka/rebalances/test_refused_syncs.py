"""A group whose only member is refused each SyncGroup cannot begin; one whose member rejoins by itself can."""

from __future__ import annotations

from typing import Any

import pytest

from tests.pipeline.analysis.rules.kafka.processes.fenced_stages import cannot_begin

CODES = {14: "COORDINATOR_LOAD_IN_PROGRESS", 16: "NOT_COORDINATOR", 22: "ILLEGAL_GENERATION",
         25: "UNKNOWN_MEMBER_ID", 27: "REBALANCE_IN_PROGRESS"}  # fmt: skip


def storms(**more: Any) -> list[dict[str, Any]]:
    return [row for (rule, _), row in cannot_begin(**more).findings().items() if rule == "rebalance_storm"]


@pytest.mark.parametrize("code", CODES)
def test_a_member_whose_sync_is_refused_each_time_is_a_warning(code: int) -> None:
    (row,) = storms(code=code)
    assert (row["severity"], row["subject"]) == ("warning", "orders-app")
    assert f"each SyncGroup was refused ({CODES[code]})" in row["summary"]
    assert "why it refuses SyncGroup" in row["advice"]


def test_a_member_that_rejoins_by_itself_is_none() -> None:
    (row,) = storms(code=0)
    assert row["severity"] == "info"
    assert "SyncGroup" not in row["summary"]


def test_a_group_that_was_given_an_assignment_has_begun() -> None:
    (row,) = storms(accepted=2)
    assert row["severity"] == "info"
