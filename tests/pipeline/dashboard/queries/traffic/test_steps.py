"""A connection as steps: what was sent and answered, what waits, what was lost."""

from __future__ import annotations

from typing import Any

from pipeline.dashboard.queries.traffic.steps import Connection, sequence
from tests.pipeline.dashboard.conftest import at


def exchange(name: str, asked: float | None, answered: float | None, **values: Any) -> dict[str, Any]:
    status = "paired" if asked is not None and answered is not None else "unanswered"
    return {
        "exchange_id": name, "api_name": "Fetch", "api_version": 12, "status": status, "error_names": [],
        "words": "orders-0 from 5 → 1 record", "request_ts": None if asked is None else at(asked),
        "response_ts": None if answered is None else at(answered),
        "request_status": None if asked is None else "ok", "response_status": None if answered is None else "ok",
        "latency_us": None if asked is None or answered is None else int((answered - asked) * 1e6), **values,
    }  # fmt: skip


def told(found: Connection) -> list[tuple[str, str | None]]:
    return [(step.kind, step.exchange_id) for step in found.steps]


def test_requests_and_responses_are_steps_in_the_order_of_time() -> None:
    found = sequence([exchange("b", 3, 4), exchange("a", 1, 2)], [])
    assert told(found) == [("request", "a"), ("response", "a"), ("request", "b"), ("response", "b")]
    assert [step.words for step in found.steps[:2]] == ["orders-0 from 5", "1 record"]
    assert [(wait.first, wait.last, wait.lane) for wait in found.waits] == [(0, 1, 0), (2, 3, 0)]
    assert [step.after.total_seconds() if step.after else None for step in found.steps] == [None, 1, 1, 1]


def test_requests_that_wait_at_a_time_lie_beside_each_other() -> None:
    found = sequence([exchange("a", 1, 5), exchange("b", 2, 6), exchange("c", 5.5, 7)], [])
    assert {wait.exchange_id: wait.lane for wait in found.waits} == {"a": 0, "b": 1, "c": 0}


def test_what_has_no_answer_waits_to_the_end_and_says_why() -> None:
    rows = [
        exchange("gone", 1, None), exchange("waits", 2, None, status="pending"), exchange("ok", 3, 4),
        exchange("silent", 5, None, status="no_response_expected"),
    ]  # fmt: skip
    waits = {wait.exchange_id: (wait.last, wait.ending) for wait in sequence(rows, []).waits}
    assert waits == {"gone": (4, "closed"), "waits": (4, "open"), "ok": (3, "answered")}


def test_bytes_that_were_under_way_are_no_loss() -> None:
    gap = {"ts": at(0), "direction": "response", "bytes_lost": 73, "method": "midway segment_start"}
    (step,) = sequence([], [gap]).steps
    assert (step.kind, step.label) == ("joined", "joined midway")
    assert (
        step.words == "73 bytes from the server that began, or were asked for, before the capture met this connection"
    )


def test_a_response_without_its_request_says_that_the_capture_came_late() -> None:
    late = exchange("a", None, 1, status="orphan_response", words="1 record")
    found = sequence([late, exchange("more", None, 2, status="following_response", words="2 docs")], [])
    assert told(found) == [("joined", "a"), ("response", "a"), ("response", "more")]
    assert "request not seen" in found.steps[0].words
    assert [step.words for step in found.steps[1:]] == ["1 record", "2 docs"]
    assert found.waits == []


def test_a_loss_stands_before_what_was_found_behind_it() -> None:
    lost = {"ts": at(2), "direction": "response", "bytes_lost": 1200}
    unknown = {"ts": at(3), "direction": "request", "bytes_lost": None}
    found = sequence([exchange("a", 1, 2)], [unknown, lost])
    assert [step.kind for step in found.steps] == ["request", "lost", "response", "lost"]
    assert found.steps[1].words == "1,200 bytes from the server lost"
    assert found.steps[3].words == "bytes from the client lost"


def test_errors_and_what_cannot_be_read_are_wrong() -> None:
    refused = exchange("a", 1, 2, error_names=["ILLEGAL_GENERATION"], words="billing → ILLEGAL_GENERATION")
    broken = exchange("b", 3, 4, request_status="malformed", response_status="redacted", words="")
    found = sequence([refused, broken], [])
    assert [step.is_wrong for step in found.steps] == [False, True, True, False]
    assert found.steps[2].words == "(malformed)"
    assert [wait.is_wrong for wait in found.waits] == [True, False]


def test_a_pause_is_one_for_this_connection() -> None:
    quick = [exchange(f"q{n}", n * 0.01, n * 0.01 + 0.005) for n in range(10)]
    slow = [exchange(f"s{n}", n * 10, n * 10 + 5) for n in range(10)]
    later = exchange("l", 1, 1.005)
    assert [step.exchange_id for step in sequence([*quick, later], []).steps if step.is_pause] == ["l"]
    assert not any(step.is_pause for step in sequence(slow, []).steps)


def test_of_nothing_there_is_nothing() -> None:
    assert sequence([], []) == Connection([], [])


def life(**values: Any) -> dict[str, Any]:
    return {
        "first_ts": at(0), "last_ts": at(9), "opened": "yes", "ended": "closed by the client", "is_closed": True,
        "closed_by": "client", "reset_by": None, **values,
    }  # fmt: skip


def test_tcp_opens_a_connection_and_ends_it() -> None:
    found = sequence([exchange("a", 1, 2)], [], life())
    assert [(step.kind, step.label, step.direction) for step in found.steps if step.exchange_id is None] == [
        ("opened", "SYN", "request"),
        ("ended", "FIN", "request"),
    ]
    assert [step.kind for step in found.steps] == ["opened", "request", "response", "ended"]
    assert found.waits[0].first == 1


def test_a_reset_is_of_whoever_sent_it() -> None:
    found = sequence([exchange("a", 1, None)], [], life(reset_by="server", closed_by="server"))
    assert (found.steps[-1].label, found.steps[-1].direction) == ("RST", "response")
    assert found.waits[0].last == found.steps[-1].at


def test_nothing_is_said_of_ends_that_were_not_seen_or_lie_elsewhere() -> None:
    midway = sequence([exchange("a", 1, 2)], [], life(opened="unknown", is_closed=False))
    elsewhere = sequence([exchange("a", 1, 2)], [], life(), is_first=False, is_last=False)
    assert [told(found) for found in (midway, elsewhere)] == [[("request", "a"), ("response", "a")]] * 2


def test_what_was_sent_again_and_who_did_not_read_is_marked() -> None:
    trouble = {
        "client_sent_again": 3, "client_first_sent_again_ts": at(3), "client_last_sent_again_ts": at(5),
        "server_stalled_us": 2_500_000, "server_first_zero_window_ts": at(4),
    }  # fmt: skip
    found = sequence([exchange("a", 1, 2), exchange("b", 6, 7)], [], life(**trouble))
    assert [(step.kind, step.direction, step.words) for step in found.steps if step.kind in ("again", "full")] == [
        ("again", "request", "by the client, the first of 3 segments"),
        ("full", "response", "of the server, which did not read for 2,500 ms in all"),
        ("again", "request", "by the client, the last of 3 segments"),
    ]
    elsewhere = sequence([exchange("a", 1, 3.5)], [], life(**trouble), is_first=False, is_last=False)
    assert [step.kind for step in elsewhere.steps] == ["request", "again", "response"]


def test_who_ended_it_may_be_unknown() -> None:
    (*_, last) = sequence([exchange("a", 1, 2)], [], life(closed_by=None)).steps
    assert (last.kind, last.label, last.direction) == ("ended", "", "")
