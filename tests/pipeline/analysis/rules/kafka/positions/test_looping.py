"""A group that fetches from one offset again and again is stalled, by whatever comes back."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.analysis.rules.kafka.positions import loop_texts
from tests.decoder.kafka.batches import control, message
from tests.pipeline.analysis.rules.kafka.positions.loops import (
    AT,
    GROUP,
    ILL,
    WELL,
    Answer,
    alone,
    loops,
    records_again,
)
from tests.pipeline.analysis.rules.kafka.positions.stage import Client, Stage, records

STALLED = ("stalled", f"{GROUP}/orders-0")


def details(stage: Stage) -> dict[str, Any]:
    row = stage.findings()[STALLED]
    assert (row["state"], row["severity"]) == ("ongoing", "critical")
    return dict(row["details"])


ANSWERS: dict[str, Answer] = {
    loop_texts.SAME: records_again,
    loop_texts.NOTHING: lambda end: b"",
    loop_texts.EMPTY: lambda end: records(AT - 5, 0, last_delta=20),
    loop_texts.BELOW: lambda end: records(AT - 15, 0, last_delta=10),
    loop_texts.MARKERS: lambda end: control(1, base_offset=AT),
}


@pytest.mark.parametrize("shape", ANSWERS)
def test_what_comes_back_names_the_cause(shape: str) -> None:
    found = details(loops(ANSWERS[shape]))
    assert (found["again"], found["offset"], found["commits"]) == (shape, AT, ILL // 5)
    assert found["fetches"] == ILL
    assert found["records_behind"] + found.get("transaction_markers", 0) == 3 * ILL


def test_a_message_that_is_cut_off() -> None:
    found = details(loops(lambda end: message(None, b"x" * 20_000, offset=AT)[:10_240], version=2))
    assert (found["again"], found["size"]) == (loop_texts.CUT, 10_240)


def test_a_fetch_session_names_the_partition_only_where_something_is_new() -> None:
    for shape in (loop_texts.SAME, loop_texts.NOTHING):
        assert details(loops(ANSWERS[shape], session=True))["again"] == shape


def test_it_need_not_commit() -> None:
    found = details(loops(ANSWERS[loop_texts.SAME], committing=False))
    assert found["commits"] == 0


def test_once_it_goes_on_it_is_over() -> None:
    row = loops(ANSWERS[loop_texts.SAME], after=20).findings()[STALLED]
    assert (row["state"], row["severity"]) == ("resolved", "warning")
    assert "it continued" in row["summary"]


def test_it_is_not_over_while_the_commit_stands_there() -> None:
    """Commits come each five seconds: none yet since it fetched further."""
    row = loops(ANSWERS[loop_texts.SAME], after=3).findings()[STALLED]
    assert (row["state"], row["severity"]) == ("ongoing", "critical")
    assert f"fetched further, but the group has not committed beyond {AT} since" in row["summary"]


def test_without_commits_the_position_shows_that_it_is_over() -> None:
    row = loops(ANSWERS[loop_texts.SAME], after=3, committing=False).findings()[STALLED]
    assert row["state"] == "resolved"


def test_a_commit_beyond_by_another_member_ends_it() -> None:
    stage = loops(ANSWERS[loop_texts.SAME])
    stage.commit(WELL + ILL + 0.5, Client("other", GROUP, 43_000, "other-1", 2), {0: AT + 5})
    assert stage.findings()[STALLED]["state"] == "resolved"


def test_a_seek_back_after_each_failure() -> None:
    stage = Stage()
    worker = Client("worker", GROUP, 42_000, "worker-1")
    stage.join(0.1, worker, [0])
    for second in range(WELL + ILL):
        end = 3 * (second + 1)
        stage.produce(second + 0.2, 0, end - 3, 3)
        if second < WELL:
            stage.fetch(second + 0.5, worker, (0, end - 3, end, records(end - 3, 3)))
        else:
            stage.fetch(second + 0.4, worker, (0, AT, end, records(AT, end - AT)))
            stage.fetch(second + 0.5, worker, (0, end, end, b""))
        if second % 5 == 4:
            stage.commit(second + 0.7, worker, {0: min(end, AT)})
        stage.heartbeat(second + 0.8, worker)
    found = stage.findings()
    assert found[STALLED]["details"]["again"] == loop_texts.SEEKS_BACK
    assert "a restart does not help" in found[STALLED]["advice"]
    assert ("stuck_commit", STALLED[1]) not in found


HEALTHY: dict[str, dict[str, Any]] = {
    "an open transaction holds it": {"answer": ANSWERS[loop_texts.NOTHING], "level": 1, "stable": True},
    "a few tries": {"answer": ANSWERS[loop_texts.SAME], "ill": 10, "after": 20},
    "a new process each time": {"answer": ANSWERS[loop_texts.SAME], "new_each": 8},
}


@pytest.mark.parametrize("case", HEALTHY)
def test_what_is_no_loop_of_one_client(case: str) -> None:
    assert STALLED not in loops(**HEALTHY[case]).findings()


ALONE = ("stalled", "viewer at 10.0.0.5/orders-0")


def test_a_reader_without_a_group_stays_at_one_offset_while_the_log_grows() -> None:
    stage = alone()
    row = stage.findings()[ALONE]
    assert (row["severity"], row["state"], row["group_id"]) == ("warning", "ongoing", None)
    assert row["summary"].startswith(
        f"viewer at 10.0.0.5, of no known group, does not move on orders-0: it fetched from offset {AT} {ILL} times"
    )
    assert row["advice"].startswith("Now: nothing if viewer at 10.0.0.5 is meant to read the same records again")
    (incident,) = stage.incidents()
    assert incident["headline"].startswith("viewer at 10.0.0.5, of no known group, does not move on orders-0: it fetch")


def test_a_reader_without_a_group_is_seen_midway_and_may_go_on() -> None:
    assert alone().since(WELL + 30).findings()[ALONE]["severity"] == "info", "it may have read nothing else, on purpose"
    row = alone(heals=True).findings()[ALONE]
    assert (row["state"], row["severity"]) == ("resolved", "warning")


@pytest.mark.parametrize("heals", [False, True])
def test_a_reader_that_seeks_back_after_each_failure_fetches_ahead(heals: bool) -> None:
    row = alone(ahead=True, heals=heals).findings()[ALONE]
    assert (row["state"], row["severity"]) == ("resolved" if heals else "ongoing", "warning")
    assert f"but goes back to {AT} each time" in row["summary"]
    assert row["advice"].startswith("Now: nothing if viewer at 10.0.0.5 is meant to go back again and again.")


@pytest.mark.parametrize("stage", [
    pytest.param(alone(grows=False), id="looks at what is there"),
    pytest.param(alone(further=True), id="goes back by itself"),
    pytest.param(alone(new_each=8), id="a new reader each time"),
])  # fmt: skip
def test_a_reader_that_may_mean_to_read_it_again(stage: Stage) -> None:
    assert ALONE not in stage.findings()
