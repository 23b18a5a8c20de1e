"""Rule ``frozen_process``."""

from __future__ import annotations

from pipeline.analysis.rules.case.case import Case, arg, begun
from pipeline.analysis.rules.case.entities import CLIENT, GROUP
from pipeline.analysis.rules.case.texts import LOSES, SEEN, WHY_IS_NOT, Texts, advised, groups
from pipeline.analysis.rules.kafka.links import AWAY, PUT_OUT, STANDSTILL
from pipeline.analysis.rules.rule import Link, Rule
from pipeline.humanize import pluralize, seconds

ADVICE = (
    "Now: {again}look at what held {who} from {begin} to {end} UTC: its garbage collection log, the host's journal "
    "(suspended, migrated, SIGSTOP), CPU limits (nr_throttled) and swapping. Fix: shorten that halt (heap, CPU limit, "
    "no live migration), or set session.timeout.ms above the longest one (with group.protocol=consumer: "
    "group.consumer.session.timeout.ms of the brokers, or consumer.session.timeout.ms of the group)."
)


def _frozen(case: Case) -> str:
    details = case.details
    silent = seconds(int(details.get("silent_us") or 0))
    stated = details.get("session_us")
    timeout = f"its session timeout ({seconds(stated)})" if stated else "its session timeout"
    often = f", {pluralize(case.times, 'time')}" if case.times > 1 else ""
    return (
        f"{case.who} stood still for {silent}{often}, longer than {timeout}: nothing came on any of its connections, "
        f"and group {case.group} went on without it"
    )


def _frozen_now(case: Case) -> str:
    refused = int(case.details.get("commits") or 0)
    again = f" What it had processed and could not commit ({pluralize(refused, 'refused commit')}) is read again."
    members = f"`kafka-consumer-groups.sh --bootstrap-server BROKER --describe --group {arg(case.group)} --members`"
    away = "" if case.details.get("back_us") else f" Is it among the members? {members}"
    return f"{begun(advised(case, 'now'))}{again if refused else ''}{away}"


class FrozenProcess(Rule):
    """A process stood still for longer than its session timeout, and was put out of its group."""

    name = "frozen_process"
    title = "Process froze"
    protocol = "kafka"
    severities = ("warning",)
    reads = ("exchanges", "states", "events", "connections")
    advice = (ADVICE,)
    urgency = LOSES
    texts = Texts(
        headline=_frozen,
        now=_frozen_now,
        fix=lambda case: begun(advised(case, "fix")),
        reasoning=f"{SEEN}its requests end and begin again, and it did not leave. {WHY_IS_NOT}",
        affected=groups,
    )
    effects = (
        Link(
            (*PUT_OUT, "competing_committers", "stuck_commit", "commit_regressed"),
            (GROUP, CLIENT),
            "who stood still works on as a member of the past",
        ),
        Link(("rebalance_storm", "slow_rebalance"), (GROUP,), "who stood still is put out, and all join anew"),
        Link(("rewound", "offset_reset"), (GROUP,), "what was refused is read again"),
        Link(STANDSTILL, (GROUP,), AWAY),
    )
