"""A conversation has a lane for each party; what the story names is always there, what repeats is folded."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.dashboard.queries.traffic.conversation import MOST, Event, Party, conversation, shown
from tests.pipeline.dashboard.conftest import at


def event(second: float, who: str = "a", kind: str = "committed", error: str = "") -> Event:
    return Event(f"{who}{second}", at(second), (who, "10.0.0.1"), kind, error)


def row(second: float, client_id: str | None = "a", **values: Any) -> dict[str, Any]:
    given = {
        "exchange_id": f"{client_id}{second}", "ts": at(second), "request_ts": at(second), "client_id": client_id,
        "client": "10.0.0.1:5000", "server": "10.0.0.9:9092", "protocol": "kafka", "api_key": 8,
        "api_name": "OffsetCommit", "api_version": 8, "words": "g t-0 @1 → ok", "error_names": [], "latency_us": 1000,
        "status": "paired",
    }  # fmt: skip
    return given | values


def seconds(events: list[Event]) -> list[float]:
    return [float(one.exchange_id.lstrip("ab")) for one in events]


def test_of_what_repeats_the_first_two_and_the_last_are_shown() -> None:
    assert seconds(shown([event(n) for n in range(1, 10)], ())) == [1, 2, 9]


def test_what_the_story_names_is_shown_wherever_it_is() -> None:
    assert seconds(shown([event(n) for n in range(1, 10)], {"a5"})) == [1, 2, 5, 9]


def test_what_repeats_is_shown_again_after_something_changed_hands() -> None:
    events = [*(event(n) for n in range(1, 6)), event(6, "b", "assignment"), *(event(n) for n in range(7, 12))]
    assert seconds(shown(events, ())) == [1, 2, 5, 6, 7, 8, 11]


def test_very_many_are_cut_to_those_that_the_story_names_and_errors() -> None:
    events = [event(n, kind=f"kind {n}") for n in range(500)] + [event(600, error="FENCED")]
    found = shown(events, {"a499"})
    assert len(found) == MOST
    assert {"a499", "a600"} <= {one.exchange_id for one in found}


def test_clients_of_the_story_come_first_and_a_broker_that_coordinates_is_two_parties() -> None:
    rows = [row(1, "late"), row(2, "first"), row(3, "late", api_key=1, api_name="Fetch")]
    said = conversation(rows, {"first2": "first"})
    assert said.parties == [
        Party("first", "client"), Party("late", "client"), Party("10.0.0.9:9092", "coordinator"),
        Party("10.0.0.9:9092", "broker"),
    ]  # fmt: skip
    assert [(one.sender, one.receiver, one.is_marked) for one in said.messages] == [
        (1, 2, False), (0, 2, True), (1, 3, False),
    ]  # fmt: skip


def test_what_is_left_out_is_counted_by_client_and_pauses_are_named() -> None:
    events = [event(n) for n in range(1, 6)] + [event(4.5, "b", error="FENCED")]
    said = conversation([row(1), row(5)], {}, events)
    assert [one.skipped for one in said.messages] == ["", "3 commits of a, 1 refused commit of b"]
    assert [one.after and one.after.total_seconds() for one in said.messages] == [None, 4.0]


def test_clients_without_an_id_are_named_by_the_story_and_clients_of_one_id_by_their_host() -> None:
    rows = [
        row(1, None, protocol="mongodb"), row(2, "twin"), row(3, "twin", client="10.0.0.2:5000"),
        row(4, None, client="10.0.0.7:1"),
    ]  # fmt: skip
    names = [party.name for party in conversation(rows, {"None1": "reports"}).parties if party.role == "client"]
    assert names == ["reports", "twin (10.0.0.1)", "twin (10.0.0.2)", "10.0.0.7"]


@pytest.mark.parametrize("clients", [1, 6, 7, 30])
def test_beyond_six_clients_the_others_share_a_lane(clients: int) -> None:
    said = conversation([row(n, f"c{n:02}") for n in range(clients)], {})
    names = [party.name for party in said.parties if party.role == "client"]
    assert len(names) == min(clients, 6)
    assert (names[-1] == "others") is (clients > 6)
    assert len(said.messages) == clients


def test_errors_long_waits_and_missing_answers_are_said() -> None:
    rows = [
        row(1, error_names=["FENCED_INSTANCE_ID"], words=""), row(2, latency_us=3_000_000),
        row(3, status="unanswered", words="g"),
    ]  # fmt: skip
    said = conversation(rows, {}).messages
    assert [one.words for one in said] == ["FENCED_INSTANCE_ID", "g t-0 @1 → ok (after 3.0 s)", "g (no answer)"]
    assert [one.is_wrong for one in said] == [True, False, True]
