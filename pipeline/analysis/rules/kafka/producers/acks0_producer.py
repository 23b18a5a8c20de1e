"""Rule ``acks0_producer``."""

from __future__ import annotations

from pydantic import Field

from pipeline.analysis.claims.kafka.producers import ACKS0_PRODUCER
from pipeline.analysis.rules.case.case import Case
from pipeline.analysis.rules.case.entities import CLIENT
from pipeline.analysis.rules.case.texts import LATER, SEEN, Texts
from pipeline.analysis.rules.counted import CountedRule, clients, names, when
from pipeline.analysis.rules.episode import Episode
from pipeline.analysis.rules.rule import OF_CLUSTER
from pipeline.analysis.rules.thresholds import Count, RuleThresholds


def _written(case: Case) -> str:
    """Topics that are written to."""
    return case.kinds


class Acks0Producer(CountedRule):
    """A producer writes without asking for an answer (acks=0)."""

    class Thresholds(RuleThresholds):
        """When it fires."""

        acks0_requests: Count = Field(default=1, description="Produce requests that ask for no answer")

    name = "acks0_producer"
    title = "Producer with acks=0"
    protocol = "kafka"
    about = "producers"
    severities = ("info",)
    advice = (
        "Now: nothing, if losing records is fine: with acks=0 there is no report of those that the broker did not "
        "take. Fix: acks=all.",
    )
    urgency = LATER
    texts = Texts(
        headline=lambda case: f"{case.who} writes without asking for an answer (acks=0): losses go unnoticed",
        now=lambda _case: "Nothing has to be stopped.",
        fix="acks=all (the default since Kafka 3.0), unless losing these records is fine.",
        reasoning=f"{SEEN}the requests say so.",
        affected=_written,
        covers_info=True,
    )
    gathered = OF_CLUSTER
    subject = (CLIENT,)
    claims = ACKS0_PRODUCER

    @classmethod
    def least(cls, settings: Thresholds) -> int:
        """This many symptoms."""
        return settings.acks0_requests

    @classmethod
    def summary(cls, episode: Episode) -> str:
        """Who writes where."""
        return f"{clients(episode)} writes without asking for an answer (acks=0): {when(episode)}, to {names(episode)}."
