"""Rule ``frozen_process``: a process stood still beyond its session timeout, and its group continued without it.

What it rests on: :mod:`pipeline.analysis.rules.kafka.processes.frozen`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from pipeline.analysis.claims.kafka.processes import FROZEN_PROCESS
from pipeline.analysis.rules.case.case import Case, arg, begun
from pipeline.analysis.rules.case.entities import CLIENT, GROUP
from pipeline.analysis.rules.case.texts import LOSES, SEEN, WHY_IS_NOT, Texts, advised, groups
from pipeline.analysis.rules.format import host_of, who
from pipeline.analysis.rules.kafka.links import AWAY, PUT_OUT, STANDSTILL
from pipeline.analysis.rules.kafka.processes.frozen import Halt, halts, may_be
from pipeline.analysis.rules.model import Finding, Sources
from pipeline.analysis.rules.recurrence import earlier
from pipeline.analysis.rules.rule import Link, Rule
from pipeline.analysis.rules.thresholds import RuleThresholds
from pipeline.humanize import clock, pluralize, seconds

ADVICE = (
    "Now: {again}look at what held {who} from {begin} to {end} UTC: its garbage collection log, the host's journal "
    "(suspended, migrated, SIGSTOP), CPU limits (nr_throttled) and swapping. Fix: shorten that halt (heap, CPU limit, "
    "no live migration), or set session.timeout.ms above the longest one (with group.protocol=consumer: "
    "group.consumer.session.timeout.ms of the brokers, or consumer.session.timeout.ms of the group)."
)

_BACK, _AWAY = "nothing has to be restarted, it has joined again; ", "restart it if it does not join again by itself; "


def _frozen(case: Case) -> str:
    details = case.details
    silent = seconds(int(details.get("silent_us") or 0))
    stated = details.get("session_us")
    timeout = f"its session timeout ({seconds(stated)})" if stated else "its session timeout"
    often = f", {pluralize(case.times, 'time')}" if case.times > 1 else ""
    return (
        f"{case.who} stood still for {silent}{often}, longer than {timeout}: nothing came on any of its connections, "
        f"and group {case.group} continued without it"
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
    about = "membership"
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
            "a process that stood still works on as a former member",
        ),
        Link(("rebalance_storm", "slow_rebalance"), (GROUP,), "who stood still is put out, and all join again"),
        Link(("rewound", "offset_reset"), (GROUP,), "what was refused is read again"),
        Link(STANDSTILL, (GROUP,), AWAY),
    )
    claims = FROZEN_PROCESS

    @classmethod
    def detect(cls, sources: Sources, settings: RuleThresholds) -> Iterator[Finding]:
        """One finding for each group and client."""
        by_client: defaultdict[tuple[str, str, str | None], list[Halt]] = defaultdict(list)
        for halt in halts(sources.tables) if may_be(sources) else ():
            by_client[halt.cluster, halt.group, halt.client_id].append(halt)
        for some_halts in by_client.values():
            yield _finding(some_halts, sources, settings)


def _finding(some_halts: Sequence[Halt], sources: Sources, settings: RuleThresholds) -> Finding:
    last = some_halts[-1]
    name = who(last.client_id, host_of(last.client))
    longest_us = max(one.last_us - one.first_us for one in some_halts)
    ends_us = max(last.last_us, last.back_us or 0)
    timeout = (
        f"the session timeout that it stated ({seconds(last.session_us)})"
        if last.session_us
        else "the session timeout of its group (45 s unless group.consumer.session.timeout.ms says otherwise)"
    )
    was = "was" if last.refused == 1 else "were"
    errors = ", ".join(last.errors)
    refused = f"; then {pluralize(last.refused, 'request')} of it {was} refused ({errors})" if last.refused else ""
    back = f" It was back at {clock(last.back_us)} UTC." if last.back_us else ""
    often = f", {pluralize(len(some_halts), 'time')}" if len(some_halts) > 1 else ""
    return Finding(
        rule=FrozenProcess.name, severity="warning", subject=f"{last.group}/{last.client_id or '?'}",
        state="resolved" if last.back_us else sources.state_unhealed(last.cluster, last.first_us, last.last_us, 1),
        cluster=last.cluster, topic=None, partition=None, group_id=last.group, first_us=last.first_us, last_us=ends_us,
        summary=f"{name} sent nothing on any of its connections for {seconds(last.last_us - last.first_us)}, from "
        f"{clock(last.first_us)} to {clock(last.last_us)} UTC, longer than {timeout}: the coordinator put it out of "
        f"group {last.group}, and it did not leave{refused}{often}.{back}",
        advice=ADVICE.format(
            who=name, begin=clock(last.first_us), end=clock(last.last_us), again=_BACK if last.back_us else _AWAY,
        ),
        evidence=[one.exchange_id for one in some_halts][-settings.max_evidence :],
        details={
            "times": len(some_halts), "clients": [name], "kinds": list(last.errors),
            "silent_us": last.last_us - last.first_us, "longest_us": longest_us, "session_us": last.session_us,
            "from_us": last.first_us, "until_us": last.last_us, "refused": last.refused, "commits": last.commits,
            "address": last.client, "member_id": last.member, "back_us": last.back_us,
            **earlier((one.first_us, one.last_us) for one in some_halts), "enough_us": last.last_us,
        },
    )  # fmt: skip
