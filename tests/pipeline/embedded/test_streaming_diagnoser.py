"""Findings reported while traffic continues end as those of a diagnosis of all of it, and none comes twice."""

from __future__ import annotations

import random
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.analysis.derive import derive_from
from pipeline.analysis.event_window import TABLES, EventWindow
from pipeline.config.settings import StreamSettings
from pipeline.embedded.diagnosis import Diagnosis, decoded, diagnose
from pipeline.embedded.finding_retention import remembered
from pipeline.embedded.inputs import Landed, read_inputs
from pipeline.embedded.streaming_diagnoser import Change, Reported, StreamingDiagnoser
from pipeline.tables import EXCHANGES, EXCHANGES_WITH_BODIES, FRAMES, PENDING_EXCHANGES
from tests.paths import CAPTURES
from tests.pipeline.analysis.rules.incidents import RECORDINGS, recordings

STREAM = StreamSettings()
DECLARED = {one.name: one.expected for one in recordings(RECORDINGS)}
PCAPS = {one.name: one.pcap for one in recordings(RECORDINGS)} | {
    path.stem: path
    for path in (
        CAPTURES / "healthy.pcap",
        CAPTURES / "version_negotiation.pcap",
        CAPTURES / "mongodb" / "troubled_mongodb.pcap",
        CAPTURES / "old_format.pcap",
    )
}
BODIES = {"request_body", "response_body"} | {
    f"{h}_{p}" for h in ("request", "response") for p in ("embedded", "header")
}


@cache
def landed(path: Path) -> Landed:
    """In the order in which an agent would land them."""
    found = read_inputs([str(path)])
    return Landed(found.frames.sort_by("ts_end"), found.gaps.sort_by("ts"), found.stats)


@cache
def whole(path: Path) -> Diagnosis:
    return diagnose(landed(path), STREAM)


def pieces(path: Path, cuts: list[float]) -> list[tuple[pa.Table, pa.Table]]:
    """Frames cut where a part of them has come; gaps come with the first frames after them."""
    rows = landed(path)
    places = sorted({0, rows.frames.num_rows, *(int(cut * rows.frames.num_rows) for cut in cuts)})
    spans = list(pairwise(places))
    gaps = [int(len(spans) * place / max(rows.gaps.num_rows, 1)) for place in range(rows.gaps.num_rows)]
    return [
        (rows.frames.slice(begin, end - begin), rows.gaps.filter(pa.array([of == number for of in gaps], pa.bool_())))
        for number, (begin, end) in enumerate(spans)
    ]


def in_any_order(rows: pa.Table, without: set[str] = frozenset()) -> list[str]:  # type: ignore[assignment]
    kept = [name for name in rows.column_names if name not in without]
    return sorted(map(repr, rows.select(kept).to_pylist()))


def all_changes(following: StreamingDiagnoser, some: list[tuple[pa.Table, pa.Table]], judged: set[int]) -> list[Change]:
    found: list[Change] = []
    for number, (frames, gaps) in enumerate(some):
        following.add(frames, gaps)
        if number in judged or number == len(some) - 1:
            found += following.judge()
    return found


_COST = {"healthy": (), **dict.fromkeys(("stuck_commit", "stalled_lso", "lossy", "troubled_mongodb"), pytest.mark.slow)}
"""Recordings that are cut here at each change; the others are a proof."""


@pytest.mark.parametrize("name", [pytest.param(name, marks=_COST.get(name, pytest.mark.proof)) for name in PCAPS])
def test_however_it_is_cut_it_ends_as_a_diagnosis_of_all_of_it(name: str) -> None:
    chance = random.Random(name)
    some = pieces(PCAPS[name], [chance.random() for _ in range(7)])
    following = StreamingDiagnoser(STREAM, by_kernel=False)
    all_changes(following, some, {2, 4})
    found = following.diagnosis()
    assert found is not None
    expected = whole(PCAPS[name])
    if name in DECLARED:
        known = {(one["rule"], one["subject"]): one["severity"] for one in expected.findings.to_pylist()}
        assert DECLARED[name] <= set(known)
        assert {known[other] for other in set(known) - DECLARED[name]} <= {"info"}
    for table, rows in expected.tables.items():
        if table not in {FRAMES.full_name, PENDING_EXCHANGES.full_name}:  # frames are not kept, nor halves as they came
            without = BODIES if table == EXCHANGES_WITH_BODIES.full_name else set[str]()
            assert in_any_order(found.tables[table], without) == in_any_order(rows, without), table
    assert found.looked == expected.looked
    assert following.frames == landed(PCAPS[name]).frames.num_rows


@pytest.mark.slow
@settings(max_examples=5, deadline=None)
@given(cuts=st.lists(st.floats(0, 1), max_size=12), judged=st.sets(st.integers(0, 12)))
def test_findings_do_not_depend_on_cuts(cuts: list[float], judged: set[int]) -> None:
    path = PCAPS["stuck_commit"]
    following = StreamingDiagnoser(STREAM, by_kernel=False)
    changes = all_changes(following, pieces(path, cuts), judged)
    found = following.diagnosis()
    assert found is not None
    assert in_any_order(found.findings) == in_any_order(whole(path).findings)
    ended = {change.row["finding_id"]: change.kind for change in changes}
    over = {row["finding_id"] for row in found.findings.to_pylist() if row["state"] == "resolved"}
    assert {row["finding_id"] for row in found.findings.to_pylist()} <= set(ended)
    assert all(ended[one] == "resolved" for one in over if sum(c.row["finding_id"] == one for c in changes) > 1)


def row(state: str = "ongoing", severity: str = "warning", finding_id: str = "one") -> dict[str, Any]:
    return {"finding_id": finding_id, "state": state, "severity": severity}


