"""Rule ``oversized_or_tiny_batches``."""

from __future__ import annotations

from pydantic import Field

from pipeline.analysis.rules.case.case import Case, arg
from pipeline.analysis.rules.case.entities import CLIENT
from pipeline.analysis.rules.case.texts import SEEN, WASTES, Texts, topic_names, topics
from pipeline.analysis.rules.rule import OF_CLIENT, Counting, Link, Rule
from pipeline.analysis.rules.thresholds import Count, Ratio, RuleThresholds
from pipeline.humanize import listed

TOO_LARGE = (
    "Now: stop writing such records, or raise max.message.bytes of the topic together with "
    "max.partition.fetch.bytes of its readers: they were not written. Fix: make them smaller (compression.type, "
    "or put large values elsewhere and send a reference)."
)
SPLIT = (
    "Now: nothing: the producer made smaller batches of them, and these were written. Fix: a batch.size "
    "(librdkafka: message.max.bytes) that is not larger than max.message.bytes of the topic."
)
TINY = (
    "Now: nothing, unless the brokers are short of CPU: it may be meant so (linger.ms=0). Fix: raise "
    "linger.ms (5 to 100 ms) and batch.size, and compress (compression.type); do not flush after each record."
)


def _batches(case: Case) -> str:
    if "oversized" in case.details.get("kinds", ()):
        topics_ = listed(topic_names(case))
        return f"{case.who} sends batches to {topics_} that are larger than max.message.bytes: the broker rejects them"
    names = sorted(entity[-1] for entity in case.bundle.named.get("client", ()))
    return (
        f"{listed(names) or 'A producer'} writes batches of about one record to {case.places}: brokers do little else"
    )


def _batches_now(case: Case) -> str:
    if "oversized" in case.details.get("kinds", ()):
        tool = "kafka-configs.sh --bootstrap-server BROKER --alter --topic"
        commands = listed(f"`{tool} {arg(topic)} --add-config max.message.bytes=N`" for topic in topic_names(case))
        return (
            "These records were not written. If records of this size are meant to be written, raise the limit: "
            f"{commands}, and restart the producer."
        )
    return "Nothing has to be stopped."


def _batches_fix(case: Case) -> str:
    if "oversized" in case.details.get("kinds", ()):
        return (
            "Compress (compression.type), lower max.request.size / message.max.bytes of the producer so that it fails "
            "early, or put large values elsewhere."
        )
    return "linger.ms 5 to 100, batch.size, no flush per record."


class OversizedOrTinyBatches(Rule):
    """A producer sends batches that the topic does not allow, or one record a batch."""

    class Thresholds(RuleThresholds):
        """When it fires."""

        tiny_batches: Count = Field(default=300, description="Batches of one client and partition within ten seconds")
        tiny_records: Ratio = Field(default=1.5, description="At most so many records in each")

    name = "oversized_or_tiny_batches"
    title = "Batches too large or too small"
    protocol = "kafka"
    severities = ("warning", "info")
    reads = ("batches", "exchanges")
    advice = (TOO_LARGE, SPLIT, TINY)
    urgency = WASTES
    texts = Texts(
        headline=_batches,
        now=_batches_now,
        fix=_batches_fix,
        reasoning=f"{SEEN}sizes and counts of the batches themselves.",
        affected=topics,
        covers_info=True,
    )
    gathered = OF_CLIENT
    subject = (None, CLIENT)
    counting = Counting(keeps_each=True)
    effects = (
        Link(("produce_refused",), (CLIENT,), "the topic takes no batch of this size"),
        Link(("throttled",), (CLIENT,), "many small requests use up the quota"),
    )
