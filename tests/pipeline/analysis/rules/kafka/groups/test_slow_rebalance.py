"""Rule ``slow_rebalance``: who is waited for, and rebalances in which all is well."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pipeline.analysis.rules.kafka.groups import slow_rebalance
from pipeline.analysis.rules.model import Finding
from pipeline.finding_settings import FindingSettings
from pipeline.tables import EXCHANGES
from tests.pipeline.analysis.rules.kafka.group_rows import JOIN, Row, at, member
from tests.pipeline.analysis.sources import sources
from tests.pipeline.rows import row

Pair = tuple[Row, Row | None]
REBALANCING = 27


def joins(who: str, generation: int, asked: float, answered: float) -> Pair:
    state = member("join", answered, who, generation=generation)
    times = {"ts": at(asked), "request_ts": at(asked), "response_ts": at(answered)}
    times |= {"latency_us": int((answered - asked) * 1_000_000)}
    return state, row(EXCHANGES, exchange_id=state["exchange_id"], api_key=JOIN, **times)


def beats(who: str, generation: int, seconds: float, code: int = 0) -> Pair:
    return member("heartbeat", seconds, who, generation=generation, error_code=code), None


def goes(who: str, seconds: float) -> Pair:
    return member("leave", seconds, who), None


def found(steps: Sequence[Pair]) -> list[Finding]:
    exchanges = [exchange for _, exchange in steps if exchange is not None]
    return slow_rebalance.find(sources(states=[state for state, _ in steps], exchanges=exchanges), FindingSettings())


FIRST = [joins("a", 1, 0, 0.5), joins("b", 1, 0.1, 0.5), beats("a", 1, 20), beats("b", 1, 20)]
BUSY = [beats("a", 1, 30 + 3 * n, REBALANCING) for n in range(5)]


def test_it_names_the_busy_member() -> None:
    late = [joins("c", 2, 29, 45), joins("b", 2, 31, 45), joins("a", 2, 44.9, 45)]
    (finding,) = found([*FIRST, *BUSY, beats("b", 1, 31, REBALANCING), *late])
    assert finding.details["client_id"] == "a"
    assert (finding.details["is_silent"], finding.details["waited_us"]) == (False, 16_000_000)
    assert (
        "a at 10.0.0.9 went on with its work and joined at 12:00:44 UTC only, while 2 other members" in finding.summary
    )


def test_a_member_that_never_joined_was_waited_for_as_well() -> None:
    (finding,) = found([*FIRST, *BUSY, joins("b", 2, 29, 59)])
    assert "a at 10.0.0.9 went on with its work and did not join" in finding.summary


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
