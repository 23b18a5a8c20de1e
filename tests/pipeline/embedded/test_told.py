"""Is each incident told when it begins, when its root changes and when it ends, and never the same twice?"""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.embedded.following import Following
from pipeline.embedded.told import Told
from tests.paths import CAPTURES
from tests.pipeline.embedded.test_following import STREAM, pieces


def row(root: str, *others: str, state: str = "open", severity: str = "warning") -> dict[str, Any]:
    return {
        "root_id": root, "findings": [root, *others], "state": state, "severity": severity, "headline": f"about {root}",
    }  # fmt: skip


def test_what_begins_gets_worse_ends_and_comes_again() -> None:
    told = Told()

    def kinds(*rows: dict[str, Any]) -> list[str]:
        return [change.kind for change in told.changes(rows)]

    assert kinds(row("a")) == ["new"]
    assert kinds(row("a", "b")) == []
    assert kinds(row("a", "b", severity="critical")) == ["worse"]
    assert kinds(row("a", "b", state="unknown", severity="critical")) == []
    assert kinds(row("a", "b", state="closed", severity="critical")) == ["over"]
    assert kinds(row("a", "b", state="closed", severity="critical")) == []
    assert kinds(row("a", severity="critical")) == ["again"]
    assert kinds() == ["over"]
    assert kinds() == []
    assert kinds(row("c", state="closed")) == ["new"]


def test_what_turns_out_to_follow_from_something_else_is_told_once() -> None:
    told = Told()
    assert [change.kind for change in told.changes([row("lag"), row("other")])] == ["new", "new"]
    (change,) = told.changes([row("transaction", "lag"), row("other")])
    assert (change.kind, change.row["root_id"], change.before) == ("root", "transaction", ("about lag",))
    assert list(told.changes([row("transaction", "lag"), row("other")])) == []
    # It goes back and forth: both have been told.
    assert list(told.changes([row("lag", "transaction"), row("other")])) == []
    assert list(told.changes([row("transaction", "lag"), row("other")])) == []


def test_two_that_become_one_are_told_as_one_and_part_in_silence() -> None:
    told = Told()
    list(told.changes([row("a"), row("b")]))
    (change,) = told.changes([row("a", "b")])
    assert (change.kind, change.before) == ("root", ("about b",))
    assert list(told.changes([row("a", "b")])) == []
    assert list(told.changes([row("a"), row("b")])) == []
    assert [one.kind for one in told.changes([row("a"), row("b", state="closed")])] == ["over"]


def test_an_incident_whose_root_is_found_no_more_is_known_by_its_other_findings() -> None:
    told = Told()
    list(told.changes([row("a", "b")]))
    (change,) = told.changes([row("b")])
    assert (change.kind, change.before) == ("root", ("about a",))


@pytest.mark.parametrize("name", ["stuck_commit", pytest.param("stalled_lso", marks=pytest.mark.slow)])
def test_a_recording_is_told_while_it_comes(name: str) -> None:
    following = Following(STREAM, by_kernel=False)
    changes = []
    for frames, gaps in pieces(CAPTURES / f"{name}.pcap", [number / 8 for number in range(1, 8)]):
        following.add(frames, gaps)
        following.judge()
        changes += following.incident_changes()
    found = following.diagnosis()
    assert found is not None
    assert following.incident_changes() == []
    (last,) = found.incidents.to_pylist()
    told = [(change.kind, change.row["root_id"]) for change in changes]
    assert told[0][0] == "new"
    assert len(told) == len(set(told)) <= 3
    assert last["root_id"] in {root for _, root in told}
