"""Rule ``sequence_gap``."""

from __future__ import annotations

from pydantic import Field

from pipeline.analysis.rules.case.case import Case
from pipeline.analysis.rules.case.entities import CLIENT
from pipeline.analysis.rules.case.texts import LOSES, SEEN, Texts, topics
from pipeline.analysis.rules.rule import OF_CLIENT, Counting, Rule
from pipeline.analysis.rules.thresholds import Count, RuleThresholds

MISSING = (
    "Now: restart the producer: the broker misses records of it, which are lost, or were given up by the client. "
    "Fix: look for earlier errors of it (timeouts, batches that expired): delivery.timeout.ms (librdkafka: "
    "message.timeout.ms) longer than the brokers are away."
)
FORGOTTEN = (
    "Now: nothing, if retention explains it: brokers without KIP-360 forget a producer when the last of its "
    "records is deleted; it begins anew, and nothing is lost. Fix: brokers and clients of Kafka 2.5 or later. If "
    "retention does not explain it, records are missing: look for an unclean election or a log that was truncated."
)


def _is_forgotten(case: Case) -> bool:
    """Whether the broker only no longer knew the producer: then nothing is lost."""
    return all(one.details.get("kinds") == ["UNKNOWN_PRODUCER_ID"] for one in case.bundle.findings)


class SequenceGap(Rule):
    """An idempotent producer's batch does not follow the last one that the broker has."""

    class Thresholds(RuleThresholds):
        """When it fires."""

        sequence_gap_times: Count = Field(default=1, description="Batches refused because of their sequence number")

    name = "sequence_gap"
    title = "Sequence gap"
    protocol = "kafka"
    severities = ("critical", "warning")
    reads = ("exchanges", "batches")
    advice = (MISSING, FORGOTTEN)
    urgency = LOSES
    texts = Texts(
        headline=lambda case: (
            f"{case.who} began anew on {case.places}: the broker had forgotten its producer id"
            if _is_forgotten(case)
            else f"{case.who} writes to {case.places} out of sequence: the broker refuses it, records are missing"
        ),
        now=lambda case: (
            "Nothing, if the topic's retention has deleted all that this producer wrote: it begins anew by itself. "
            f"Else look whether records of {case.clients} are missing."
            if _is_forgotten(case)
            else f"Restart {case.clients}: it cannot go on with this producer id."
        ),
        fix=lambda case: (
            "Brokers and clients of Kafka 2.5 or later (KIP-360), or a retention longer than the producer's pauses."
            if _is_forgotten(case)
            else "Look for earlier errors of this producer (delivery.timeout.ms passed, batches expired) and treat a "
            "failed send as lost; max.in.flight.requests.per.connection at most 5 with enable.idempotence=true."
        ),
        reasoning=lambda case: f"{SEEN}{case.kinds} is the broker's own answer.",
        affected=topics,
    )
    gathered = OF_CLIENT
    subject = (None, CLIENT)
    counting = Counting(keeps_each=True)
