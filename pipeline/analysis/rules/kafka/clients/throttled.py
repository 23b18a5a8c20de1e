"""Rule ``throttled``."""

from __future__ import annotations

from pydantic import Field

from pipeline.analysis.rules.case.case import arg
from pipeline.analysis.rules.case.entities import CLIENT
from pipeline.analysis.rules.case.texts import SEEN, SLOW, Texts, own_clients
from pipeline.analysis.rules.rule import OF_CLIENT, Link, Rule
from pipeline.analysis.rules.thresholds import Count, RuleThresholds, Seconds

QUOTA = (
    "Now: nothing, as long as nobody waits for this client: the quota does its work. Fix: raise it (`kafka-configs.sh "
    "--bootstrap-server BROKER --alter --entity-type clients --entity-name {client} "
    "--add-config producer_byte_rate=N,consumer_byte_rate=N`), or let the client do less (compression.type, fewer "
    "requests by linger.ms and fetch.min.bytes)."
)


class Throttled(Rule):
    """Brokers hold a client back because it exceeds its quota."""

    class Thresholds(RuleThresholds):
        """When it fires."""

        throttled_times: Count = Field(default=3, description="Answers with a throttle time, of one client")
        throttled_seconds: Seconds = Field(default=1.0, description="Their sum")

    name = "throttled"
    title = "Client throttled"
    protocol = "kafka"
    severities = ("info",)
    advice = (QUOTA,)
    urgency = SLOW
    texts = Texts(
        headline=lambda case: (
            f"Brokers hold {case.who} back, {float(case.details.get('total') or 0) / 1000:.1f} s in all: it is above "
            "its quota"
        ),
        now=lambda case: (
            "If it may do more: `kafka-configs.sh --bootstrap-server BROKER --alter --entity-type clients "
            f"--entity-name {arg(case.first_caller.client_id or 'CLIENT_ID')} --add-config "
            "producer_byte_rate=N,consumer_byte_rate=N`."
        ),
        fix="Set quotas by what is agreed, or let the client do less (batches, compression.type, fewer instances).",
        reasoning=f"{SEEN}throttleTimeMs in the brokers' answers.",
        affected=own_clients,
    )
    gathered = OF_CLIENT
    subject = (CLIENT,)
    effects = (
        Link(
            ("latency_outlier", "unanswered_requests"), (CLIENT,), "answers to a client above its quota are held back"
        ),
    )
