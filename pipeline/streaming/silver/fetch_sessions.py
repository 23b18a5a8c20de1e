"""The partitions that each fetch session holds: statements of silver → ``silver.fetch_sessions``.

A refresh follows every session again from the first day that has news; what it held before comes from its open rows of
the day before that.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.analysis.ownership.fetch_sessions import KINDS, fetch_sessions
from pipeline.streaming.storage.lake_io import LakeIO
from pipeline.streaming.storage.table_scan import TableScan
from pipeline.tables import FETCH_SESSIONS, OFFSET_EVENTS, STATE_EVENTS


def refresh_fetch_sessions(rows: LakeIO, first: date) -> None:
    """Recompute the days from ``first`` on."""
    day_before = first - timedelta(days=1)

    def follow(tables: Mapping[str, pa.Table]) -> pa.Table:
        held = tables["held"]
        is_open = pc.and_(pc.equal(held.column("date"), pa.scalar(day_before)), held.column("is_open"))
        return fetch_sessions(tables["events"], tables["states"], held.filter(is_open))

    made = rows.derive(
        follow,
        {
            "events": TableScan(OFFSET_EVENTS, from_day=first, kinds=KINDS, present=("session_id",), once=True),
            "states": TableScan(STATE_EVENTS, from_day=first, kinds=("fetch_session",), once=True),
            "held": TableScan(FETCH_SESSIONS, from_day=day_before),
        },
        ("server", "session_id"),
        FETCH_SESSIONS,
    )
    rows.replace_dates(made, FETCH_SESSIONS, first)
