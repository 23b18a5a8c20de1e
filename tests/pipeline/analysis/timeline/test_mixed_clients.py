"""Clients that are told of the last stable offset beside others that are not: no transaction, and none is claimed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest

from pipeline.analysis.cluster_catalog import ClusterCatalog
from pipeline.analysis.derive import Derived, Gathered, derive_from, findings_of
from pipeline.analysis.rules.kafka.progress.points import group_points
from pipeline.analysis.rules.settings import finding_settings
from pipeline.analysis.tables import Tables
from pipeline.config.settings import StreamSettings
from pipeline.tables import (
    EXCHANGES_WITH_BODIES,
    GAPS,
    MONGO_COMMANDS,
    MONGO_HANDSHAKES,
    OFFSET_EVENTS,
    OFFSET_TIMELINE,
    RECORD_BATCHES,
    STATE_EVENTS,
)
from tests.pipeline.rows import T0, arrow, row

Row = dict[str, Any]
SECONDS = 240
GROUP = "committed-only"


def _event(seconds: float, kind: str, client: str, **more: Any) -> Row:
    where = {"cluster": "C", "server": "10.0.0.1:9092", "topic": "t", "partition": 0, "ordinal": 0, "error_code": 0}
    who = {
        "client_id": client,
        "client": f"10.0.0.9:{sum(map(ord, client))}",
        "exchange_id": f"{seconds:08.2f}{client}",
    }
    return row(OFFSET_EVENTS, ts=T0 + timedelta(seconds=seconds), kind=kind, **{**where, **who, **more})


def _traffic(held_from: int | None) -> Iterator[Row]:
    """Ten records a second. From a time on a transaction may hold the last stable offset, as far as responses state it.

    A reader of committed records fetches in a session, whose answers leave out what has no news; an old client is told
    of the high watermark alone, a monitor lists the last stable offset alone, a reader of a follower is told late.
    """
    for now in range(SECONDS):
        end = 10 * (now + 1)
        stable = end if held_from is None else min(end, 10 * held_from)
        yield _event(now + 0.1, "produced", "writer", offset=end - 10, next_offset=end, records=10)
        yield _event(now + 0.2, "fetched", "old", isolation_level="read_uncommitted", offset=end, high_watermark=end)
        reads = {"isolation_level": "read_committed"}
        if now % 30 == 7:
            yield _event(now + 0.3, "listed", "monitor", offset=stable, list_timestamp=-1, **reads)
        if now % 2 == 0:
            states = {"high_watermark": end, "last_stable_offset": stable, "next_offset": stable}
            yield _event(now + 0.4, "fetched", "new", offset=min(end - 20, stable), **states, **reads)
            yield _event(now + 0.5, "committed", "new", offset=stable, group_id=GROUP, member_id="m", generation=1)
        else:
            yield _event(now + 0.4, "fetched", "new", offset=min(end - 10, stable), error_code=None, **reads)
        late = {"high_watermark": end - 10, "last_stable_offset": min(end - 10, stable)}
        yield _event(now + 0.6, "fetched", "near", offset=end - 10, isolation_level="read_uncommitted", **late)


def _derived(held_from: int | None) -> Derived:
    events = arrow(OFFSET_EVENTS, list(_traffic(held_from)))
    named = [
        row(
            STATE_EVENTS, ts=T0 + timedelta(seconds=now), kind="heartbeat", cluster="C", server="10.0.0.1:9092",
            group_id=GROUP, member_id="m", client="10.0.0.9:330", client_id="new", error_code=0, exchange_id=f"h{now}",
        )
        for now in range(0, SECONDS, 3)
    ]  # fmt: skip
    nothing = {name: arrow(table) for name, table in _EMPTY.items()}
    found = Gathered(events=events, states=arrow(STATE_EVENTS, named), catalog=ClusterCatalog(), **nothing)
    return derive_from(found, StreamSettings())


_EMPTY = {
    "exchanges": EXCHANGES_WITH_BODIES, "pending": EXCHANGES_WITH_BODIES, "batches": RECORD_BATCHES,
    "commands": MONGO_COMMANDS, "handshakes": MONGO_HANDSHAKES, "gaps": GAPS,
}  # fmt: skip


def _rules(derived: Derived) -> set[str]:
    return {finding.rule for finding in findings_of(derived, finding_settings()).findings}


def _places(timeline: pa.Table) -> list[tuple[int | None, int | None]]:
    """What rules take for the last stable offset and the high watermark beside it."""
    tables = Tables({"timeline": timeline})
    try:
        return [(point.stable, point.stable_end) for point in group_points(tables) if point.stable is not None]
    finally:
        tables.close()


@pytest.fixture(scope="module")
def free() -> Derived:
    return _derived(None)


@pytest.fixture(scope="module")
def held() -> Derived:
    return _derived(30)


def test_without_a_transaction_no_rule_fires(free: Derived) -> None:
    assert _rules(free) == set()


def test_without_a_transaction_readers_of_committed_records_lag_as_others_do(free: Derived) -> None:
    lags = {(r["lag"], r["lag_read_committed"]) for r in free.of(OFFSET_TIMELINE).to_pylist() if r["group_id"]}
    assert {read_committed for lag, read_committed in lags if read_committed != lag} == {None}
    assert any(lag == read_committed for lag, read_committed in lags if lag)


def test_without_a_transaction_none_is_taken_to_hold_readers(free: Derived) -> None:
    places = _places(free.of(OFFSET_TIMELINE))
    assert len(places) > SECONDS // 10
    assert [(stable, end) for stable, end in places if stable != end] == []
    rows = [r for r in free.of(OFFSET_TIMELINE).to_pylist() if r["last_stable_offset"] is not None]
    assert [r for r in rows if r["last_stable_offset"] < (r["last_stable_high_watermark"] or 0)] == []
    carried = [r for r in rows if r["last_stable_offset"] < r["high_watermark"]]
    assert carried
    assert all(r["last_stable_ts"] <= r["ts"] for r in carried)


def test_a_transaction_that_holds_them_is_still_told_of(held: Derived) -> None:
    assert {"lso_stalled", "read_committed_starved"} <= _rules(held)
    last = [r for r in held.of(OFFSET_TIMELINE).to_pylist() if r["kind"] == "committed"][-1]
    assert (last["lag"], last["lag_read_committed"]) == (10 * SECONDS - 10 - 300, 0)
    assert (300, 10 * SECONDS - 10) in _places(held.of(OFFSET_TIMELINE))
