"""Rule ``poll_interval_exceeded``: who falls out of its group, and who only leaves it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from decoder.kafka.apis import ApiKey
from pipeline.analysis.rules.kafka.groups.poll_interval_exceeded import PollIntervalExceeded
from pipeline.analysis.rules.model import Finding
from pipeline.analysis.rules.settings import finding_settings
from pipeline.humanize import clock
from tests.pipeline.analysis.rules.kafka.group_rows import (
    Row,
    beats,
    committed,
    enters,
    event,
    fetched,
    leaves,
    member,
    with_steps,
)

EXPIRED, CLOSED = "consumer poll timeout has expired.", "the consumer is being closed"
IN_HAND = [fetched(1, "a", 0, 50)]


def found(exchanges: Sequence[Row], events: Sequence[Row] = (), seen_s: float | None = None) -> list[Finding]:
    return PollIntervalExceeded.detect(with_steps(seen_s, exchanges=exchanges, events=events), finding_settings())


def refused(seconds: float) -> Row:
    return event("commit_rejected", seconds, "a", offset=50, group_id="g", member_id="", error_code=25)


@pytest.mark.parametrize(
    ("exchanges", "events", "severity"),
    [
        ([enters(0, "a"), leaves(31, "a", reason=EXPIRED)], [], "warning"),
        ([leaves(31, "a", reason=EXPIRED), enters(35, "a")], [], "warning"),  # joined midway
        ([enters(0, "a"), leaves(31, "a"), enters(40, "a", member="m2")], IN_HAND, "warning"),
        ([enters(0, "a"), leaves(31, "a")], [*IN_HAND, refused(33)], "critical"),
        # It commits record by record up to the end.
        (
            [enters(0, "a"), leaves(31, "a")],
            [*IN_HAND, *(committed(n, "a", n) for n in range(2, 30)), refused(33)],
            "critical",
        ),
    ],
)
def test_a_client_that_lives_on(exchanges: list[Row], events: list[Row], severity: str) -> None:
    (finding,) = found(exchanges, events)
    assert (finding.severity, finding.subject) == (severity, "g/a")


@pytest.mark.parametrize("heartbeat", [ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.STREAMS_GROUP_HEARTBEAT])
def test_a_member_that_leaves_by_a_heartbeat(heartbeat: ApiKey) -> None:
    enters_and_leaves = [beats(heartbeat, 0, "a", 0), beats(heartbeat, 31, "a", -1)]
    (finding,) = found([*enters_and_leaves, beats(heartbeat, 40, "a", 0)], IN_HAND)
    assert finding.subject == "g/a"
    assert "exceeded max.poll.interval.ms (30 s)" in finding.summary
    assert found(enters_and_leaves, IN_HAND) == []  # it ends


def test_a_member_of_a_share_group_states_no_limit() -> None:
    heartbeat = ApiKey.SHARE_GROUP_HEARTBEAT
    steps = [beats(heartbeat, 0, "a", 0), beats(heartbeat, 31, "a", -1), beats(heartbeat, 40, "a", 0)]
    assert found(steps, IN_HAND) == []
    assert [step.what for step in with_steps(exchanges=steps).steps] == ["enters", "leaves", "enters"]


@pytest.mark.parametrize(
    ("exchanges", "events"),
    [
        ([enters(0, "a"), leaves(31, "a", reason=CLOSED), enters(32, "a", member="m2")], IN_HAND),
        ([enters(0, "a"), leaves(31, "a")], IN_HAND),  # ends; Java before KIP-800 and librdkafka state no reason
        ([enters(0, "a"), leaves(31, "a"), enters(33, "a", connection="c2", member="m2")], IN_HAND),  # restarts
        # It unsubscribes when nothing is left to do, and subscribes again.
        ([enters(0, "a"), leaves(60, "a"), enters(90, "a", member="m2")], [*IN_HAND, committed(5, "a", 50)]),
        # It unsubscribes in the middle of its work, long before the limit.
        ([enters(0, "a"), leaves(9, "a"), enters(20, "a", member="m2")], IN_HAND),
        ([enters(0, "a"), leaves(40, "a"), enters(50, "a", member="m2")], [*IN_HAND, committed(35, "a", 10)]),
        ([leaves(31, "a"), enters(35, "a", member="m2")], IN_HAND),  # since when it was in is not known
    ],
)
def test_a_client_that_leaves_on_purpose(exchanges: list[Row], events: list[Row]) -> None:
    assert found(exchanges, events) == []


@pytest.mark.parametrize(("first_s", "is_found"), [(0, True), (20, False)])
def test_a_member_that_joined_before_the_capture(first_s: float, is_found: bool) -> None:
    exchanges = [leaves(31, "a"), enters(35, "a", member="m2")]
    (step, _) = with_steps(exchanges=exchanges).steps
    beat = member("heartbeat", first_s, "a", member_id="m1", cluster=step.cluster)
    made = with_steps(exchanges=exchanges, events=IN_HAND, states=[beat])
    some = PollIntervalExceeded.detect(made, finding_settings())
    assert [(one.subject, one.details["max_poll_interval_ms"]) for one in some] == [("g/a", 30_000)] * is_found


def test_it_names_the_limit_the_period_and_what_it_was_at() -> None:
    times = [(0, 31), (40, 71), (80, 111)]
    exchanges = [
        step
        for n, (begin, end) in enumerate(times)
        for step in (enters(begin, "a", member=f"m{n}"), leaves(end, "a", member=f"m{n}", reason=EXPIRED))
    ]
    events = [
        fetched(81, "a", 500, 700),
        committed(79, "a", 500, member_id="m1"),
        committed(82, "a", 520, member_id="m2"),
    ]
    (finding,) = found(exchanges, events)
    assert finding.severity == "critical"
    assert finding.details["max_poll_interval_ms"] == 30_000
    assert finding.details["interval_us"] == 40_000_000
    assert "exceeded max.poll.interval.ms (30 s)" in finding.summary
    assert "offsets 520 to 699 of t-0" in finding.summary


LOST = [enters(0, "a"), enters(1, "b", connection="b", member="mb"), leaves(31, "a", reason=EXPIRED)]


@pytest.mark.parametrize(("seen_s", "state"), [(60, "ongoing"), (90, "ongoing"), (93, "unknown"), (9000, "unknown")])
def test_who_never_came_back_is_not_over(seen_s: float, state: str) -> None:
    (finding,) = found(LOST, seen_s=seen_s)
    assert finding.state == state
    assert f"It is not back since {clock(finding.last_us)} UTC." in finding.summary
    assert ("unknown whether it hangs on or has ended" in finding.summary) == (state == "unknown")


def test_as_long_as_it_tries_to_commit_it_is_open() -> None:
    (finding,) = found(LOST, [*IN_HAND, refused(80)], seen_s=135)
    assert finding.state == "ongoing"


@pytest.mark.parametrize(
    ("back", "state"),
    [
        (enters(50, "a", connection="c2", member="m2"), "resolved"),  # its process was restarted
        (enters(50, "a", member="m2"), "resolved"),
        (enters(140, "a", member="m2"), "ongoing"),  # it has not been back for long
        (enters(50, "b", connection="b", member="mb"), "unknown"),  # another one rejoins
        (enters(50, "a", connection="b", member="mb"), "unknown"),  # also where it bears the same name
    ],
)
def test_it_is_over_when_it_is_back(back: Row, state: str) -> None:
    (finding,) = found([*LOST, back], seen_s=180)
    assert finding.state == state


def test_a_tool_that_puts_a_member_out_is_not_the_member() -> None:
    tool = leaves(31, "admin", connection="c9", reason="member was removed by an admin") | {"client_ip": "10.0.0.3"}
    assert found([enters(0, "a"), tool], IN_HAND) == []
