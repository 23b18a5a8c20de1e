"""A crash loop has a cross for each end at the offset from which the next life reads; a long silence has its length."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("altair")
from pipeline.dashboard.queries.progress.members import members, restarted_clients
from pipeline.dashboard.queries.progress.offsets import Offsets
from pipeline.dashboard.queries.progress.partitions import Place
from pipeline.dashboard.queries.scope import Scope
from pipeline.dashboard.web.pictures.colours import LIGHT
from pipeline.dashboard.web.pictures.lives_and_silence import deaths, deaths_of, longest_silence
from tests.pipeline.dashboard.conftest import at


def seen(commits: list[tuple[float, int]], fetched: list[tuple[float, int]]) -> Offsets:
    """A client that lives four times for 8 s each, 10 s apart, and what was committed and fetched."""
    owned: list[dict[str, Any]] = [
        {"client_id": "dies", "member_id": f"m{n}", "owned_from": at(10 * n), "owned_until": at(10 * n + 8)}
        for n in range(4)
    ]
    stated = [{"ts": at(ts), "value": value, "outcome": "accepted"} for ts, value in commits]
    read = [{"ts": at(ts), "value": value, "client_id": "dies"} for ts, value in fetched]
    keys = [(row["client_id"], row["member_id"]) for row in owned]
    shown = members(keys, restarted=restarted_clients(owned))
    return Offsets(
        Place("k", "t", 0, "g"), Scope(at(0), at(40)), shown, pa.table({}), pa.Table.from_pylist(read),
        pa.Table.from_pylist(stated), owned, [], [], [],
    )  # fmt: skip


def test_each_end_stands_at_what_was_committed_then() -> None:
    found = deaths_of(seen([(1, 5), (2, 7), (25, 9)], [(7, 50)]))
    assert [(one.ts, one.offset, one.is_committed) for one in found] == [
        (at(8), 7, True), (at(18), 7, True), (at(28), 9, True),
    ]  # fmt: skip


def test_without_commits_it_is_how_far_the_client_had_fetched() -> None:
    assert [one.offset for one in deaths_of(seen([], [(3, 20), (15, 30)]))] == [20, 30, 30]
    assert deaths_of(seen([], [])) == []


def test_an_offset_is_written_where_it_changes() -> None:
    spec = deaths(seen([(1, 7), (25, 9)], []), lambda _: "#000000", LIGHT)[-1].to_dict()
    [rows] = spec["datasets"].values()
    assert [one["words"] for one in rows] == ["7 committed", "", "9 committed"]


@pytest.mark.parametrize(
    ("times", "silence"),
    [([1, 2, 3, 4, 30, 31, 32], (4, 30)), ([1, 2, 3, 4, 5], (5, 40)), (range(40), None), ([1], None)],
)
def test_the_longest_time_without_a_commit_is_named_if_it_is_long(
    times: list[float], silence: tuple[float, float] | None
) -> None:
    found = longest_silence(seen([(ts, 1) for ts in times], []))
    assert found == (None if silence is None else (at(silence[0]), at(silence[1])))
