"""Rule ``slow_rebalance``: who is waited for, and rebalances in which all is well."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import orjson
import pytest

from pipeline.analysis.cluster_catalog import ClusterCatalog, Seen
from pipeline.analysis.rules.kafka.rebalances import slow_rebalance
from pipeline.analysis.rules.kafka.rebalances.unfinished import members_of
from pipeline.analysis.rules.model import Finding
from pipeline.analysis.rules.settings import finding_settings
from pipeline.tables import EXCHANGES_WITH_BODIES
from tests.pipeline.analysis.rules.kafka.group_rows import JOIN, Row, at, member
from tests.pipeline.analysis.sources import sources
from tests.pipeline.rows import row

Pair = tuple[Row | None, Row | None]
REBALANCING = 27


def joins(who: str, generation: int, asked: float, answered: float) -> Pair:
    state = member("join", answered, who, generation=generation)
    times = {"ts": at(asked), "request_ts": at(asked), "response_ts": at(answered)}
    times |= {"latency_us": int((answered - asked) * 1_000_000)}
    return state, row(EXCHANGES_WITH_BODIES, exchange_id=state["exchange_id"], api_key=JOIN, **times)


def beats(who: str, generation: int, seconds: float, code: int = 0) -> Pair:
    return member("heartbeat", seconds, who, generation=generation, error_code=code), None


def waits(who: str, asked: float, *, new: bool = False, limit_s: float = 300, agent: str = "") -> Pair:
    """A JoinGroup without an answer yet."""
    body = {"groupId": "g", "memberId": "" if new else f"{who}-m", "rebalanceTimeoutMs": int(limit_s * 1000)}
    where = {"server_ip": "10.0.0.1", "server_port": 9092, "client_ip": "10.0.0.9", "client_port": 4000}
    asked_at = {"ts": at(asked), "request_ts": at(asked), "status": "pending", "exchange_id": f"w{agent}{who}{asked}"}
    asked_at |= {"flow_id": who, "correlation_id": int(asked)}
    request = {"request_body": orjson.dumps(body).decode(), "client_id": who, "api_key": JOIN}
    return None, row(EXCHANGES_WITH_BODIES, **where, **asked_at, **request)


def goes(who: str, seconds: float) -> Pair:
    return member("leave", seconds, who), None


def found(steps: Sequence[Pair], seen_s: float | None = None) -> list[Finding]:
    states = [state for state, _ in steps if state is not None]
    exchanges = [exchange for state, exchange in steps if state is not None and exchange is not None]
    waiting = [exchange for state, exchange in steps if state is None and exchange is not None]
    ends = {} if seen_s is None else {"C": int(at(seen_s).timestamp() * 1_000_000)}
    catalog = ClusterCatalog({("10.0.0.1:9092", "C"): Seen("C", 0, 0)})
    made = replace(sources(states=states, exchanges=exchanges, waiting=waiting), ends=ends, catalog=catalog)
    return slow_rebalance.SlowRebalance.detect(made, finding_settings())


FIRST = [joins("a", 1, 0, 0.5), joins("b", 1, 0.1, 0.5), beats("a", 1, 20), beats("b", 1, 20)]
BUSY = [beats("a", 1, 30 + 3 * n, REBALANCING) for n in range(5)]


def test_it_names_the_busy_member() -> None:
    late = [joins("c", 2, 29, 45), joins("b", 2, 31, 45), joins("a", 2, 44.9, 45)]
    (finding,) = found([*FIRST, *BUSY, beats("b", 1, 31, REBALANCING), *late])
    assert finding.details["client_id"] == "a"
    assert (finding.details["is_silent"], finding.details["waited_us"]) == (False, 16_000_000)
    assert "a at 10.0.0.9 continued its work and joined at 12:00:44 UTC only, while 2 other members" in finding.summary


def test_a_member_that_never_joined_was_waited_for_as_well() -> None:
    (finding,) = found([*FIRST, *BUSY, joins("b", 2, 29, 59)])
    assert "a at 10.0.0.9 continued its work and did not join" in finding.summary


def test_a_wait_that_began_before_the_capture_names_the_busy_member() -> None:
    (finding,) = found([*BUSY, joins("a", 2, 44.9, 45)])
    assert (finding.subject, finding.state, finding.details["waited_us"]) == ("g", "resolved", 15_000_000)
    assert (
        "from before 12:00:30 UTC, when the capture begins, to 12:00:45 UTC: a at 10.0.0.9 continued" in finding.summary
    )
    assert "joined at 12:00:45 UTC only" in finding.summary


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param([*BUSY[:2], joins("a", 2, 34, 34)], id="short"),
        pytest.param([beats("b", 1, 29), *BUSY, joins("a", 2, 44.9, 45)], id="that was in order when it began"),
        pytest.param([*BUSY, goes("a", 43), joins("b", 2, 44.9, 45)], id="of a member that leaves"),
    ],
)
def test_no_other_wait_began_before_the_capture(steps: list[Pair]) -> None:
    assert found(steps) == []


def test_it_names_the_silent_member() -> None:
    (finding,) = found([*FIRST, joins("c", 2, 25, 50), joins("b", 2, 26, 50)])
    assert (finding.details["client_id"], finding.details["is_silent"]) == ("a", True)
    assert "silent since 12:00:20 UTC" in finding.summary


@pytest.mark.parametrize(
    "steps",
    [
        # Nobody was there before: the coordinator holds the answers back (group.initial.rebalance.delay.ms).
        [joins("a", 1, 0, 12), joins("b", 1, 5, 12), joins("c", 1, 9, 12)],
        # All rejoin at their next heartbeat.
        [*FIRST, beats("a", 1, 31, REBALANCING), beats("b", 1, 31, REBALANCING), joins("c", 2, 29, 32),
         joins("a", 2, 31.1, 32), joins("b", 2, 31.9, 32)],
        # One left, and who waits then waits for nobody known: the capture does not show it all.
        [*FIRST, goes("a", 25), joins("b", 2, 30, 45)],
    ],
)  # fmt: skip
def test_what_is_in_order(steps: list[Pair]) -> None:
    assert found(steps) == []


def test_a_group_of_which_rebalances_always_take_long_is_judged_by_them() -> None:
    usual = [joins("x", generation, generation * 100, generation * 100 + 8) for generation in range(1, 5)]
    busy = [beats("x", 4, 451 + 3 * n, REBALANCING) for n in range(5)]
    assert found([*usual, *busy, joins("y", 5, 450, 466), joins("x", 5, 465, 466)]) == []
    busy = [beats("x", 4, 451 + 3 * n, REBALANCING) for n in range(10)]
    assert len(found([*usual, *busy, joins("y", 5, 450, 480), joins("x", 5, 479, 480)])) == 1


TOLD = [*FIRST, *BUSY, beats("a", 1, 45, REBALANCING)]


def test_while_all_stand_still_it_is_open_and_names_who_is_waited_for() -> None:
    (finding,) = found([*TOLD, beats("b", 1, 29.5, REBALANCING), waits("b", 29.6), waits("c", 29, new=True)], 46)
    assert (finding.state, finding.severity, finding.details["client_id"]) == ("ongoing", "warning", "a")
    assert finding.summary.startswith("Group g waits for an assignment since 12:00:29 UTC, 17 s so far: a at 10.0.0.9 ")
    assert "continues its work and has not joined, while 2 other members wait." in finding.summary


def test_those_who_wait_have_fallen_silent_where_their_joins_are_not_seen() -> None:
    (finding,) = found(TOLD, 46)
    assert (finding.state, finding.details["client_id"], finding.details["waiting_members"]) == ("ongoing", "a", 1)
    (later,) = found(TOLD, 400)
    assert later.state == "unknown"


def test_a_member_that_is_asked_to_rejoin_for_five_minutes_is_found_alone() -> None:
    beating = [joins("a", 1, 0, 0.5), *(beats("a", 1, 3 * n, REBALANCING) for n in range(1, 120))]
    (finding,) = found(beating, 358)
    assert (finding.state, finding.details["client_id"], finding.details["waiting_members"]) == ("ongoing", "a", 0)
    assert "has not joined, and no other member of the group was captured." in finding.summary
    assert found(beating[:100], 300) == []
    assert found([*beating, beats("a", 1, 361)], 362) == []


def test_a_silent_member_holds_up_those_whose_joins_wait() -> None:
    (finding,) = found([*FIRST, waits("b", 25)], 40)
    assert (finding.state, finding.details["client_id"], finding.details["is_silent"]) == ("ongoing", "a", True)
    assert "is silent since 12:00:20 UTC and has not left, while 1 other member waits." in finding.summary
    assert finding.advice.startswith("Now: nothing brings it back sooner")


def test_a_wait_that_lasts_counts_those_that_are_over() -> None:
    late = [joins("c", 2, 29, 45), joins("b", 2, 31, 45), joins("a", 2, 44.9, 45)]
    again = [beats("a", 2, 100 + 3 * n, REBALANCING) for n in range(6)]
    (finding,) = found([*FIRST, *BUSY, *late, *again, waits("b", 99), waits("c", 101)], 116)
    assert (finding.state, finding.details["recurrences"], finding.details["times"]) == ("ongoing", 1, 2)


def test_of_joins_that_two_agents_saw_one_counts() -> None:
    both = [waits("c", 29, new=True, agent=agent) for agent in ("one", "two")]
    (finding,) = found([*TOLD, waits("b", 29.6), *both], 46)
    assert finding.details["waiting_members"] == 2


def test_a_cluster_that_ended_long_before_others_keeps_its_heartbeats() -> None:
    states = [state for state, _ in TOLD if state is not None]
    us = int(at(0).timestamp() * 1_000_000)
    made = sources(states=states)
    rows = members_of(replace(made, ends={"C": us + 46_000_000, "D": us + 3_600_000_000}), [("C", "g")])
    assert len(rows["C", "g"]) == len(states)
    later = members_of(replace(made, ends={"C": us + 3_600_000_000}), [("C", "g")])
    assert {row.kind for row in later["C", "g"]} == {"join"}


AGAIN = [joins(who, 2, 3600, 3600.5) for who in "ab"] + [beats(who, 2, 7000) for who in "ab"]


def test_who_was_not_of_the_last_generation_is_not_waited_for() -> None:
    steps = [joins("x", 1, 0, 0.5), *AGAIN]
    assert found([*steps, waits("a", 7020), waits("b", 7021)], 7080) == []
    (finding,) = found([*steps, waits("b", 7020)], 7080)
    assert (finding.details["client_id"], finding.details["is_silent"]) == ("a", True)


@pytest.mark.parametrize(
    ("steps", "seen_s"),
    [
        ([*FIRST, *BUSY[:2], waits("b", 30)], 35),  # only a moment so far
        ([*TOLD, beats("a", 2, 48)], 60),  # it is over, although the capture does not show the joins
        ([*FIRST, waits("a", 25), waits("b", 26)], 60),  # all have joined: the coordinator waits for nobody known
        ([waits("a", 0, new=True), waits("b", 1, new=True)], 60),  # a group that begins
        ([*FIRST, goes("a", 21), waits("b", 25)], 60),  # who has left is not waited for
        ([joins("a", 1, 0, 0.5), *BUSY], 60),  # alone in its group
        ([*FIRST, waits("b", 25, limit_s=10)], 60),  # its connection has ended, unseen
    ],
)
def test_what_does_not_stand_still(steps: list[Pair], seen_s: float) -> None:
    assert found(steps, seen_s) == []
