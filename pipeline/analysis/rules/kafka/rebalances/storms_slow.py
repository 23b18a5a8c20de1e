"""Rebalance storms in slow motion: one instance ends and comes again every few minutes, as in CrashLoopBackOff.

Its generations are too far apart for an episode, and too few. What shows it are the lives of the instance, by client id
and host (a container that is started again keeps its pod's address): they follow each other at its own rhythm, and
there are more of them than a deploy and its rollback explain.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

from pipeline.analysis.libraries import OR_CONSUMER_PROTOCOL
from pipeline.analysis.rules.format import who
from pipeline.analysis.rules.kafka.groups.coming_and_going import ENTERS, Step
from pipeline.analysis.rules.kafka.rebalances.storms import (
    BIRTHS,
    NAME,
    Life,
    at_once,
    by_host,
    lives_of,
    runs_of,
)
from pipeline.analysis.rules.model import Finding, Sources
from pipeline.analysis.rules.recurrence import earlier
from pipeline.humanize import clock, pluralize, seconds

if TYPE_CHECKING:
    from pipeline.analysis.rules.kafka.rebalances.rebalance_storm import RebalanceStorm

LOOP_ADVICE = (
    "Now: see why {who} ends (`kubectl logs --previous`, its exit code, out of memory) and stop or repair it: the "
    "others get on without it. Fix: let it end only for what a restart repairs; group.instance.id with a "
    f"session.timeout.ms longer than a restart{OR_CONSUMER_PROTOCOL} spare the others its coming and going."
)


@dataclass(frozen=True, slots=True)
class Loop:
    """Lives of one instance, one after the other at its own rhythm, in the order of time."""

    lives: tuple[Life, ...]
    unexplained: int

    @property
    def interval_us(self) -> int:
        """From one to the next, usually."""
        return int(median(_intervals(self.lives)))

    @property
    def span(self) -> tuple[int, int]:
        """From the first to the last sign of any."""
        return self.lives[0].first_us, max(one.last_us for one in self.lives)


def loops(lives: Sequence[Life], settings: RebalanceStorm.Thresholds) -> list[Loop]:
    """What comes again and again, of the members of one group.

    Args:
        lives: in order of their beginning.
        settings: how many lives that nothing explains, and how many of its own intervals are a pause.
    """
    run, kinds = runs_of(lives), defaultdict[tuple[int, tuple[str, ...]], list[Life]](list)
    known = set[str]()
    for one in lives:
        if one.client in known:
            continue  # who comes again by its old connection has not ended: that is poll_interval_exceeded
        known.add(one.client)
        kinds[run[one.member_id], by_host(one)].append(one)
    found = []
    for alike in kinds.values():
        for some in _without_pauses(alike, settings):
            unexplained = len(some) - BIRTHS * at_once(some)
            if unexplained >= settings.storm_unexplained:
                found.append(Loop(tuple(some), unexplained))
    return sorted(found, key=lambda loop: loop.span)


def _without_pauses(alike: Sequence[Life], settings: RebalanceStorm.Thresholds) -> Iterator[list[Life]]:
    """Cut where the instance stays away, or lives, for several of its own intervals."""
    longest_us = settings.silence_periods * settings.episode_pause_seconds * 1_000_000
    some: list[Life] = []
    for one in alike:
        if some:
            gaps = _intervals(some)
            usual = settings.silence_periods * median(gaps) if gaps else longest_us
            if one.first_us - some[-1].first_us > min(usual, longest_us):
                yield some
                some = []
        some.append(one)
    if some:
        yield some


def _intervals(lives: Sequence[Life]) -> list[int]:
    return [after.first_us - before.first_us for before, after in pairwise(lives)]


def storms_of_instances(sources: Sources, settings: RebalanceStorm.Thresholds) -> Iterator[Finding]:
    """Apply the rule to the lives of instances; what episodes show is reported by them, if it is as severe."""
    joined = _joined(sources.steps, BIRTHS + settings.storm_unexplained)
    if not joined:
        return
    lives = lives_of(sources.tables, sorted({group for _, group in joined}))
    for (cluster, group), by_member in joined.items():
        if found := loops(lives[cluster, group], settings):
            yield _finding(cluster, group, found, by_member, sources, settings)


def _joined(steps: Iterable[Step], least: int) -> dict[tuple[str, str], dict[str, str]]:
    """By cluster and group, and then by member id, the exchange by which it entered; for groups this large."""
    found: defaultdict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    for step in steps:
        if step.what == ENTERS and step.member:
            found[step.cluster, step.group].setdefault(step.member, step.exchange_id)
    return {group: members for group, members in found.items() if len(members) >= least}


def _finding(
    cluster: str, group: str, found: Sequence[Loop], by_member: Mapping[str, str], sources: Sources,
    settings: RebalanceStorm.Thresholds,
) -> Finding:  # fmt: skip
    last = found[-1]
    name = who(last.lives[0].client_id, last.lives[0].client_ip)
    first_us, last_us = last.span
    number = len(last.lives)
    evidence = [by_member[one.member_id] for one in last.lives if one.member_id in by_member]
    enough = last.lives[number - last.unexplained + settings.storm_unexplained - 1]
    again = f" It did so {pluralize(len(found) - 1, 'time')} before." if len(found) > 1 else ""
    return Finding(
        rule=NAME, severity="warning", subject=group,
        state=sources.state(cluster, first_us, last_us, number), cluster=cluster, topic=None, partition=None,
        group_id=group, first_us=first_us, last_us=last_us,
        summary=f"{name} comes to group {group} and ends again and again, {number} times from {clock(first_us)} to "
        f"{clock(last_us)} UTC, usually {seconds(last.interval_us)} apart: the group rebalances each time.{again}",
        advice=LOOP_ADVICE.format(who=name), evidence=evidence[-settings.max_evidence :],
        details={
            "times": number, "clients": [name], "comers": {name: number}, "unexplained": last.unexplained,
            "is_deploy": False, "interval_us": last.interval_us, **earlier(loop.span for loop in found),
            "enough_us": enough.first_us,
        },
    )  # fmt: skip
