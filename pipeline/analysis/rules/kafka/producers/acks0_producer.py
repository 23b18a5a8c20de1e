"""Rule ``acks0_producer``."""

from __future__ import annotations

from pipeline.analysis.rules.case.case import Case
from pipeline.analysis.rules.case.entities import CLIENT
from pipeline.analysis.rules.case.texts import LATER, SEEN, Texts
from pipeline.analysis.rules.rule import OF_CLUSTER, Rule


def _written(case: Case) -> str:
    """Topics that are written to."""
    return case.kinds


class Acks0Producer(Rule):
    """A producer writes without asking for an answer (acks=0)."""

    name = "acks0_producer"
    title = "Producer with acks=0"
    protocol = "kafka"
    severities = ("info",)
    thresholds = ("acks0_requests",)
    advice = (
        "Now: nothing, if losing records is fine: with acks=0 nobody learns of those that the broker did not "
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