def test_each_change_is_reported_once() -> None:
    reported = Reported()

    def kinds(*rows: dict[str, Any]) -> list[str]:
        return [change.kind for change in reported.changes(rows)]

    assert kinds(row()) == ["new"]
    assert kinds(row()) == []
    assert kinds(row(severity="critical")) == ["worse"]
    assert kinds(row()) == []
    assert kinds(row("resolved")) == ["resolved"]
    assert kinds(row("resolved")) == []
    assert kinds(row()) == ["again"]
    assert kinds() == ["resolved"]
    assert kinds() == []
    assert kinds(row("resolved", finding_id="two")) == ["new"]
    assert kinds(row("resolved", finding_id="two")) == []


@pytest.mark.slow
def test_what_is_too_much_is_dropped_and_what_was_found_in_it_stays() -> None:
    path = PCAPS["stuck_commit"]
    following = StreamingDiagnoser(STREAM, most=300, by_kernel=False)
    parts = [number / 20 for number in range(20)]
    changes = all_changes(following, pieces(path, parts), set(range(0, 20, 3)))
    found = following.diagnosis()
    assert found is not None
    assert following.since_us is not None
    assert found.derived.of(EXCHANGES).num_rows <= 300 + 1330 // 20 + 50  # it is dropped before the next piece
    assert (found.looked.exchanges, found.looked.connections) == (1330, 16)
    assert "stuck_commit" in {change.row["rule"] for change in changes}
    assert "stuck_commit" in {row["rule"] for row in found.findings.to_pylist()}


def past(number: int, state: str = "resolved", severity: str = "warning") -> dict[str, Any]:
    return {**row(state, severity, f"f{number}"), "incident_id": f"i{number // 2}", "last_us": number}


def test_of_findings_that_are_past_the_oldest_incidents_are_forgotten() -> None:
    rows = [past(0, severity="critical"), past(1), past(2, "ongoing"), *(past(number) for number in range(3, 12))]
    assert remembered(rows, {"f11"}, set(), 11) == rows
    kept = {one["finding_id"] for one in remembered(rows, {"f11"}, set(), 7)}
    # That of a critical finding stays, and that which was not over; incidents go as a whole.
    assert kept == {"f0", "f1", "f2", "f3", "f8", "f9", "f10", "f11"}
    assert remembered(rows, {one["finding_id"] for one in rows}, set(), 6) == rows


def test_of_an_incident_that_goes_on_what_is_past_is_forgotten_but_its_root() -> None:
    rows = [{**past(number), "incident_id": "one"} for number in range(9)]
    kept = [one["finding_id"] for one in remembered(rows, {"f8"}, {"f0"}, 3)]
    assert kept == ["f0", "f6", "f7", "f8"]


def test_that_something_was_reported_is_known_for_a_while() -> None:
    reported = Reported(most=2)
    names = ["one", "two", "three"]
    for name in names:
        assert [change.kind for change in reported.changes([row(finding_id=name)])][:1] == ["new"]
    list(reported.changes([]))
    assert [change.kind for change in reported.changes([row(finding_id="three")])] == ["again"]
    assert [change.kind for change in reported.changes([row(finding_id="one")])] == ["new", "resolved"]


def renamed(rows: pa.Table, columns: tuple[str, ...], number: int) -> pa.Table:
    """The same of other connections, a minute later each time."""
    for name in columns:
        texts = pc.binary_join_element_wise(rows.column(name), pa.scalar(f"#{number}", pa.string()), "")
        rows = rows.set_column(rows.column_names.index(name), name, texts.cast(rows.schema.field(name).type))
    for name in ("ts", "ts_end"):
        if name in rows.column_names:
            late = pc.add(rows.column(name).cast(pa.int64()), number * 60_000_000)
            rows = rows.set_column(rows.column_names.index(name), name, late.cast(rows.schema.field(name).type))
    return rows


@pytest.mark.slow
def test_all_that_is_kept_has_a_bound_and_each_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of all kinds, not exchanges alone; requests that wait; connections."""
    monkeypatch.setattr("pipeline.analysis.event_window.ROWS_AN_EXCHANGE", 2)
    rows = landed(PCAPS["stuck_commit"])
    frames, no_gaps = rows.frames.slice(0, 900), rows.gaps.slice(0, 0)
    requests = frames.filter(pc.equal(frames.column("direction"), "request"))
    following = StreamingDiagnoser(STREAM, most=600, by_kernel=False)
    for number in range(4):
        following.add(renamed(frames, ("connection_id", "exchange_id"), number), no_gaps)
        following.add(renamed(requests, ("connection_id", "exchange_id"), number + 100), no_gaps)
        kept = following.gathering.kept
        assert sum(getattr(kept, name).num_rows for name in TABLES) < 1200 + 3 * frames.num_rows
    gathering = following.gathering
    assert gathering.reached == {"rows", "halves"}
    assert gathering.kept.exchanges.num_rows < 600
    assert gathering._halves.num_rows <= 600
    assert len(following.limits()) == 2
    assert following.limits() == []


@pytest.mark.slow
def test_bodies_stay_only_where_a_rule_looks_into_them() -> None:
    rows = landed(PCAPS["stuck_commit"])
    gathering = EventWindow(STREAM)
    gathering.add(decoded(rows.frames), rows.gaps)
    kept = derive_from(gathering.kept, STREAM).of(EXCHANGES_WITH_BODIES)
    full = whole(PCAPS["stuck_commit"]).derived.of(EXCHANGES_WITH_BODIES)
    assert kept.num_rows == full.num_rows
    for column in ("request_body", "response_body"):
        assert kept.column(column).null_count == full.column(column).null_count
    assert kept.select(list(BODIES)).nbytes < full.select(list(BODIES)).nbytes / 3
