"""Do findings that are reported while traffic goes on end as those of a diagnosis of all of it, and none twice?"""

from __future__ import annotations

import random
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.analysis.derive import derive_from
from pipeline.analysis.gathering import Gathering
from pipeline.embedded.diagnosis import Diagnosis, decoded, diagnose
from pipeline.embedded.following import Change, Following, Reported
from pipeline.embedded.inputs import Landed, read_inputs
from pipeline.settings import StreamSettings
from pipeline.tables import EXCHANGES, FRAMES
from tests.paths import CAPTURES
from tests.pipeline.analysis.rules.incidents import RECORDINGS, recordings

STREAM = StreamSettings()
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


def all_changes(following: Following, some: list[tuple[pa.Table, pa.Table]], judged: set[int]) -> list[Change]:
    found: list[Change] = []
    for number, (frames, gaps) in enumerate(some):
        following.add(frames, gaps)
        if number in judged or number == len(some) - 1:
            found += following.judge()
    return found


@pytest.mark.parametrize(
    "name", [name if name == "healthy" else pytest.param(name, marks=pytest.mark.slow) for name in PCAPS]
)
def test_however_it_is_cut_it_ends_as_a_diagnosis_of_all_of_it(name: str) -> None:
    chance = random.Random(name)
    some = pieces(PCAPS[name], [chance.random() for _ in range(7)])
    following = Following(STREAM, by_kernel=False)
    all_changes(following, some, {2, 4})
    found = following.diagnosis()
    assert found is not None
    expected = whole(PCAPS[name])
    for table, rows in expected.tables.items():
        if table != FRAMES.full_name:
            without = BODIES if table == EXCHANGES.full_name else set[str]()
            assert in_any_order(found.tables[table], without) == in_any_order(rows, without), table
    assert found.looked == expected.looked
    assert following.frames == landed(PCAPS[name]).frames.num_rows


@pytest.mark.slow
@settings(max_examples=5, deadline=None)
@given(cuts=st.lists(st.floats(0, 1), max_size=12), judged=st.sets(st.integers(0, 12)))
def test_findings_do_not_depend_on_cuts(cuts: list[float], judged: set[int]) -> None:
    path = PCAPS["stuck_commit"]
    following = Following(STREAM, by_kernel=False)
    changes = all_changes(following, pieces(path, cuts), judged)
    found = following.diagnosis()
    assert found is not None
    assert in_any_order(found.findings) == in_any_order(whole(path).findings)
    ended = {change.row["finding_id"]: change.kind for change in changes}
    over = {row["finding_id"] for row in found.findings.to_pylist() if row["state"] == "closed"}
    assert {row["finding_id"] for row in found.findings.to_pylist()} <= set(ended)
    assert all(ended[one] == "over" for one in over if sum(c.row["finding_id"] == one for c in changes) > 1)


def row(state: str = "open", severity: str = "warning", finding_id: str = "one") -> dict[str, Any]:
    return {"finding_id": finding_id, "state": state, "severity": severity}


def test_each_change_is_reported_once() -> None:
    reported = Reported()

    def kinds(*rows: dict[str, Any]) -> list[str]:
        return [change.kind for change in reported.changes(rows)]

    assert kinds(row()) == ["new"]
    assert kinds(row()) == []
    assert kinds(row(severity="critical")) == ["worse"]
    assert kinds(row()) == []
    assert kinds(row("closed")) == ["over"]
    assert kinds(row("closed")) == []
    assert kinds(row()) == ["again"]
    assert kinds() == ["over"]
    assert kinds() == []
    assert kinds(row("closed", finding_id="two")) == ["new"]
    assert kinds(row("closed", finding_id="two")) == []


@pytest.mark.slow
def test_what_is_too_much_is_dropped_and_what_was_found_in_it_stays() -> None:
    path = PCAPS["stuck_commit"]
    following = Following(STREAM, most=300, by_kernel=False)
    parts = [number / 20 for number in range(20)]
    changes = all_changes(following, pieces(path, parts), set(range(20)))
    found = following.diagnosis()
    assert found is not None
    assert following.since_us is not None
    assert found.derived.of(EXCHANGES).num_rows <= 300 + 1330 // 20 + 50  # it is dropped before the next piece
    assert (found.looked.exchanges, found.looked.connections) == (1330, 16)
    assert "stuck_commit" in {change.row["rule"] for change in changes}
    assert "stuck_commit" in {row["rule"] for row in found.findings.to_pylist()}


@pytest.mark.slow
def test_bodies_stay_only_where_a_rule_looks_into_them() -> None:
    rows = landed(PCAPS["stuck_commit"])
    gathering = Gathering(STREAM)
    gathering.add(decoded(rows.frames), rows.gaps)
    kept = derive_from(gathering.kept, STREAM).of(EXCHANGES)
    full = whole(PCAPS["stuck_commit"]).derived.of(EXCHANGES)
    assert kept.num_rows == full.num_rows
    for column in ("request_body", "response_body"):
        assert kept.column(column).null_count == full.column(column).null_count
    assert kept.select(list(BODIES)).nbytes < full.select(list(BODIES)).nbytes / 3
