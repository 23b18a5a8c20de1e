"""Rules about producers that take more than counting symptoms."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from pipeline.analysis.rules.counted import clients, finding, last_of_each, names, place, when
from pipeline.analysis.rules.episodes import Episode
from pipeline.analysis.rules.kafka.shared import BATCH_SIZES
from pipeline.analysis.rules.kafka.symptoms import INTRODUCED
from pipeline.analysis.rules.model import Finding, Sources
from pipeline.analysis.rules.rule import Rule, finds
from pipeline.analysis.tables import Tables
from pipeline.settings import FindingSettings

Episodes = Mapping[str, Sequence[Episode]]


RULES = (
    Rule(
        "fenced_producer",
        "kafka",
        ("critical",),
        "A producer was fenced off its transactional id.",
        (),
    ),
    Rule(
        "sequence_gap",
        "kafka",
        ("critical", "warning"),
        "An idempotent producer's batch does not follow the last one that the broker has.",
        ("sequence_gap_times",),
        reads=("exchanges", "batches"),
    ),
)


@finds(*RULES, BATCH_SIZES)
def find(sources: Sources, settings: FindingSettings) -> list[Finding]:
    """Apply the rules."""
    return [
        *_fenced_producer(sources.episodes, sources),
        *_sequence_gap(sources.episodes, sources, settings),
        *_oversized(sources.episodes, sources),
    ]


def _fenced_producer(episodes: Episodes, sources: Sources) -> Iterator[Finding]:
    shared = (
        "Two producers share one transactional.id: give each its own (in Kafka Streams and Connect that follows from "
        "application.id and task), or see that the old process ends before the new one starts. The fenced one must be "
        "closed; its open transaction was aborted."
    )
    alone = (
        "Nobody else was seen to take the id. The coordinator has probably aborted a transaction that was open for "
        "longer than transaction.timeout.ms: commit more often, or raise it (up to the brokers' "
        "transaction.max.timeout.ms). If another process uses the id unseen, give each its own."
    )
    introduced: defaultdict[tuple[str, str], list[Episode]] = defaultdict(list)
    for episode in episodes.get(INTRODUCED, []):
        introduced[episode.cluster, episode.subject].append(episode)
    for episode in last_of_each(episodes.get("fenced_producer", [])):
        known = introduced[episode.cluster, episode.subject]
        users = sorted({client for e in known for client in e.clients})
        is_shared = sum(e.times for e in known) > 1 or not set(users) <= set(episode.clients)
        why = (
            f"a newer producer uses the same id. The id was taken by {', '.join(users)}"
            if is_shared
            else "the coordinator has raised its epoch"
        )
        summary = (
            f"{clients(episode)} was fenced off transactional id {episode.subject} {when(episode)} ({names(episode)}): "
            f"{why}."
        )
        evidence = (*episode.evidence, *(one for e in known for one in e.evidence))
        advice = shared if is_shared else alone
        yield replace(finding(episode, "critical", summary, advice, sources), evidence=evidence)


def _sequence_gap(episodes: Episodes, sources: Sources, settings: FindingSettings) -> Iterator[Finding]:
    """Batches that were refused because of their sequence number, and not taken when they were sent again.

    With several requests under way, one that fails makes those behind it come out of sequence: the producer sends them
    all again, in order, and nothing is lost (KIP-98, max.in.flight.requests.per.connection).
    """
    missing = (
        "The broker misses records of this idempotent producer: they are lost, or were given up by the client. Restart "
        "the producer, and look for earlier errors of it (timeouts, batches that expired)."
    )
    forgotten = (
        "Brokers without KIP-360 forget a producer when the last of its records is deleted: the producer begins anew, "
        "and nothing is lost. If retention does not explain it, records are missing: look for an unclean "
        "election or a log that was truncated."
    )
    enough = [e for e in episodes.get("sequence_gap", []) if e.times >= settings.sequence_gap_times]
    healed = taken_later(sources.tables, enough)
    for episode in last_of_each(e for e in enough if e not in healed):
        only_forgotten = episode.names == ("UNKNOWN_PRODUCER_ID",)
        severity, advice = ("warning", forgotten) if only_forgotten else ("critical", missing)
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
    ids = sorted(set(chain.from_iterable(e.evidence for e in episodes)))
    rows = tables.rows(
        """
        WITH produced AS (
            SELECT * FROM batches WHERE source = 'produce' AND producer_id >= 0
        ), refused AS (
            SELECT * FROM produced WHERE base_offset IS NULL AND list_contains($ids, exchange_id)
        )
        SELECT DISTINCT refused.exchange_id, refused.topic, refused.topic_id, refused.partition
        FROM produced AS taken JOIN refused
            USING (cluster, topic, partition, producer_id, producer_epoch, base_sequence)
        WHERE taken.base_offset IS NOT NULL AND taken.ts > refused.ts
        """,
        ids=ids,
    )
    known = {(row.exchange_id, name, row.partition) for row in rows for name in (row.topic, row.topic_id)}

    def is_healed(episode: Episode) -> bool:
        batches_of_it = [(exchange_id, episode.topic, episode.partition) for exchange_id in episode.evidence]
        return episode.times == len(batches_of_it) and known.issuperset(batches_of_it)

    return {episode for episode in episodes if is_healed(episode)}


def _oversized(episodes: Episodes, sources: Sources) -> Iterator[Finding]:
    advice = (
        "Make the records smaller (compress, or put large values elsewhere and send a reference), or raise "
        "max.message.bytes of the topic together with fetch limits of its readers. These records were not written."
    )
    for episode in last_of_each(episodes.get("oversized_or_tiny_batches", [])):
        summary = (
            f"{clients(episode)} sent batches to {episode.topic} that are larger than it allows, {when(episode)}: "
            f"up to {episode.peak:.0f} bytes. The broker refused them."
        )
        yield finding(episode, "warning", summary, advice, sources)
