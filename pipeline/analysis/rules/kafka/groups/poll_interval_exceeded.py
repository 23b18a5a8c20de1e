"""Rule ``poll_interval_exceeded``."""

from __future__ import annotations

from pydantic import Field

from pipeline.analysis.libraries import WHEN_REVOKED
from pipeline.analysis.rules.case.entities import CLIENT, GROUP
from pipeline.analysis.rules.case.texts import REFUSED
from pipeline.analysis.rules.kafka.links import AWAY, PUT_OUT, STANDSTILL
from pipeline.analysis.rules.rule import Link, Rule
from pipeline.analysis.rules.thresholds import Count, RuleThresholds

ADVICE = (
    "Now: find out what {who} waits for (a database, a lock, a service downstream) and restart it if it hangs; the "
    "members that have its partitions now process its records a second time. Fix: fewer records between two polls "
    "by max.poll.records (librdkafka: smaller batches of consume()), or a max.poll.interval.ms above the longest work; "
    "hand long work to a thread and pause() the partitions while polling on; commit when a partition is revoked "
    f"({WHEN_REVOKED}), not after it."
)


class PollIntervalExceeded(Rule):
    """A client exceeds max.poll.interval.ms between two polls and drops out of its group."""

    class Thresholds(RuleThresholds):
        """When it fires."""

        poll_exceeded_times: Count = Field(
            default=1, description="Times that a client leaves its group in the middle of its work"
        )

    name = "poll_interval_exceeded"
    title = "Poll interval exceeded"
    protocol = "kafka"
    severities = ("critical", "warning")
    reads = ("exchanges", "events", "batches", "states")
    advice = (ADVICE,)
    urgency = REFUSED
    effects = (
        Link(("rebalance_storm", "slow_rebalance"), (GROUP,), "who is put out comes back, and all join anew"),
        Link(
            (*PUT_OUT, "competing_committers", "stuck_commit", "commit_regressed"),
            (GROUP, CLIENT),
            "commits of a removed member are refused or out of date",
        ),
        Link(STANDSTILL, (GROUP,), AWAY),
    )
