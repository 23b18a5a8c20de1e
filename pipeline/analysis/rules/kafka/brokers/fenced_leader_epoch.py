"""Rule ``fenced_leader_epoch``."""

from __future__ import annotations

from typing import Any

from pipeline.analysis.claims.kafka.brokers import FENCED_LEADER_EPOCH
from pipeline.analysis.rules.case.entities import CLIENT
from pipeline.analysis.rules.case.texts import REFUSED, SEEN, Texts, own_clients
from pipeline.analysis.rules.counted import CountedRule, clients, gets_on, place, when
from pipeline.analysis.rules.episode import Episode
from pipeline.analysis.rules.kafka.thresholds import STALE_METADATA_SECONDS, STALE_METADATA_TIMES
from pipeline.analysis.rules.rule import OF_CLIENT, Counting
from pipeline.analysis.rules.shown_by import ShownBy
from pipeline.analysis.rules.thresholds import Count, RuleThresholds, Seconds


class FencedLeaderEpoch(CountedRule):
    """A client asks by a leader epoch that is over."""

    class Thresholds(RuleThresholds):
        """When it fires."""

        stale_metadata_times: Count = STALE_METADATA_TIMES
        stale_metadata_seconds: Seconds = STALE_METADATA_SECONDS

    name = "fenced_leader_epoch"
    title = "Leader epoch fenced"
    protocol = "kafka"
    about = "metadata"
    severities = ("warning", "info")
    reads = ("exchanges", "events")
    advice = (
        "Now: restart the client: one that asks for metadata again gets on at once. Fix: one that does not has "
        "a fault: update it. After an unclean election (unclean.leader.election.enable) it may have read "
        "records that are gone.",
    )
    urgency = REFUSED
    shown_by = ShownBy(what="requests")
    texts = Texts(
        headline=lambda case: f"{case.who} asks for {case.places} with an outdated leader epoch, and gets nothing",
        now=lambda case: f"Restart {case.clients} if it does not recover by itself: its metadata is outdated.",
        fix="Update its library; metadata.max.age.ms (Java), topic.metadata.refresh.interval.ms (librdkafka) bound how "
        "old metadata may become.",
        reasoning=f"{SEEN}FENCED_LEADER_EPOCH is the broker's own answer.",
        affected=own_clients,
    )
    gathered = OF_CLIENT
    subject = (None, CLIENT)
    counting = Counting(is_refused=True)
    claims = FENCED_LEADER_EPOCH

    @classmethod
    def least(cls, settings: Thresholds) -> int:
        """This many symptoms."""
        return settings.stale_metadata_times

    @classmethod
    def summary(cls, episode: Episode) -> str:
        """Who asked for what."""
        asked = f"{clients(episode)} asked for {place(episode)} by a leader epoch of the past {when(episode)}"
        return f"{asked}{gets_on(episode)}."

    @classmethod
    def holds(cls, episode: Episode, settings: Thresholds) -> bool:
        """For so long."""
        return episode.run_us >= settings.stale_metadata_seconds * 1_000_000

    @classmethod
    def severity_of(cls, episode: Episode, settings: Any) -> str:
        """For information where it gets on."""
        del settings
        return "warning" if episode.healed_us is None else "info"

    @classmethod
    def count(cls, episode: Episode) -> int:
        """Without a success between them."""
        return episode.run
