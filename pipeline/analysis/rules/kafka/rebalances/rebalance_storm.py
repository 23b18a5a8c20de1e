"""Rule ``rebalance_storm``."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from pipeline.analysis.claims.kafka.members import REBALANCE_STORM
from pipeline.analysis.libraries import COOPERATIVE_ASSIGNOR
from pipeline.analysis.rules.case.case import Case
from pipeline.analysis.rules.case.entities import GROUP
from pipeline.analysis.rules.case.texts import REFUSED, SEEN, WHY_IS_NOT, Texts, never
from pipeline.analysis.rules.kafka.links import AWAY, PUT_OUT, STANDSTILL
from pipeline.analysis.rules.kafka.rebalances.storms import (
    ADVICE,
    ADVICE_AGAIN,
    ADVICE_DEPLOY,
    ADVICE_UNSEEN,
    NAME,
    storms_of_generations,
)
from pipeline.analysis.rules.kafka.rebalances.storms_slow import LOOP_ADVICE, storms_of_instances
from pipeline.analysis.rules.rule import Counting, Link, Rule
from pipeline.analysis.rules.thresholds import SILENCE_PERIODS, Count, Ratio, RuleThresholds, Seconds, Share
from pipeline.humanize import listed, pluralize, seconds

_SOME = 0.1
"""A share of the time from which on rebalances are worth a word."""


def _storm(case: Case) -> str:
    every_us = case.details.get("interval_us")
    if every_us:
        return (
            f"{case.who} joins group {case.group} and ends again and again, {pluralize(case.times, 'time')}, usually "
            f"{seconds(every_us)} apart: the group rebalances each time"
        )
    generations = len({kind for one in case.bundle.findings for kind in one.details.get("kinds", [])})
    many = pluralize(generations, "generation") if generations else "again and again"
    join = "joins" if len(case.callers) == 1 else "join"
    who = _comers(case) or f"{case.at or 'its members'} {join} again and again"
    return f"Group {case.group} keeps rebalancing ({many}){_standstill(case)}: {who}"


def _comers(case: Case) -> str:
    """Who came more often than a deploy explains, and how often."""
    stated = case.details.get("comers")
    some = stated.items() if isinstance(stated, dict) else ()
    return listed(f"{name} came {pluralize(int(times), 'time')}" for name, times in some)


def _storm_now(case: Case) -> str:
    if _comers(case):
        return (
            f"Look at the log of whoever keeps joining ({_comers(case)}) and stop or repair that member: the others "
            "continue without it."
        )
    return (
        f"Find the member that keeps joining and leaving ({case.clients}) and stop or repair that one: the others "
        "continue without it."
    )


def _standstill(case: Case) -> str:
    """How much of the time went into rebalances, if that is known; "hardly reads" only of a group that stays behind."""
    unstable_us = sum(int(one.details.get("unstable_us") or 0) for one in case.bundle.findings)
    span_us = sum(max(one.last_us - one.first_us, 0) for one in case.bundle.findings)
    if not span_us or unstable_us < _SOME * span_us:
        return ""
    stays_behind = any(one.details.get("has_read_all") is False for one in case.bundle.findings)
    took = f"{seconds(unstable_us)} of {seconds(span_us)} in rebalances"
    return f" and hardly reads, {took}" if unstable_us >= span_us / 2 and stays_behind else f", {took}"


class RebalanceStorm(Rule):
    """A group rebalances again and again."""

    class Thresholds(RuleThresholds):
        """When it fires."""

        storm_generations: Annotated[int, Field(ge=2)] = Field(default=5, description="Generations of a group")
        storm_interval_seconds: Seconds = Field(
            default=60.0, description="At most so long from one to the next, on average"
        )
        storm_unexplained: Count = Field(
            default=3,
            description="Generations among them that no deploy explains: instances come again and again, or none "
            "came or went",
        )
        storm_share: Share = Field(
            default=0.5, description="Or the share of time in which the group stands still for rebalances"
        )
        silence_periods: Ratio = SILENCE_PERIODS

    name = NAME
    title = "Rebalance storm"
    protocol = "kafka"
    about = "membership"
    severities = ("warning", "info")
    reads = ("exchanges", "states", "timeline")
    found_by = (storms_of_generations, storms_of_instances)
    advice = (ADVICE, ADVICE_DEPLOY, ADVICE_AGAIN, ADVICE_UNSEEN, LOOP_ADVICE)
    urgency = REFUSED
    texts = Texts(
        headline=_storm,
        now=_storm_now,
        fix="If it is too slow, raise max.poll.interval.ms or lower max.poll.records; if it pauses, raise "
        f"session.timeout.ms. group.instance.id, {COOPERATIVE_ASSIGNOR} make the remaining rebalances cheap.",
        reasoning=f"{SEEN}each join and each new generation. {WHY_IS_NOT}",
        is_cause=never,
    )
    counting = Counting(pause_setting="storm_interval_seconds")
    unit = "joins"
    effects = (
        Link(PUT_OUT, (GROUP,), "commits that meet a rebalance are refused"),
        Link(("slow_rebalance", *STANDSTILL), (GROUP,), AWAY),
    )
    claims = REBALANCE_STORM
