"""Rule ``slow_rebalance``."""

from __future__ import annotations

from pydantic import Field

from pipeline.analysis.libraries import COOPERATIVE
from pipeline.analysis.rules.case.entities import GROUP
from pipeline.analysis.rules.case.texts import SLOW
from pipeline.analysis.rules.kafka.links import AWAY, PUT_OUT, STANDSTILL
from pipeline.analysis.rules.rule import Link, Rule
from pipeline.analysis.rules.thresholds import Ratio, RuleThresholds, Seconds

BUSY = (
    "Now: let {who} finish, or restart it if it hangs; all others wait for it. Fix: less work between two polls by "
    "max.poll.records (librdkafka: smaller batches of consume()), and a max.poll.interval.ms not longer than the group "
    f"may stand still; {COOPERATIVE}, where others read on meanwhile."
)
SILENT = (
    "Now: nothing brings it back sooner; see why {who} ended without LeaveGroup (killed, out of memory, host or "
    "network gone). Fix: close the consumer when the process is told to end (SIGTERM), a session.timeout.ms of a few "
    "heartbeats (heartbeat.interval.ms), or group.instance.id with a restart that is quicker than the session timeout."
)


class SlowRebalance(Rule):
    """A group waits for one member before it has an assignment again."""

    class Thresholds(RuleThresholds):
        """When it fires."""

        slow_rebalance_seconds: Seconds = Field(
            default=10.0, description="How long a group waits for one member before it has an assignment again"
        )
        slow_rebalance_ratio: Ratio = Field(
            default=3.0, description="Times as long as rebalances of this group usually take, where that is known"
        )

    name = "slow_rebalance"
    title = "Slow rebalance"
    protocol = "kafka"
    severities = ("warning",)
    reads = ("states", "exchanges", "waiting")
    advice = (BUSY, SILENT)
    urgency = SLOW
    effects = (
        Link(PUT_OUT, (GROUP,), "commits that meet a rebalance are refused"),
        Link(STANDSTILL, (GROUP,), AWAY),
    )
