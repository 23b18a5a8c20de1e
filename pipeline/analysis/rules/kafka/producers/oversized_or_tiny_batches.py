"""Rule ``oversized_or_tiny_batches``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pydantic import Field

from pipeline.analysis.claims.kafka.producers import OVERSIZED_OR_TINY_BATCHES
from pipeline.analysis.rules.case.case import Case, arg
from pipeline.analysis.rules.case.entities import CLIENT
from pipeline.analysis.rules.case.texts import SEEN, WASTES, Texts, topic_names, topics
from pipeline.analysis.rules.counted import clients, finding, last_of_each, when
from pipeline.analysis.rules.episode import Episode, exchanges_of
from pipeline.analysis.rules.kafka.producers.batch_windows import finding_of_windows, grouped, span_of, windows_of
from pipeline.analysis.rules.model import Finding, Sources
from pipeline.analysis.rules.rule import OF_CLIENT, Counting, Link, Rule
from pipeline.analysis.rules.shown_by import ShownBy
from pipeline.analysis.rules.thresholds import Count, Ratio, RuleThresholds
from pipeline.analysis.tables import Tables
from pipeline.humanize import listed, pluralize

TOO_LARGE = (
    "Now: stop writing such records, or raise max.message.bytes of the topic together with "
    "max.partition.fetch.bytes of its readers: they were not written. Fix: make them smaller (compression.type, "
    "or put large values elsewhere and send a reference)."
)
SPLIT = (
    "Now: nothing: the producer made smaller batches of them, and these were written. Fix: a batch.size "
    "(librdkafka: message.max.bytes) that is not larger than max.message.bytes of the topic."
)
TINY = (
    "Now: nothing, unless the brokers are short of CPU: it may be meant so (linger.ms=0). Fix: raise "
    "linger.ms (5 to 100 ms) and batch.size, and compress (compression.type); do not flush after each record."
)


def _batches(case: Case) -> str:
    if "oversized" in case.details.get("kinds", ()):
        topics_ = listed(topic_names(case))
        return f"{case.who} sends batches to {topics_} that are larger than max.message.bytes: the broker rejects them"
    names = sorted(entity[-1] for entity in case.bundle.named.get("client", ()))
    return (
        f"{listed(names) or 'A producer'} writes batches of about one record to {case.places}: brokers do little else"
    )


def _batches_now(case: Case) -> str:
    if "oversized" in case.details.get("kinds", ()):
        tool = "kafka-configs.sh --bootstrap-server BROKER --alter --topic"
        commands = listed(f"`{tool} {arg(topic)} --add-config max.message.bytes=N`" for topic in topic_names(case))
        return (
            "These records were not written. If records of this size are meant to be written, raise the limit: "
            f"{commands}, and restart the producer."
        )
    return "Nothing has to be stopped."


def _batches_fix(case: Case) -> str:
    if "oversized" in case.details.get("kinds", ()):
        return (
            "Compress (compression.type), lower max.request.size / message.max.bytes of the producer so that it fails "
            "early, or put large values elsewhere."
        )
    return "linger.ms 5 to 100, batch.size, no flush per record."


class OversizedOrTinyBatches(Rule):
    """A producer sends batches that the topic does not allow, or one record a batch."""

    class Thresholds(RuleThresholds):
        """When it fires."""

        tiny_batches: Count = Field(default=300, description="Batches of one client and partition within ten seconds")
        tiny_records: Ratio = Field(default=1.5, description="At most this many records in each")

    name = "oversized_or_tiny_batches"
    title = "Batches too large or too small"
    protocol = "kafka"
    about = "producers"
    severities = ("warning", "info")
    reads = ("batches", "exchanges")
    advice = (TOO_LARGE, SPLIT, TINY)
    urgency = WASTES
    shown_by = ShownBy(what="requests")
    texts = Texts(
        headline=_batches,
        now=_batches_now,
        fix=_batches_fix,
        reasoning=f"{SEEN}sizes and counts of the batches themselves.",
        affected=topics,
        covers_info=True,
    )
    gathered = OF_CLIENT
    subject = (None, CLIENT)
    counting = Counting(keeps_each=True)
    effects = (
        Link(("produce_refused",), (CLIENT,), "the topic takes no batch of this size"),
        Link(("throttled",), (CLIENT,), "many small requests use up the quota"),
    )
    claims = OVERSIZED_OR_TINY_BATCHES

    @classmethod
    def detect(cls, sources: Sources, settings: Thresholds) -> Iterator[Finding]:
        """Batches that were too large, then clients that write one record a batch."""
        yield from _oversized(sources)
        yield from _tiny(sources, settings)


def _oversized(sources: Sources) -> Iterator[Finding]:
    """Batches that are larger than the topic allows.

    Of a batch of several records a Java producer makes smaller ones and sends these (KIP-126): nothing is lost.
    """
    many = sources.episodes.get(OversizedOrTinyBatches.name, ())
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
    ids = exchanges_of(episodes)
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


def _tiny(sources: Sources, settings: OversizedOrTinyBatches.Thresholds) -> Iterator[Finding]:
    for group in grouped(
        [row for row in windows_of(sources, settings) if row.tiny], lambda r: (r.cluster, r.topic, r.client_id)
    ):
        batches, records = sum(r.batches for r in group), sum(r.records for r in group)
        span = max(1.0, (group[-1].last_us - group[0].first_us) / 1_000_000)
        client = group[0].client_id or "?"
        summary = (
            f"{client} writes {records / batches:.1f} records a batch to {group[0].topic}, {batches / span:.0f} "
            f"batches a second, {span_of(group)}: most of the brokers' work goes into headers and requests."
        )
        subject = f"{group[0].topic}/{client}"
        figures = {"batches": batches, "records": records}
        yield finding_of_windows(
            OversizedOrTinyBatches.name, "info", subject, summary, TINY, group, batches, figures, sources, settings
        )
