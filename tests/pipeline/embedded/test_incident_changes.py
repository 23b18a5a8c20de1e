"""Each incident is reported when it begins, changes its root and ends, and never the same twice."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.embedded.incident_changes import ReportedIncidents
from pipeline.embedded.streaming_diagnoser import StreamingDiagnoser
from tests.paths import CAPTURES
from tests.pipeline.embedded.test_streaming_diagnoser import STREAM, pieces


def row(root: str, *others: str, state: str = "ongoing", severity: str = "warning") -> dict[str, Any]:
    return {
        "root_id": root, "findings": [root, *others], "state": state, "severity": severity, "headline": f"about {root}",
    }  # fmt: skip


def test_what_begins_gets_worse_ends_and_comes_again() -> None:
    reported = ReportedIncidents()

    def kinds(*rows: dict[str, Any]) -> list[str]:
        return [change.kind for change in reported.changes(rows)]

    assert kinds(row("a")) == ["new"]
    assert kinds(row("a", "b")) == []
    assert kinds(row("a", "b", severity="critical")) == ["worse"]
    assert kinds(row("a", "b", state="unknown", severity="critical")) == []
    assert kinds(row("a", "b", state="resolved", severity="critical")) == ["resolved"]
    assert kinds(row("a", "b", state="resolved", severity="critical")) == []
    assert kinds(row("a", severity="critical")) == ["again"]
    assert kinds() == ["resolved"]
    assert kinds() == []
    assert kinds(row("c", state="resolved")) == ["new"]


def test_what_turns_out_to_follow_from_something_else_is_reported_once() -> None:
    reported = ReportedIncidents()
    assert [change.kind for change in reported.changes([row("lag"), row("other")])] == ["new", "new"]
    (change,) = reported.changes([row("transaction", "lag"), row("other")])
    assert (change.kind, change.row["root_id"], change.before) == ("root", "transaction", ("about lag",))
    assert list(reported.changes([row("transaction", "lag"), row("other")])) == []
    # It goes back and forth: both have been reported.
    assert list(reported.changes([row("lag", "transaction"), row("other")])) == []
    assert list(reported.changes([row("transaction", "lag"), row("other")])) == []


def test_two_that_become_one_are_reported_as_one_and_part_in_silence() -> None:
    reported = ReportedIncidents()
    list(reported.changes([row("a"), row("b")]))
    (change,) = reported.changes([row("a", "b")])
    assert (change.kind, change.before) == ("root", ("about b",))
    assert list(reported.changes([row("a", "b")])) == []
    assert list(reported.changes([row("a"), row("b")])) == []
    assert [one.kind for one in reported.changes([row("a"), row("b", state="resolved")])] == ["resolved"]


def test_an_incident_whose_root_is_found_no_more_is_known_by_its_other_findings() -> None:
    reported = ReportedIncidents()
    list(reported.changes([row("a", "b")]))
    (change,) = reported.changes([row("b")])
    assert (change.kind, change.before) == ("root", ("about a",))


@pytest.mark.parametrize("name", ["stuck_commit", pytest.param("stalled_lso", marks=pytest.mark.slow)])
def test_incidents_of_a_recording_are_reported_while_it_comes(name: str) -> None:
    following = StreamingDiagnoser(STREAM, by_kernel=False)
    changes = []
    for frames, gaps in pieces(CAPTURES / f"{name}.pcap", [number / 8 for number in range(1, 8)]):
        following.add(frames, gaps)
        following.judge()
        changes += following.incident_changes()
    found = following.diagnosis()
    assert found is not None
    assert following.incident_changes() == []
    (last,) = found.incidents.to_pylist()
    reported = [(change.kind, change.row["root_id"]) for change in changes]
    assert reported[0][0] == "new"
    assert len(reported) == len(set(reported)) <= 3
    assert last["root_id"] in {root for _, root in reported}
