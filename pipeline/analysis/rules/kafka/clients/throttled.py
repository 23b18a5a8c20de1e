"""Rule ``throttled``."""

from __future__ import annotations

from pipeline.analysis.rules.case.case import arg
from pipeline.analysis.rules.case.entities import CLIENT
from pipeline.analysis.rules.case.texts import SEEN, SLOW, Texts, own_clients
from pipeline.analysis.rules.rule import OF_CLIENT, Link, Rule

QUOTA = (
    "Now: nothing, as long as nobody waits for this client: the quota does its work. Fix: raise it (`kafka-configs.sh "
    "--bootstrap-server BROKER --alter --entity-type clients --entity-name {client} "
    "--add-config producer_byte_rate=N,consumer_byte_rate=N`), or let the client do less (compression.type, fewer "
    "requests by linger.ms and fetch.min.bytes)."
)


class Throttled(Rule):
    """Brokers hold a client back because it exceeds its quota."""

    name = "throttled"
    title = "Client throttled"
    protocol = "kafka"
    severities = ("info",)
    thresholds = ("throttled_times", "throttled_seconds")
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
