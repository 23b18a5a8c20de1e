"""Rule ``old_message_format``."""

from __future__ import annotations

from pipeline.analysis.rules.case.case import Case
from pipeline.analysis.rules.case.texts import LATER, SEEN, Texts, topics
from pipeline.analysis.rules.rule import OF_ALL, Rule
from pipeline.humanize import listed

OLD_ADVICE = (
    "Now: nothing, until the brokers go to Kafka 4, which takes only format v2. Fix: update the clients that "
    "write them (kafka-clients 0.11 or later), and log.message.format.version of old brokers."
)
STORED_ADVICE = (
    "Now: nothing, clients of all releases read them. Fix: nothing, if nobody writes them any more: retention removes "
    "what is old. Else find the producer, which this capture does not show, and update it."
)
READ_ADVICE = (
    "Now: nothing, until the brokers go to Kafka 4, which does not answer such requests. Fix: update the clients that "
    "read (kafka-clients 0.11 or later): the broker then sends what it holds, without converting."
)


def _names(case: Case, field: str) -> list[str]:
    return sorted({name for one in case.bundle.findings for name in one.details.get(field) or []})


def _old_format(case: Case) -> str:
    if writers := _names(case, "writers"):
        return f"Old message formats are written to {case.places} by {listed(writers)}"
    if stored := _names(case, "stored_for"):
        return f"{case.places} holds old message formats, which {listed(stored)} reads: who wrote them was not seen"
    readers = listed(_names(case, "readers")) or "old clients"
    return (
        f"{readers} reads {case.places} by requests that cannot take format v2: the broker converts for it, or its log "
        "holds old formats"
    )


def _old_format_fix(case: Case) -> str:
    if writers := _names(case, "writers"):
        return (
            f"Update {listed(writers)} (kafka-clients 0.11 or later), and log.message.format.version of old brokers. "
            "Kafka 4 takes only format v2."
        )
    if _names(case, "stored_for"):
        return "Nothing, if nobody writes them any more: retention removes what is old. Else find the old producer."
    return f"Update {listed(_names(case, 'readers')) or 'these clients'} (kafka-clients 0.11 or later)."


class OldMessageFormat(Rule):
    """A topic carries messages of format v0 or v1, from before Kafka 0.11."""

    name = "old_message_format"
    title = "Old message format"
    protocol = "kafka"
    severities = ("info",)
    reads = ("batches", "exchanges")
    advice = (OLD_ADVICE, STORED_ADVICE, READ_ADVICE)
    urgency = LATER
    texts = Texts(
        headline=_old_format,
        now=lambda _case: "Nothing has to be stopped.",
        fix=_old_format_fix,
        reasoning=f"{SEEN}the batches' magic numbers.",
        affected=topics,
        covers_info=True,
    )
    gathered = OF_ALL
