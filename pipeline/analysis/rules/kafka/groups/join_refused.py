"""Rule ``join_refused``."""

from __future__ import annotations

from pydantic import Field

from decoder.kafka.apis import ApiKey, KafkaError
from pipeline.analysis.codes.kafka.table import KAFKA
from pipeline.analysis.codes.model import CodeFacts
from pipeline.analysis.rules.case.entities import CLIENT, GROUP
from pipeline.analysis.rules.case.texts import REFUSED
from pipeline.analysis.rules.kafka.links import PUT_OUT, STANDSTILL
from pipeline.analysis.rules.kafka.thresholds import JOIN_REFUSED_SECONDS
from pipeline.analysis.rules.rule import Link, Rule
from pipeline.analysis.rules.thresholds import Count, RuleThresholds, Seconds

WAITS = (KafkaError.GROUP_MAX_SIZE_REACHED, KafkaError.FENCED_INSTANCE_ID, KafkaError.UNRELEASED_INSTANCE_ID)
"""A place may become free: a deploy that starts the new instance before the old one ends is refused for a while."""
REFUSALS = (
    *KAFKA.of_area("join"),
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    *(code for code in WAITS if code not in KAFKA.of_area("join")),
)


def facts(code: int) -> CodeFacts:
    """What is known of an error of JoinGroup."""
    return KAFKA.meaning(int(ApiKey.JOIN_GROUP), code)


_DESCRIBE = "`kafka-consumer-groups.sh --bootstrap-server BROKER --describe --group {group}"
LOOK = {
    KafkaError.INCONSISTENT_GROUP_PROTOCOL: f"What they offer was not captured: {_DESCRIBE} --state` shows it.",
    KafkaError.GROUP_MAX_SIZE_REACHED: f"Who they are was not captured: {_DESCRIBE} --members` shows them.",
    KafkaError.FENCED_INSTANCE_ID: f"The other one was not captured: {_DESCRIBE} --members` shows where it runs.",
    KafkaError.UNRELEASED_INSTANCE_ID: f"The other one was not captured: {_DESCRIBE} --members` shows where it runs.",
}
"""Where to look for what depends on other members of which the capture holds nothing."""


def unseen(code: int) -> str:
    """The advice where the others were not captured."""
    now, fix, rest = facts(code).advice.partition(" Fix: ")
    return f"{now} {LOOK[KafkaError(code)]}{fix}{rest}"


WITHOUT_ID = (
    "Now: run the client's last version that got into the group. Fix: update its library: MEMBER_ID_REQUIRED gives it "
    "a member id (KIP-394), with which it must send JoinGroup again; this one asks without an id each time. A proxy "
    "that rewrites requests may drop it as well."
)


class JoinRefused(Rule):
    """A coordinator refuses again and again to let a client into its group."""

    class Thresholds(RuleThresholds):
        """When it fires."""

        join_refused_times: Count = Field(
            default=3, description="Refused joins of one client and group, and none accepted"
        )
        join_refused_seconds: Seconds = JOIN_REFUSED_SECONDS

    name = "join_refused"
    title = "Join refused"
    protocol = "kafka"
    severities = ("critical", "warning")
    reads = ("states", "exchanges")
    advice = (*(facts(code).advice for code in REFUSALS), *(unseen(code) for code in LOOK), WITHOUT_ID)
    urgency = REFUSED
    effects = (
        Link(("rebalance_storm", *STANDSTILL), (GROUP,), "who may not join reads nothing"),
        Link(PUT_OUT, (GROUP, CLIENT), "who may not join is no member"),
        Link(("connection_churn",), (CLIENT,), "who may not join connects anew"),
    )
