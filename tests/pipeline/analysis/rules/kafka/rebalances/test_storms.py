"""When is a group that rebalances often a storm, and when a deploy? On members and generations made by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from pipeline.analysis.cluster_catalog import ClusterCatalog
from pipeline.analysis.rules.episode import Shown
from pipeline.analysis.rules.episodes import collect_episodes
from pipeline.analysis.rules.kafka.groups.coming_and_going import ENTERS, Step
from pipeline.analysis.rules.kafka.rebalances import storms, storms_slow
from pipeline.analysis.rules.kafka.rebalances.storms import Life, Round, explain_generations
from pipeline.analysis.rules.kafka.symptoms import JOINED_AT
from pipeline.analysis.rules.model import SEVERITIES, Finding
from pipeline.analysis.rules.settings import finding_settings
from pipeline.tables import EXCHANGES_WITH_BODIES, OFFSET_TIMELINE, STATE_EVENTS
from tests.pipeline.analysis.sources import sources
from tests.pipeline.rows import T0, row

SETTINGS = finding_settings()
T0_US = int(T0.timestamp() * 1_000_000)
SECOND = 1_000_000
Row = dict[str, Any]


class Group:
    """A group that is played: members come and go, and each change begins a generation."""

    def __init__(self, name: str, following: int = 0, by_epochs: bool = False) -> None:
        self.name, self.following, self.by_epochs = name, following, by_epochs
        self.members: dict[str, tuple[str, str, int]] = {}
        self.states: list[Row] = []
        self.exchanges: list[Row] = []
        self.shown: list[Shown] = []
        self.steps: list[Step] = []
        self.generation = 0

    def come(self, at: float, member: str, client: str = "app", host: str = "10.0.0.1", port: int = 5) -> None:
        """A member joins."""
        self.members[member] = client, host, port
        us = T0_US + round(at * SECOND)
        to = f"{host}:{port}"
        self.steps.append(Step(ENTERS, "b:1", self.name, member, client, host, to, to, f"j{member}", us, us))
        if self.by_epochs:
            self.generation += 1
            for other in self.members:
                self._state(at, "assignment" if other == member else "heartbeat", other, "consumer")
            self._show(at, member, f"{JOINED_AT}{self.generation}")
        else:
            self.rebalance(at)

    def go(self, at: float, member: str) -> None:
        """A member leaves."""
        self._state(at, "leave", member, "consumer" if self.by_epochs else "classic")
        del self.members[member]
        if not self.by_epochs:
            self.rebalance(at)

    def rebalance(self, at: float, takes: float = 0.1) -> None:
        """All join again, as often as the assignor wants."""
        for turn in range(1 + self.following):
            self.generation += 1
            for member in self.members:
                self._state(at + turn / 10 + takes, "join", member, "classic", takes)
                self._show(at + turn / 10, member, str(self.generation))

    def _state(self, at: float, kind: str, member: str, protocol: str, takes: float = 0.0) -> None:
        client, host, port = self.members[member]
        number = f"{self.name}{len(self.states):06}"
        by = {"client_id": client, "client": f"{host}:{port}", "cluster": "b:1", "server": "b:1", "exchange_id": number}
        what = {"kind": kind, "group_id": self.name, "member_id": member, "group_protocol": protocol}
        ts = T0 + timedelta(seconds=at)
        self.states.append(row(STATE_EVENTS, **by, **what, ts=ts, generation=self.generation, error_code=0))
        self.exchanges.append(
            row(EXCHANGES_WITH_BODIES, exchange_id=number, ts=ts, request_ts=ts - timedelta(seconds=takes))
        )

    def _show(self, at: float, member: str, what: str) -> None:
        client, host, _ = self.members[member]
        us, number = T0_US + round(at * SECOND), f"{self.name}{len(self.shown):06}"
        one = Shown("b:1", client, host, us, number, "rebalance_storm", self.name, what, None, None, self.name, 0.0)
        self.shown.append(one)


def found(groups: Sequence[Group]) -> dict[str, Finding]:
    """Findings by group."""
    episodes = collect_episodes([one for g in groups for one in g.shown], ClusterCatalog(), SETTINGS)
    made = sources(states=[s for g in groups for s in g.states], exchanges=[e for g in groups for e in g.exchanges])
    made = replace(made, episodes={"rebalance_storm": episodes}, steps=[step for g in groups for step in g.steps])
    both = [*storms_slow.storms_of_instances(made, SETTINGS), *storms.storms_of_generations(made, SETTINGS)]
    return {f.subject: f for f in sorted(both, key=lambda f: -SEVERITIES.index(f.severity))}


def started(name: str, members: int, *, one_host: bool = False, client: str = "app", **more: Any) -> Group:
    group = Group(name, **more)
    for n in range(members):
        group.come(-3600 + n, f"m{n}", client.format(n), "10.0.0.9" if one_host else f"10.0.0.{n}")
    group.shown.clear()  # an hour before what is looked at
    return group


def deployed(group: Group, members: int, at: float, life: str, every: float = 20, **where: Any) -> Group:
    for n, old in enumerate(list(group.members)[:members]):
        client, host, _ = group.members[old]
        group.go(at + n * every, old)
        group.come(at + n * every + 5, f"{life}{n}", where.get("client", client), where.get("host", host))
    return group


def crashing(name: str, every: float, times: int, client: str = "bad", **more: Any) -> Group:
    group = started(name, 3, **more)
    for n in range(times):
        group.come(n * every, f"bad{n}", client.format(n), "10.0.0.66")
        group.go(n * every + every / 2, f"bad{n}")
    return group


def working(name: str, members: int, *, anew: bool, by_epochs: bool = False, every: float = 30) -> Group:
    """A job that runs each half minute; but not a member that leaves for too long a task, and comes back."""
    group = Group(name, by_epochs=by_epochs)
    for turn in range(9):
        for n in range(members):
            port = 1000 * turn + n if anew else 7 + n
            group.come(every * turn + n, f"m{turn}-{n}", "nightly", "10.0.0.1", port)
        for n in range(members):
            group.go(every * turn + 15 + n / 10, f"m{turn}-{n}")
    return group


def looping(
    name: str, every: float, times: int, backoff: Sequence[float] = (), *, client: str = "bad", host: str = "10.0.0.66",
    leaves: bool = True, anew: bool = True, **more: Any,
) -> Group:  # fmt: skip
    """A container that lives for ten seconds and is started again after a while."""
    group, at = started(name, 3, **more), 0.0
    for n in range(times):
        group.come(at, f"bad{n}", client.format(n), host.format(100 + n), 4000 + n if anew else 4000)
        if leaves:
            group.go(at + 10, f"bad{n}")
        else:
            del group.members[f"bad{n}"]
            group.rebalance(at + 45)
        at += 10 + backoff[min(n, len(backoff) - 1)] if backoff else every
    return group


def rejoining(name: str, times: int) -> Group:
    """A KIP-848 member that is fenced again and again keeps its member id."""
    group = started(name, 2, by_epochs=True)
    for n in range(times):
        group.come(n * 20, "m0", "app", "10.0.0.0")
    return group


def growing(name: str, members: int, **more: Any) -> Group:
    group = Group(name, **more)
    for n in range(members):
        group.come(n * 10, f"m{n}", "app", f"10.0.0.{n}")
    return group


def nobody_changes(name: str, times: int) -> Group:
    group = started(name, 3)
    for n in range(times):
        group.rebalance(n * 15)
    return group


def stands_still(name: str) -> Group:
    group = started(name, 6)
    for n, old in enumerate(list(group.members)[:3]):
        group.go(n * 60, old)
        group.rebalance(n * 60 + 1, takes=55)
    return group


HEALTHY = [
    deployed(started("rolls", 5), 5, 0, "new"),
    deployed(started("rolls on one host", 5, one_host=True), 5, 0, "new"),
    deployed(
        started("rolls by numbers", 5, one_host=True, client="consumer-g-{}"), 5, 0, "new", client="consumer-g-77"
    ),
    deployed(started("rolls to other hosts", 8), 8, 0, "new", host="10.0.1.1"),
    deployed(started("cooperates", 5, following=1), 5, 0, "new"),
    deployed(started("cooperates at length", 5, following=3), 5, 0, "new"),
    deployed(deployed(started("rolls back", 4), 4, 0, "new"), 4, 90, "old"),
    deployed(started("rolls by epochs", 8, by_epochs=True), 8, 0, "new"),
    working("works each half minute", 1, anew=True),
    working("works each half minute by two", 2, anew=True),
    working("works each half minute by epochs", 2, anew=True, by_epochs=True),
    growing("grows", 8),
    growing("grows by epochs", 8, by_epochs=True),
]
STORMS = [
    crashing("crashes", 30, 8),
    crashing("crashes slowly", 90, 12),
    crashing("crashes with new names", 30, 8, client="consumer-g-{}"),
    crashing("crashes and cooperates", 30, 8, following=1),
    crashing("crashes by epochs", 30, 8, by_epochs=True),
    rejoining("rejoins", 8),
    nobody_changes("nobody changes", 9),
    stands_still("stands still"),
    working("is too slow alone", 1, anew=False),
    working("is too slow alone by epochs", 1, anew=False, by_epochs=True),
    deployed(crashing("crashes, and is deployed an hour later", 30, 8), 3, 3600, "new"),
]
SLOW = {
    "back off": looping("back off", 300, 7),
    "backs off longer and longer": looping("backs off longer and longer", 0, 9, [10, 20, 40, 80, 160, 300, 300, 300]),
    "dies without a word": looping("dies without a word", 320, 7, leaves=False),
    "backs off by epochs": looping("backs off by epochs", 330, 7, by_epochs=True),
    "in between": looping("in between", 150, 8),
    "with numbers": looping("with numbers", 300, 7, client="consumer-g-{}"),
}
NOT_SLOW = [
    looping("a few times", 300, 5),
    looping("deployed each hour", 3600, 9),
    deployed(deployed(deployed(started("three deploys", 5), 5, 0, "new"), 5, 1000, "again"), 5, 2000, "more"),
    working("a job each ten minutes", 1, anew=True, every=600),
    looping("too slow, and lives on", 300, 9, anew=False),
    looping("new pods each time", 300, 9, host="10.0.0.{}"),
]
QUIET = [deployed(started("restarts two", 5), 2, 0, "new"), growing("starts", 3)]


ONE_BY_ONE = {"works each half minute"}
"""Where no members run side by side, nobody says that it was a deploy."""


@pytest.fixture(scope="module")
def all_found() -> dict[str, Finding]:
    return found([*HEALTHY, *STORMS, *QUIET])


@pytest.mark.parametrize("group", [g.name for g in HEALTHY])
def test_a_deploy_is_told_as_one(all_found: dict[str, Finding], group: str) -> None:
    finding = all_found[group]
    assert (finding.severity, finding.details["is_deploy"], finding.details["unexplained"]) == ("info", True, 0)
    is_one_by_one = group in ONE_BY_ONE
    assert ("as in a deploy, a change of scale" in finding.summary) is not is_one_by_one
    assert ("one member after the other" in finding.summary) is is_one_by_one


@pytest.mark.parametrize("group", [g.name for g in STORMS])
def test_what_no_deploy_explains_is_a_storm(all_found: dict[str, Finding], group: str) -> None:
    finding = all_found[group]
    assert (finding.severity, finding.details["is_deploy"]) == ("warning", False)


@pytest.mark.parametrize("group", [g.name for g in QUIET])
def test_a_few_generations_are_nothing(all_found: dict[str, Finding], group: str) -> None:
    assert group not in all_found


def test_who_comes_again_and_again_is_named(all_found: dict[str, Finding]) -> None:
    crashes = all_found["crashes"]
    assert crashes.details["comers"] == {"bad at 10.0.0.66": 8}
    assert "bad at 10.0.0.66 came 8 times" in crashes.summary
    assert all_found["stands still"].details["unstable_us"] > 150 * SECOND


def test_a_job_that_runs_again_and_again_is_told_by_what_was_seen(all_found: dict[str, Finding]) -> None:
    finding = all_found["works each half minute"]
    assert "because nightly at 10.0.0.1 joined 9 times and left 9 times, one member after the other" in finding.summary
    assert finding.advice.startswith("Now: nothing, if it is meant to run again and again")


def test_generations_without_anybody_who_comes_or_goes_are_told_as_such() -> None:
    group = started("again", 2)
    for turn in range(6):
        group.rebalance(20 * turn)
    finding = judged_leniently(group)
    assert finding.summary.endswith("; no member was seen to come or go.")
    assert "deploy" not in finding.summary + finding.advice


def judged_leniently(group: Group) -> Finding:
    """What is found of one group by thresholds under which nothing is a storm."""
    lenient = SETTINGS.model_copy(update={"storm_unexplained": 99, "storm_share": 1.0})
    episodes = collect_episodes(group.shown, ClusterCatalog(), lenient)
    made = replace(
        sources(states=group.states, exchanges=group.exchanges), episodes={"rebalance_storm": episodes},
        steps=group.steps,
    )  # fmt: skip
    (finding,) = storms.storms_of_generations(made, lenient)
    return finding


@pytest.mark.parametrize(("lag", "has_read_all"), [(None, None), (0, True), (7, False)])
def test_a_storm_states_whether_all_was_read_all_the_same(lag: int | None, has_read_all: bool | None) -> None:
    group = next(g for g in STORMS if g.name == "stands still")
    episodes = collect_episodes(group.shown, ClusterCatalog(), SETTINGS)
    commit = {"cluster": "b:1", "group_id": group.name, "topic": "t", "partition": 0, "ordinal": 0, "lag": lag}
    ts = T0 + timedelta(seconds=(episodes[0].last_us - T0_US) / SECOND)
    made = replace(
        sources(states=group.states, exchanges=group.exchanges, timeline=[row(OFFSET_TIMELINE, **commit, ts=ts)]),
        episodes={"rebalance_storm": episodes}, steps=group.steps,
    )  # fmt: skip
    (finding,) = storms.storms_of_generations(made, SETTINGS)
    assert finding.details["has_read_all"] is has_read_all


def test_a_storm_that_comes_again_says_so() -> None:
    group = started("again", 3)
    for turn in range(3):
        for n in range(8):
            group.come(turn * 3600 + n * 30, f"bad{turn}-{n}", "bad", "10.0.0.66")
            group.go(turn * 3600 + n * 30 + 15, f"bad{turn}-{n}")
    finding = found([group])["again"]
    assert (finding.details["recurrences"], finding.details["first_of_all_us"]) == (2, T0_US)
    assert finding.first_us == T0_US + 7200 * SECOND
    assert finding.summary.endswith("It came 2 times before, first at 12:00:00 UTC.")


def test_members_of_one_name_are_told_apart_by_how_many_live_at_once() -> None:
    def life(member: str, first: int, last: int) -> Life:
        return Life(member, "rdkafka", "10.0.0.1", first, last)

    lives = [life("a", 0, 10), life("b", 0, 10), life("c", 20, 30), life("d", 20, 30), life("e", 40, 50)]
    members = [{"a", "b"}, {"c", "d"}, {"e"}]
    rounds = [Round(n, frozenset(some), 20 * n, 20 * n + 1) for n, some in enumerate(members)]
    assert explain_generations(lives, rounds).unexplained == 0


def test_a_member_alone_that_joins_again_holds_nobody_up() -> None:
    """A Connect worker does so for each connector that is made; the same of two members is a storm."""

    def told(members: str) -> tuple[int, int]:
        lives = [Life(m, m, "h", 0, 99) for m in members]
        rounds = [Round(n, frozenset(members), 5 * n, 5 * n + 1) for n in range(1, 9)]
        explained = explain_generations(lives, rounds)
        return explained.unexplained, explained.alone

    assert told("a") == (0, 7)
    assert told("ab") == (4, 0)


def test_what_began_before_the_capture_explains_its_first_generations() -> None:
    """A capture that begins within a rebalance sees three members that it has never seen: nobody came."""
    lives = [Life(m, m, "h", 0, 9) for m in "abc"]
    told = explain_generations(lives, [Round(71, frozenset("abc"), 0, 1), Round(72, frozenset("abc"), 5, 6)])
    assert (told.total, told.unexplained) == (2, 0)


@pytest.fixture(scope="module")
def slow_found() -> dict[str, Finding]:
    return found([*SLOW.values(), *NOT_SLOW])


@pytest.mark.parametrize("group", SLOW)
def test_an_instance_that_comes_every_few_minutes_is_a_storm_in_slow_motion(
    slow_found: dict[str, Finding], group: str
) -> None:
    finding = slow_found[group]
    assert (finding.severity, finding.details["is_deploy"]) == ("warning", False)
    assert len(finding.details["comers"]) > 0  # type: ignore[arg-type]
    assert finding.evidence


def test_it_says_who_and_how_often(slow_found: dict[str, Finding]) -> None:
    finding = slow_found["back off"]
    assert finding.summary == (
        "bad at 10.0.0.66 comes to group back off and ends again and again, 7 times from 12:00:00 to 12:30:10 UTC, "
        "usually 5 min apart: the group rebalances each time."
    )
    assert finding.details["enough_us"] == T0_US + 1500 * SECOND + SECOND // 10
    assert "bad at 10.0.0.66" in finding.advice


@pytest.mark.parametrize("group", [g.name for g in NOT_SLOW])
def test_what_is_seldom_or_explained_is_none(slow_found: dict[str, Finding], group: str) -> None:
    assert group not in slow_found or slow_found[group].severity == "info"
