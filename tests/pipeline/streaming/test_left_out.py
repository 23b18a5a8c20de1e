"""A backfill or maintenance in which steps fail does everything else, and ends with an error for whoever asked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pipeline.analysis.safety.guard import Noted, contain, noting
from pipeline.config.settings import StreamSettings
from pipeline.streaming import job
from pipeline.streaming.operations.requests import Backfill, Maintenance, RefusedError
from pipeline.streaming.storage.lake import Lake

DAY = date(2026, 3, 1)
REQUESTS = (Backfill(first=DAY, last=DAY, recode=False), Maintenance())


class FakeQueries:
    """Runs nothing; its refresh of gold fails in as many steps as it is asked to."""

    done: list[str]
    failing = 0

    def __init__(self, *given: Any) -> None:
        (self.summary,) = (one for one in given if isinstance(one, job.StreamSummary))

    exchanges, gold = "exchanges", "gold"

    def run(self, query: str) -> None:
        self.done.append(query)
        with noting(self.summary.errors):
            for number in range(self.failing if query == "gold" else 0):
                contain(KeyError("canary"), f"rule {number}")


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    @contextmanager
    def noting_here(*_: Any) -> Iterator[Noted]:
        with noting() as noted:
            yield noted

    found: list[str] = []
    monkeypatch.setattr(FakeQueries, "done", found, raising=False)
    monkeypatch.setattr(FakeQueries, "failing", 0)
    monkeypatch.setattr(job, "Queries", FakeQueries)
    monkeypatch.setattr(job, "noting_steps", noting_here)
    monkeypatch.setattr(job, "backfill_days", lambda *_, **__: found.append("days"))
    monkeypatch.setattr(job, "maintain_tables", lambda *given: given[-2]())
    return found


def do(tmp_path: Path, request: Backfill | Maintenance, lines: list[str]) -> None:
    spark: Any = SimpleNamespace()
    job._Job(spark, Lake.at(tmp_path), StreamSettings()).do(request, lines.append)


@pytest.mark.parametrize("request_", REQUESTS, ids=["backfill", "maintenance"])
def test_a_refresh_that_leaves_steps_out_ends_with_an_error(
    done: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request_: Backfill | Maintenance
) -> None:
    do(tmp_path, request_, [])
    monkeypatch.setattr(FakeQueries, "failing", 2)
    done.clear()
    with pytest.raises(RefusedError, match="left out 2 steps that failed; everything else is done"):
        do(tmp_path, request_, [])
    assert done[-1] == "gold"


def test_a_failing_step_of_a_backfill_is_reported_and_gold_still_follows(
    done: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job, "backfill_days", lambda *_, **__: contain(KeyError("canary"), "statements", "a-1"))
    lines: list[str] = []
    with pytest.raises(RefusedError, match="the backfill left out 1 step that failed"):
        do(tmp_path, REQUESTS[0], lines)
    assert done[-1] == "gold"
    assert lines[0].startswith("backfill: warning: statements: internal error on a-1: KeyError")
