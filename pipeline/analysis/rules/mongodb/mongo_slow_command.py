"""Rule ``mongo_slow_command``."""

from __future__ import annotations

from pydantic import Field

from pipeline.analysis.rules.case.case import Case, begun
from pipeline.analysis.rules.case.entities import CLIENT, NAMESPACE
from pipeline.analysis.rules.case.texts import SEEN, SLOW, Texts, never, not_why, own_clients, part_of, server
from pipeline.analysis.rules.mongodb.slow import QUERY_ADVICE, SERVER_ADVICE, advice_on
from pipeline.analysis.rules.rule import OF_SERVER, Counting, Link, Rule
from pipeline.analysis.rules.thresholds import Count, Ratio, RuleThresholds, Seconds
from pipeline.humanize import listed


def _slow_commands(case: Case) -> list[str]:
    """Slow commands with their namespaces, the slowest first."""
    slowest = sorted(case.bundle.findings, key=lambda one: -float(one.details.get("peak") or 0))
    named = (str(one.row["subject"]).rpartition("/") for one in slowest)
    return list(dict.fromkeys(f"{command} on {namespace}" for namespace, _, command in named))


def _slow(case: Case) -> str:
    peak = max(float(one.details.get("peak") or 0) for one in case.bundle.findings) / 1_000_000
    waits = "waits" if len(case.callers) <= 1 else "wait"
    return f"{server(case)} takes up to {peak:.1f} s for {listed(_slow_commands(case))}: {case.who} {waits}"


def _slow_part(case: Case, part: str) -> str:
    commands = (str(one.row["subject"]).rpartition("/")[2] for one in case.bundle.findings)
    return begun(part_of(advice_on(commands), part))


class MongoSlowCommand(Rule):
    """A MongoDB server took far longer than usual for a command, several times."""

    class Thresholds(RuleThresholds):
        """When it fires."""

        mongo_slow_seconds: Seconds = Field(
            default=0.5, description="Latency of a MongoDB command that does not wait by design"
        )
        mongo_slow_commands: Count = Field(default=3, description="Slow ones of one command and namespace")
        mongo_slow_ratio: Ratio = Field(
            default=5.0,
            description="Times the usual of the same application and command that each must take: the 95th percentile "
            "at other times, or the 75th of all where too few commands were seen outside the slow times",
        )
        mongo_slow_samples: Count = Field(
            default=5, description="Commands of an application from which its usual latency follows; else those of all"
        )

    name = "mongo_slow_command"
    title = "Slow MongoDB command"
    protocol = "mongodb"
    severities = ("warning", "info")
    reads = ("commands",)
    advice = (QUERY_ADVICE, SERVER_ADVICE)
    urgency = SLOW
    texts = Texts(
        headline=_slow,
        now=lambda case: _slow_part(case, "now"),
        fix=lambda case: _slow_part(case, "fix"),
        reasoning=f"{SEEN}the time between command and reply. {not_why('server')}",
        source=lambda case: listed(_slow_commands(case)),
        affected=own_clients,
        is_cause=never,
    )
    gathered = OF_SERVER
    subject = (NAMESPACE, None)
    counting = Counting(keeps_each=True)
    effects = (Link(("mongo_retry_storm",), (CLIENT, NAMESPACE), "what comes too late is asked again"),)
