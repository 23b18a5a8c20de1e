"""States how well the wire was seen."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import duckdb
import pytest

from pipeline.dashboard.queries.overview.health import Health, health
from pipeline.dashboard.queries.scope import Scope
from pipeline.dashboard.sql import connect
from pipeline.tables import EXCHANGES, FRAMES, GAPS, LANDING_FILES, STREAM_PROGRESS
from tests.pipeline.dashboard.conftest import at
from tests.pipeline.rows import T0, row, write

SPAN = Scope(T0, at(100))


def test_what_was_seen_and_what_was_lost(tmp_path: Path) -> None:
    def exchange(name: str, agent: str, seconds: float) -> dict[str, object]:
        return row(EXCHANGES, exchange_id=name, connection_id=name[0], agent_id=agent, ts=at(seconds))

    write(tmp_path, EXCHANGES, [exchange("a1", "one", 1), exchange("a2", "one", 2), exchange("b1", "two", 3)])
    write(tmp_path, FRAMES, [row(FRAMES, seq=n, ts=at(n)) for n in range(5)] + [row(FRAMES, seq=9, ts=at(500))])
    write(tmp_path, GAPS, [row(GAPS, connection_id="a", seq=n, ts=at(1), bytes_lost=100) for n in (1, 2)])
    write(tmp_path, LANDING_FILES, [row(LANDING_FILES, file=text, status=text) for text in ("read", "damaged", "lost")])
    write(tmp_path, STREAM_PROGRESS, [row(STREAM_PROGRESS, batch_id=n, finished_at=at(n)) for n in (7, 9)])
    assert health(connect(tmp_path), SPAN) == Health(("one", "two"), 2, 3, 5, 2, 200, 1, 2, at(9))


def test_what_cannot_be_read_is_not_known_rather_than_zero() -> None:
    with duckdb.connect() as empty:
        assert health(empty, SPAN) == Health()
        assert health(empty, SPAN).gaps is None


@pytest.mark.parametrize(
    ("written", "newest", "now", "behind"),
    [
        (None, 90, 100, None),  # a lake that no job writes
        (95, 90, 100, 5.0),
        (95, 90, 5000, None),  # not written any more
        (100_000, 90, 100_001, None),  # an old capture that was read just now
        (80, 90, 100, None),  # clocks that do not agree
    ],
)
def test_how_far_behind_the_wire(written: float | None, newest: float, now: float, behind: float | None) -> None:
    seen = Health(written=None if written is None else T0 + timedelta(seconds=written))
    assert seen.behind_seconds(at(newest), at(now)) == behind
