"""Rule ``stale_metadata``."""

from __future__ import annotations

from pipeline.analysis.rules.case.case import arg
from pipeline.analysis.rules.case.entities import CLIENT, TOPIC
from pipeline.analysis.rules.case.texts import REFUSED, SEEN, Texts, own_clients, topic_names
from pipeline.analysis.rules.kafka.thresholds import (
    RETRY_WITHOUT_SUCCESS_SECONDS,
    STALE_METADATA_SECONDS,
    STALE_METADATA_TIMES,
)
from pipeline.analysis.rules.rule import OF_CLIENT, Counting, Link, Rule
from pipeline.analysis.rules.thresholds import Count, RuleThresholds, Seconds

ADVICE = (
    "Now: look whether this broker gets metadata updates (it may be cut off from the controller); restart the client "
    "if others get on. Fix: clients refresh their metadata after such an error; one that does not has a fault: update "
    "its library. metadata.max.age.ms (librdkafka: topic.metadata.refresh.interval.ms) bounds how old metadata gets."
)


class StaleMetadata(Rule):
    """A client asks a broker that is not the leader that the client takes it for."""

    class Thresholds(RuleThresholds):
        """When it fires."""

        stale_metadata_times: Count = STALE_METADATA_TIMES
        stale_metadata_seconds: Seconds = STALE_METADATA_SECONDS
        retry_without_success_seconds: Seconds = RETRY_WITHOUT_SUCCESS_SECONDS

    name = "stale_metadata"
    title = "Stale metadata"
    protocol = "kafka"
    severities = ("warning", "info")
    reads = ("exchanges", "events")
    advice = (ADVICE,)
    urgency = REFUSED
    texts = Texts(
        headline=lambda case: (
            f"{case.who} and broker {case.server} do not agree on the leader of {case.places} ({case.kinds})"
        ),
        now=lambda case: (
            "Ask who leads: `kafka-topics.sh --bootstrap-server BROKER --describe --topic "
            f"{arg('|'.join(topic_names(case)))}`. If the broker is right, restart {case.clients}; if not, "
            f"restart broker {case.server}: it gets no metadata."
        ),
        fix="metadata.max.age.ms (Java), topic.metadata.refresh.interval.ms (librdkafka); watch the controller's "
        "connection to each broker.",
        reasoning=f"{SEEN}these are the broker's own answers.",
        affected=own_clients,
    )
    gathered = OF_CLIENT
    subject = (None, CLIENT)
    counting = Counting(is_refused=True)
    effects = (Link(("fenced_leader_epoch",), (CLIENT, TOPIC), "it is the same leader"),)
