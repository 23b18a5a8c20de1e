"""Rules about producers that take more than counting symptoms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pipeline.analysis.rules.counted import clients, finding, last_of_each, names, place, when
from pipeline.analysis.rules.episode import Episode
from pipeline.analysis.rules.kafka.producers.oversized_or_tiny_batches import SPLIT, TOO_LARGE, OversizedOrTinyBatches
from pipeline.analysis.rules.kafka.producers.sequence_gap import FORGOTTEN, MISSING, SequenceGap
from pipeline.analysis.rules.model import Finding, Sources
from pipeline.analysis.rules.rule import finds
from pipeline.analysis.tables import Tables
from pipeline.humanize import pluralize

_RESENT_US = 2_000_000
"""Within so long a producer sends again what was refused: of the last of a capture nothing follows."""
Episodes = Mapping[str, Sequence[Episode]]


@finds(SequenceGap, OversizedOrTinyBatches)
def find(sources: Sources, settings: SequenceGap.Thresholds) -> list[Finding]:
    """Apply the rules."""
    return [
        *_sequence_gap(sources.episodes, sources, settings),
        *_oversized(sources.episodes, sources),
    ]


def _sequence_gap(episodes: Episodes, sources: Sources, settings: SequenceGap.Thresholds) -> Iterator[Finding]:
    """Batches that were refused because of their sequence number, and not taken when they were sent again.

    With several requests under way, one that fails makes those behind it come out of sequence: the producer sends them
    all again, in order, and nothing is lost (KIP-98, max.in.flight.requests.per.connection).
    """
    enough = [
        e
        for e in episodes.get("sequence_gap", [])
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
        ids=_exchanges(episodes),
    )
    known = {(row.exchange_id, name, row.partition) for row in rows for name in (row.topic, row.topic_id)}

    def is_healed(episode: Episode) -> bool:
        return known.issuperset((one.exchange_id, one.topic, one.partition) for one in episode.each)

    return {episode for episode in episodes if is_healed(episode)}


def _exchanges(episodes: Sequence[Episode]) -> list[str]:
    return sorted({one.exchange_id for episode in episodes for one in episode.each})


def _oversized(episodes: Episodes, sources: Sources) -> Iterator[Finding]:
    """Batches that are larger than the topic allows.

    Of a batch of several records a Java producer makes smaller ones and sends these (KIP-126): nothing is lost.
    """
    many = episodes.get("oversized_or_tiny_batches", [])
    taken = split_later(sources.tables, many)
    for episode in last_of_each(many):
        is_split = taken.issuperset(one.exchange_id for one in episode.each)
        summary = (
            f"{clients(episode)} sent batches to {episode.topic} that are larger than it allows, {when(episode)}: "
            f"up to {pluralize(round(episode.peak), 'byte')}. The broker refused them"
            f"{', and took the smaller ones that were made of them.' if is_split else '.'}"
        )
        yield finding(episode, "info" if is_split else "warning", summary, SPLIT if is_split else TOO_LARGE, sources)


def split_later(tables: Tables, episodes: Sequence[Episode]) -> set[str]:
    """The exchanges of episodes whose refused batches were taken in pieces.

    The first piece begins with the same record, so at the same time.

    Args:
        tables: ``batches``.
        episodes: of batches that were too large.
    """
    ids = _exchanges(episodes)
    if not ids:
        return set()
    rows = tables.rows(
        """
        WITH refused AS (
            SELECT * FROM batches
            WHERE source = 'produce' AND base_offset IS NULL AND exchange_id IN (SELECT unnest($ids))
        ), taken AS (
            SELECT cluster, topic, partition, client_id, base_timestamp, ts, min(size) AS size FROM batches
            WHERE source = 'produce' AND base_offset IS NOT NULL GROUP BY ALL
        ), since AS (
            SELECT * REPLACE (min(size) OVER (
                PARTITION BY cluster, topic, partition, client_id, base_timestamp ORDER BY ts DESC
            ) AS size) FROM taken
        ), pieces AS (
            SELECT refused.exchange_id, coalesce(since.size < refused.size, false) AS is_taken
            FROM refused ASOF LEFT JOIN since
                ON since.cluster = refused.cluster AND since.topic = refused.topic
                AND since.partition = refused.partition AND since.client_id IS NOT DISTINCT FROM refused.client_id
                AND since.base_timestamp = refused.base_timestamp AND refused.ts < since.ts
        )
        SELECT exchange_id FROM pieces GROUP BY exchange_id HAVING bool_and(is_taken)
        """,
        ids=ids,
    )
    return {row.exchange_id for row in rows}
