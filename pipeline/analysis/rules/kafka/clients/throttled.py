"""Rule ``throttled``."""

from __future__ import annotations

from shlex import quote

from pydantic import Field

from pipeline.analysis.claims.kafka.brokers import THROTTLED
from pipeline.analysis.rules.case.case import arg
from pipeline.analysis.rules.case.entities import CLIENT
from pipeline.analysis.rules.case.texts import SEEN, SLOW, Texts, own_clients
from pipeline.analysis.rules.counted import CountedRule, clients, names, when
from pipeline.analysis.rules.episode import Episode
from pipeline.analysis.rules.rule import OF_CLIENT, Link
from pipeline.analysis.rules.shown_by import ShownBy
from pipeline.analysis.rules.thresholds import Count, RuleThresholds, Seconds

QUOTA = (
    "Now: nothing, as long as no one waits for this client: the quota does its work. Fix: raise it (`kafka-configs.sh "
    "--bootstrap-server BROKER --alter --entity-type clients --entity-name {client} "
    "--add-config producer_byte_rate=N,consumer_byte_rate=N`), or let the client do less (compression.type, fewer "
    "requests by linger.ms and fetch.min.bytes)."
)


class Throttled(CountedRule):
    """Brokers hold a client back because it exceeds its quota."""

    class Thresholds(RuleThresholds):
        """When it fires."""

        throttled_times: Count = Field(default=3, description="Answers with a throttle time, of one client")
        throttled_seconds: Seconds = Field(default=1.0, description="Their sum")

    name = "throttled"
    title = "Client throttled"
    protocol = "kafka"
    about = "clients and brokers"
    severities = ("info",)
    advice = (QUOTA,)
    urgency = SLOW
    shown_by = ShownBy(grows="latency")
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
    claims = THROTTLED

    @classmethod
    def least(cls, settings: Thresholds) -> int:
        """This many symptoms."""
        return settings.throttled_times

    @classmethod
    def summary(cls, episode: Episode) -> str:
        """Who was held back for how long."""
        return (
            f"The brokers held {clients(episode)} back {when(episode)}, for {episode.total / 1000:.1f} s together and "
            f"up to {episode.peak / 1000:.1f} s at a time ({names(episode)})."
        )

    @classmethod
    def holds(cls, episode: Episode, settings: Thresholds) -> bool:
        """For so long together."""
        return episode.total >= settings.throttled_seconds * 1000

    @classmethod
    def advice_on(cls, episode: Episode) -> str:
        """With the client id that the quota is for."""
        return QUOTA.format(client=quote("CLIENT_ID" if episode.subject == "?" else episode.subject))
