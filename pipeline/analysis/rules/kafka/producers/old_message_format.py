"""Rule ``old_message_format``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pipeline.analysis.claims.kafka.producers import OLD_MESSAGE_FORMAT
from pipeline.analysis.rules.case.case import Case
from pipeline.analysis.rules.case.texts import LATER, SEEN, Texts, topics
from pipeline.analysis.rules.kafka.producers.batch_windows import (
    FORMAT_V2,
    finding_of_windows,
    grouped,
    span_of,
    windows_of,
)
from pipeline.analysis.rules.kafka.producers.oversized_or_tiny_batches import OversizedOrTinyBatches
from pipeline.analysis.rules.model import Finding, Sources
from pipeline.analysis.rules.rule import OF_ALL, Rule
from pipeline.analysis.rules.shown_by import ShownBy
from pipeline.analysis.tables import Tables
from pipeline.humanize import listed, pluralize

OLD_ADVICE = (
    "Now: nothing, until the brokers go to Kafka 4, which takes only format v2. Fix: update the clients that "
    "write them (kafka-clients 0.11 or later), and log.message.format.version of old brokers."
)
STORED_ADVICE = (
    "Now: nothing, clients of all releases read them. Fix: nothing, if they are not written any more: retention "
    "removes what is old. Else find the producer, which this capture does not show, and update it."
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
        return "Nothing, if they are not written any more: retention removes what is old. Else find the old producer."
    return f"Update {listed(_names(case, 'readers')) or 'these clients'} (kafka-clients 0.11 or later)."


class OldMessageFormat(Rule):
    """A topic carries messages of format v0 or v1, from before Kafka 0.11."""

    name = "old_message_format"
    title = "Old message format"
    protocol = "kafka"
    about = "producers"
    severities = ("info",)
    reads = ("batches", "exchanges")
    advice = (OLD_ADVICE, STORED_ADVICE, READ_ADVICE)
    urgency = LATER
    shown_by = ShownBy(what="requests")
    texts = Texts(
        headline=_old_format,
        now=lambda _case: "Nothing has to be stopped.",
        fix=_old_format_fix,
        reasoning=f"{SEEN}the batches' magic numbers.",
        affected=topics,
        covers_info=True,
    )
    gathered = OF_ALL
    claims = OLD_MESSAGE_FORMAT

    @classmethod
    def detect(cls, sources: Sources, settings: OversizedOrTinyBatches.Thresholds) -> Iterator[Finding]:
        """One finding a topic."""
        old = [row for row in windows_of(sources, settings) if row.old]
        stored = _stored(sources.tables) if any(row.source == "fetch" for row in old) else set()
        for group in grouped(old, lambda r: (r.cluster, r.topic)):
            times = sum(r.old for r in group)
            magics = sorted({magic for r in group for magic in r.magics or ()})
            writers, readers = (
                sorted({r.client_id or "?" for r in group if r.source == s}) for s in ("produce", "fetch")
            )
            takes_v2 = sorted({r.client_id or "?" for r in group if (r.cluster, r.topic, r.client_id) in stored})
            formats = " and v".join(map(str, magics))
            by = [
                f"{word} {', '.join(names)}" for word, names in (("written by", writers), ("read by", readers)) if names
            ]
            meaning, advice = _meaning(writers, takes_v2)
            summary = (
                f"Topic {group[0].topic} carries messages of format v{formats}, {' and '.join(by)}: "
                f"{pluralize(times, 'batch', 'batches')}, {span_of(group)}. {meaning}"
            )
            figures = {
                "batches": times, "magics": magics, "writers": writers, "readers": readers, "stored_for": takes_v2,
            }  # fmt: skip
            subject = group[0].topic
            yield finding_of_windows(
                cls.name, "info", subject, summary, advice, group, times, figures, sources, settings
            )


_FIRST_V2_FETCH = 4
"""The first version of Fetch whose answers may hold format v2 (KIP-98): for older ones brokers convert."""


def _meaning(writers: Sequence[str], takes_v2: Sequence[str]) -> tuple[str, str]:
    """What old formats mean by who was seen with them, and the advice."""
    if writers:
        return (
            "They have no idempotence, no transactions and no headers, and a broker whose log is of another format "
            "converts them at the cost of its memory.",
            OLD_ADVICE,
        )
    if takes_v2:
        return (
            "The log holds them, for these requests could take format v2; who wrote them was not seen.",
            STORED_ADVICE,
        )
    return (
        "No client was seen to write them: these requests (Fetch v0 to v3) cannot take format v2, so the broker "
        "converts for them, or its log holds old formats.",
        READ_ADVICE,
    )


def _stored(tables: Tables) -> set[tuple[str, str, str | None]]:
    """Cluster, topic and client of old batches that came by requests whose answers could hold format v2."""
    rows = tables.rows(f"""
        SELECT DISTINCT batches.cluster, batches.topic, batches.client_id
        FROM batches JOIN exchanges USING (exchange_id)
        WHERE source = 'fetch' AND magic < {FORMAT_V2} AND NOT coalesce(is_control, false)
            AND exchanges.api_version >= {_FIRST_V2_FETCH}
    """)
    return {(row.cluster, row.topic, row.client_id) for row in rows}
