"""Rule ``unknown_topic_loop``."""

from __future__ import annotations

from shlex import quote

from pydantic import Field

from pipeline.analysis.claims.kafka.brokers import UNKNOWN_TOPIC_LOOP
from pipeline.analysis.rules.case.case import arg
from pipeline.analysis.rules.case.entities import CLIENT, TOPIC
from pipeline.analysis.rules.case.texts import REFUSED, SEEN, Texts, own_clients
from pipeline.analysis.rules.counted import CountedRule, clients, place, when
from pipeline.analysis.rules.episode import Episode
from pipeline.analysis.rules.kafka.thresholds import RETRY_WITHOUT_SUCCESS_SECONDS
from pipeline.analysis.rules.rule import OF_TOPIC, Counting
from pipeline.analysis.rules.thresholds import Count, RuleThresholds, Seconds
from pipeline.humanize import clock

UNKNOWN_TOPIC = (
    "Now: create the topic, or correct its name in the client's configuration. Where it was deleted on purpose, take "
    "it out of the client. Fix: create topics before the clients that use them start; with auto.create.topics.enable "
    "(and allow.auto.create.topics of the client) the first requests fail, too."
)
UNKNOWN_PARTITION = (
    "Now: see which partitions the topic has (`kafka-topics.sh --bootstrap-server BROKER --describe --topic {topic}`): "
    "restart the client where it has fewer than the client reads (it was recreated with fewer), so that it learns of "
    "it; if it has this one, restart the broker that does not know it. Fix: let clients refresh their metadata after "
    "this error, and make topics again under another name."
)


class UnknownTopicLoop(CountedRule):
    """A client asks again and again for a topic that the cluster does not have."""

    class Thresholds(RuleThresholds):
        """When it fires."""

        unknown_topic_times: Count = Field(default=5, description="Requests for a topic that is not there")
        retry_without_success_seconds: Seconds = RETRY_WITHOUT_SUCCESS_SECONDS

    name = "unknown_topic_loop"
    title = "Unknown topic requested again and again"
    protocol = "kafka"
    about = "metadata"
    severities = ("warning", "info")
    reads = ("exchanges", "events")
    advice = (UNKNOWN_TOPIC, UNKNOWN_PARTITION)
    urgency = REFUSED
    texts = Texts(
        headline=lambda case: (
            f"{case.who} asks for topic {case.topic} again and again: the cluster has none of this name"
        ),
        now=lambda case: (
            f"Correct the name in the configuration of {case.clients}, or create it: `kafka-topics.sh "
            f"--bootstrap-server BROKER --create --topic {arg(case.topic)}`."
        ),
        fix="Create topics before their clients start, and take topics that were deleted out of the configuration.",
        reasoning=f"{SEEN}UNKNOWN_TOPIC_OR_PARTITION is the broker's own answer.",
        affected=own_clients,
    )
    gathered = OF_TOPIC
    subject = (TOPIC, CLIENT)
    counting = Counting(is_refused=True)
    claims = UNKNOWN_TOPIC_LOOP

    @classmethod
    def least(cls, settings: Thresholds) -> int:
        """This many symptoms."""
        return settings.unknown_topic_times

    @classmethod
    def summary(cls, episode: Episode) -> str:
        """Who asked for what."""
        uses = "" if episode.healed_us is None else f"; since {clock(episode.healed_us)} UTC it uses it"
        return f"{clients(episode)} asked for {_unknown(episode)}, {when(episode)}{uses}."

    @classmethod
    def severity_of(cls, episode: Episode, settings: Thresholds) -> str:
        """A warning where requests fail for long."""
        is_long = episode.run_us >= settings.retry_without_success_seconds * 1_000_000
        return "warning" if episode.healed_us is None and is_long else "info"

    @classmethod
    def count(cls, episode: Episode) -> int:
        """Without a success between them."""
        return episode.run

    @classmethod
    def advice_on(cls, episode: Episode) -> str:
        """For a topic, or for a partition that the broker does not know."""
        if episode.partition is None:
            return UNKNOWN_TOPIC
        return UNKNOWN_PARTITION.format(topic=quote(episode.topic or "?"))


def _unknown(episode: Episode) -> str:
    """What the cluster, or the broker, does not have."""
    if episode.partition is None:
        return f"topic {episode.topic}, which the cluster did not have"
    return f"{place(episode)}, which the broker did not have, although it served others of the topic"
