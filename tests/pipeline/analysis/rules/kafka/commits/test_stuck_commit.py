"""Rule ``stuck_commit`` where only reading continues: how long a stay is usual, and who reads."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.analysis.rules.kafka.commits.stuck_commit import StuckCommit
from pipeline.analysis.rules.settings import finding_settings
from tests.pipeline.analysis.rules.kafka.group_rows import committed, known
from tests.pipeline.analysis.sources import sources

Row = dict[str, Any]


def reads(seconds: float, position: int, who: str | None = "a") -> Row:
    return known("fetched", seconds, fetch_position=position, client_id=who)


def stays(offset: int, first: int, times: int, who: str | None = "a") -> tuple[list[Row], list[Row]]:
    """An offset that is committed once a second while reading continues."""
    seconds = range(first, first + times)
    commits = [committed(n + 0.5, "a", offset, cluster="C") for n in seconds]
    return commits, [reads(n, 100 + n, who) for n in seconds]


def test_a_reader_without_a_name_is_called_so() -> None:
    commits, fetches = stays(5, 0, 400, None)
    (finding,) = StuckCommit.detect(sources(events=commits, timeline=fetches), finding_settings())
    assert "although a client without client_id continued reading up to 499" in finding.summary


@pytest.mark.parametrize(("last", "told"), [(60, False), (300, True)])
def test_a_stay_is_given_several_times_as_long_as_those_before(last: int, told: bool) -> None:
    parts = [stays(offset, 20 * offset, 20) for offset in range(10)]
    parts.append(stays(10, 200, last))
    commits, fetches = ([row for part in parts for row in part[which]] for which in (0, 1))
    found = StuckCommit.detect(sources(events=commits, timeline=fetches), finding_settings())
    assert [finding.details["old_offset"] for finding in found] == ([10] if told else [])
