"""Rule ``instance_id_shared``."""

from __future__ import annotations

from pipeline.analysis.rules.case.case import Case, begun
from pipeline.analysis.rules.case.entities import CLIENT, GROUP
from pipeline.analysis.rules.case.texts import REFUSED, SEEN, Texts, advised, groups
from pipeline.analysis.rules.kafka.links import PUT_OUT, STANDSTILL
from pipeline.analysis.rules.kafka.thresholds import JOIN_REFUSED_SECONDS, ZOMBIE_TIMES
from pipeline.analysis.rules.rule import Link, Rule
from pipeline.analysis.rules.thresholds import Count, RuleThresholds, Seconds
from pipeline.humanize import clock, listed, pluralize

_FIX = (
    "Fix: a group.instance.id for each process, from what is its own (the pod's name in a StatefulSet, host and "
    "number), never a constant of the configuration or image."
)
ADVICE = (
    "Now: stop one of {who}, or start it with a group.instance.id of its own: until then each puts the other out, and "
    f"what was not committed is processed twice. {_FIX}"
)
ALONE = (
    "Now: find the other process (`kafka-consumer-groups.sh --bootstrap-server BROKER --describe --group {group} "
    "--members` shows where it runs): it is the member now. Stop {who}, or start it with a group.instance.id of its "
    "own. "
    f"{_FIX}"
)


def _names(case: Case) -> str:
    return listed(str(name) for name in case.details.get("names", ()))


def _shared(case: Case) -> str:
    instance = case.details.get("group_instance_id")
    if _is_alone(case):
        return (
            f"{_names(case)} is refused in group {case.group} ({case.kinds}): another process, which was not captured, "
            f"uses group.instance.id {instance} as well"
        )
    both = f"{_names(case)} both use group.instance.id {instance} in group {case.group}"
    if case.details.get("each_other"):
        return f"{both} and fence each other, {pluralize(case.times, 'time')}: give each its own group.instance.id"
    return (
        f"{both}: the coordinator refuses {case.details.get('refused')} ({case.kinds}). Give each its own "
        "group.instance.id"
    )


def _rivals(case: Case) -> str:
    """Client, port, member and since when, of each process."""
    found = []
    for one in case.details.get("rivals", ()):
        member = f", member {one['member_id']}" if one.get("member_id") else ""
        found.append(f"{one.get('client_id')} at {one.get('address')}{member}, since {clock(one['since_us'])} UTC")
    return "; ".join(found)


def _is_alone(case: Case) -> bool:
    return len(case.details.get("rivals", ())) == 1


def _stop_one(case: Case) -> str:
    if _is_alone(case):
        return f"{begun(advised(case, 'now'))} The one that is refused: {_rivals(case)}."
    return (
        f"Stop one of the two, or start it with another group.instance.id ({_rivals(case)}): until then each puts the "
        "other out, and what was not committed is processed twice."
    )


def _why(case: Case) -> str:
    if _is_alone(case):
        return f"{SEEN}the coordinator's refusals: it knows another member under this group.instance.id."
    return f"{SEEN}both name this group.instance.id, and the coordinator's refusals."


class InstanceIdShared(Rule):
    """Two processes use one group.instance.id and put each other out of the group."""

    class Thresholds(RuleThresholds):
        """When it fires."""

        zombie_times: Count = ZOMBIE_TIMES
        join_refused_seconds: Seconds = JOIN_REFUSED_SECONDS

    name = "instance_id_shared"
    title = "Instance id shared"
    protocol = "kafka"
    severities = ("critical", "warning")
    advice = (ADVICE, ALONE)
    urgency = REFUSED
    texts = Texts(
        headline=_shared,
        now=_stop_one,
        fix=lambda case: begun(advised(case, "fix")),
        reasoning=_why,
        source=_names,
        affected=groups,
    )
    effects = (
        Link(
            (
                *PUT_OUT,
                "join_refused",
                "rebalance_storm",
                "slow_rebalance",
                "competing_committers",
                "stuck_commit",
                "commit_regressed",
                "rewound",
                "poll_interval_exceeded",
                *STANDSTILL,
            ),
            (GROUP,),
            "who shares an instance id is put out each time",
        ),
        Link(("connection_churn",), (CLIENT,), "who is fenced ends and connects anew"),
    )
