"""Rule ``sequence_gap``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pydantic import Field

from pipeline.analysis.claims.kafka.producers import SEQUENCE_GAP
from pipeline.analysis.rules.case.case import Case
from pipeline.analysis.rules.case.entities import CLIENT
from pipeline.analysis.rules.case.texts import LOSES, SEEN, Texts, topics
from pipeline.analysis.rules.counted import clients, finding, last_of_each, names, place, when
from pipeline.analysis.rules.episode import Episode, exchanges_of
from pipeline.analysis.rules.model import Finding, Sources
from pipeline.analysis.rules.rule import OF_CLIENT, Counting, Rule
from pipeline.analysis.rules.shown_by import ShownBy
from pipeline.analysis.rules.thresholds import Count, RuleThresholds
from pipeline.analysis.tables import Tables

MISSING = (
    "Now: restart the producer: the broker lacks some of its records: they are lost, or the client gave them up. "
    "Fix: look for earlier errors of it (timeouts, batches that expired): delivery.timeout.ms (librdkafka: "
    "message.timeout.ms) longer than the brokers are away."
)
FORGOTTEN = (
    "Now: nothing, if retention explains it: brokers without KIP-360 forget a producer when the last of its "
    "records is deleted; it starts over, and nothing is lost. Fix: brokers and clients of Kafka 2.5 or later. If "
    "retention does not explain it, records are missing: look for an unclean election or a log that was truncated."
)


def _is_forgotten(case: Case) -> bool:
    """Whether the broker only no longer knew the producer: then nothing is lost."""
    return all(one.details.get("kinds") == ["UNKNOWN_PRODUCER_ID"] for one in case.bundle.findings)


class SequenceGap(Rule):
    """An idempotent producer's batch does not follow the last one that the broker has."""

    class Thresholds(RuleThresholds):
        """When it fires."""

        sequence_gap_times: Count = Field(default=1, description="Batches refused because of their sequence number")

    name = "sequence_gap"
    title = "Sequence gap"
    protocol = "kafka"
    about = "producers"
    severities = ("critical", "warning")
    reads = ("exchanges", "batches")
    advice = (MISSING, FORGOTTEN)
    urgency = LOSES
    shown_by = ShownBy(what="requests")
    texts = Texts(
        headline=lambda case: (
            f"{case.who} started over on {case.places}: the broker had forgotten its producer id"
            if _is_forgotten(case)
            else f"{case.who} writes to {case.places} out of sequence: the broker refuses it, records are missing"
        ),
        now=lambda case: (
            "Nothing, if the topic's retention has deleted all that this producer wrote: it starts over by itself. "
            f"Else look whether records of {case.clients} are missing."
            if _is_forgotten(case)
            else f"Restart {case.clients}: it cannot continue with this producer id."
        ),
        fix=lambda case: (
            "Brokers and clients of Kafka 2.5 or later (KIP-360), or a retention longer than the producer's pauses."
            if _is_forgotten(case)
            else "Look for earlier errors of this producer (delivery.timeout.ms passed, batches expired) and treat a "
            "failed send as lost; max.in.flight.requests.per.connection at most 5 with enable.idempotence=true."
        ),
        reasoning=lambda case: f"{SEEN}{case.kinds} is the broker's own answer.",
        affected=topics,
    )
    gathered = OF_CLIENT
    subject = (None, CLIENT)
    counting = Counting(keeps_each=True)
    claims = SEQUENCE_GAP

    @classmethod
    def detect(cls, sources: Sources, settings: Thresholds) -> Iterator[Finding]:
        """Batches that were refused because of their sequence number, and not taken when they were sent again.

        With several requests under way, one that fails makes those behind it come out of sequence: the producer sends
        them all again, in order, and nothing is lost (KIP-98, max.in.flight.requests.per.connection).
        """
        enough = [
            e
            for e in sources.episodes.get(cls.name, ())
            if e.times >= settings.sequence_gap_times
            and sources.ends.get(e.cluster, e.first_us + _RESENT_US) - e.first_us >= _RESENT_US
        ]
        healed = taken_later(sources.tables, enough)
        for episode in last_of_each(e for e in enough if e not in healed):
            only_forgotten = episode.names == ("UNKNOWN_PRODUCER_ID",)
            severity, advice = ("warning", FORGOTTEN) if only_forgotten else ("critical", MISSING)
            summary = (
                f"{clients(episode)} wrote to {place(episode)} out of sequence {when(episode)}: {names(episode)}; the "
                "broker refused it."
            )
            yield finding(episode, severity, summary, advice, sources, settings.sequence_gap_times)


_RESENT_US = 2_000_000
"""Within so long a producer sends again what was refused: of the last of a capture nothing follows."""


def taken_later(tables: Tables, episodes: Sequence[Episode]) -> set[Episode]:
    """Those whose refused batches were all accepted when they were sent again.

    Args:
        tables: ``batches``.
        episodes: of refused batches.
    """
    if not episodes:
        return set()
    rows = tables.rows(
        """
        WITH produced AS (
            SELECT * FROM batches WHERE source = 'produce' AND producer_id >= 0
        ), refused AS (
            SELECT * FROM produced WHERE base_offset IS NULL AND exchange_id IN (SELECT unnest($ids))
        ), taken AS (
            SELECT cluster, topic, partition, producer_id, producer_epoch, base_sequence, max(ts) AS last_ts
            FROM produced WHERE base_offset IS NOT NULL GROUP BY ALL
        )
        SELECT DISTINCT refused.exchange_id, refused.topic, refused.topic_id, refused.partition
        FROM taken JOIN refused USING (cluster, topic, partition, producer_id, producer_epoch, base_sequence)
        WHERE taken.last_ts > refused.ts
        """,
        ids=exchanges_of(episodes),
    )
    known = {(row.exchange_id, name, row.partition) for row in rows for name in (row.topic, row.topic_id)}

    def is_healed(episode: Episode) -> bool:
        return known.issuperset((one.exchange_id, one.topic, one.partition) for one in episode.each)

    return {episode for episode in episodes if is_healed(episode)}
