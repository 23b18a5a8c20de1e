"""Rule ``partition_unavailable``: partitions have no leader, so that no client can write to or read from them.

Evidence: LEADER_NOT_AVAILABLE and its like in Metadata, Produce, Fetch and ListOffsets, or NOT_LEADER_OR_FOLLOWER of
several brokers, without any success on the partition in between. A client that goes by old metadata is
``stale_metadata``: others are served meanwhile, or it alone uses the partition and asks one broker.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from shlex import quote

from decoder.fields import integer, items, natural, parsed, text
from decoder.kafka.apis import ApiKey, KafkaError
from decoder.kafka.errors import error_name
from pipeline.analysis.claims.kafka.brokers import PARTITION_UNAVAILABLE
from pipeline.analysis.codes.kafka.table import KAFKA
from pipeline.analysis.rules.case.case import Case
from pipeline.analysis.rules.case.entities import CLIENT, SERVER, TOPIC
from pipeline.analysis.rules.case.texts import STANDS
from pipeline.analysis.rules.kafka.brokers.outages import BY, Attempt, Outage, Wave, finding, lasting_waves
from pipeline.analysis.rules.kafka.links import SLOWED, STANDSTILL
from pipeline.analysis.rules.kafka.refused_apis import refused_requests
from pipeline.analysis.rules.kafka.thresholds import UNAVAILABLE_REFUSALS, UNAVAILABLE_SECONDS
from pipeline.analysis.rules.kinds import kinds
from pipeline.analysis.rules.model import Finding, Sources
from pipeline.analysis.rules.recurrence import last_of_each
from pipeline.analysis.rules.rule import OF_CLUSTER, Link, Rule
from pipeline.analysis.rules.thresholds import Count, RuleThresholds, Seconds
from pipeline.analysis.tables import Tables, numbers
from pipeline.humanize import joined, pluralize

ADVICE = (
    "Now: start the broker that holds these partitions (`kafka-topics.sh --bootstrap-server BROKER --describe "
    "--unavailable-partitions` names leader and replicas), or look why it does not come back. Only if its data is lost "
    "for good: {commands}, which drops what the new leader does not have. Fix: give topics three replicas "
    "(default.replication.factor=3, min.insync.replicas=2) on different racks (broker.rack), so that one broker may "
    "go. Let producers wait longer than a restart takes: delivery.timeout.ms (Java), message.timeout.ms (librdkafka)."
)


class PartitionUnavailable(Rule):
    """Partitions have no leader: no client can write to or read from them."""

    class Thresholds(RuleThresholds):
        """When it fires."""

        unavailable_refusals: Count = UNAVAILABLE_REFUSALS
        unavailable_seconds: Seconds = UNAVAILABLE_SECONDS

    name = "partition_unavailable"
    title = "Partition unavailable"
    protocol = "kafka"
    about = "clients and brokers"
    severities = ("critical", "warning")
    reads = ("events", "exchanges")
    advice = (ADVICE,)
    urgency = STANDS
    gathered = OF_CLUSTER
    effects = (
        Link(
            (
                "stale_metadata",
                "fenced_leader_epoch",
                "produce_refused",
                "duplicate_write",
                "sequence_gap",
                "request_refused",
                *STANDSTILL,
            ),
            (TOPIC,),
            "no client can write to or read from what has no leader",
        ),
        Link(("coordinator_unavailable", "unanswered_requests", "latency_outlier"), (SERVER,), SLOWED),
        Link(("unanswered_requests", "connection_churn"), (CLIENT,), SLOWED),
    )
    claims = PARTITION_UNAVAILABLE

    @classmethod
    def is_of_brokers(cls, case: Case) -> bool:
        """No leader is there whoever asks."""
        del case
        return True

    @classmethod
    def detect(cls, sources: Sources, settings: Thresholds) -> list[Finding]:
        """Apply the rule: one finding for each wave, the last of those that begin with the same partition."""
        refused = (*_refused(sources), *_without_leader(sources))
        found = lasting_waves(refused, partial(_served, sources.tables), settings)
        leaderless = (Wave(tuple(filter(_has_no_leader, wave.outages))) for wave in found)
        return last_of_each(_finding(wave, sources, settings) for wave in leaderless if wave.outages)


_IN_METADATA = numbers(KafkaError.LEADER_NOT_AVAILABLE, KafkaError.LISTENER_NOT_FOUND)
_NOT_LEADER = int(KafkaError.NOT_LEADER_OR_FOLLOWER)
REFUSALS = KAFKA.of_area("leader")
_SHOWN = 3
_BELIEVED = 2
"""One broker that says so says it to whoever goes by old metadata; no leader is there if this many say so."""


def _has_no_leader(outage: Outage) -> bool:
    """Whether more was answered than NOT_LEADER_OR_FOLLOWER by one broker (that is ``stale_metadata``)."""
    return (
        any(one.error != error_name(_NOT_LEADER) for one in outage.refused)
        or len({one.server for one in outage.refused}) >= _BELIEVED
    )


_PLACE = "topic || '-' || partition"


def _refused(sources: Sources) -> Iterator[Attempt]:
    if kinds(sources).codes_of_events.isdisjoint(REFUSALS):
        return iter(())
    rows = sources.tables.rows(f"""
        SELECT cluster, {_PLACE} AS place, epoch_us(ts) AS us, exchange_id,
            CASE error_code WHEN {_NOT_LEADER} THEN '{error_name(_NOT_LEADER)}' ELSE error_name END AS error,
            server, {BY} AS "by"
        FROM events WHERE error_code IN {REFUSALS} AND topic IS NOT NULL
    """)
    return (Attempt(*row) for row in rows)


def _served(tables: Tables, refused: Iterable[Attempt]) -> dict[tuple[str, str], list[int]]:
    """When the same partitions were written to or read, ascending."""
    rows = tables.rows(
        f"""
        SELECT cluster, {_PLACE} AS place, list(epoch_us(ts) ORDER BY ts) AS times FROM events
        WHERE kind IN ('produced', 'fetched') AND coalesce(error_code, 0) = 0 AND topic IN (SELECT unnest($topics))
        GROUP BY ALL
        """,
        topics=sorted({one.place.rpartition("-")[0] for one in refused}),
    )
    return {(row.cluster, row.place): row.times for row in rows}


def _without_leader(sources: Sources) -> Iterator[Attempt]:
    """What Metadata says of partitions without a leader."""
    for cluster, row in refused_requests(sources, ApiKey.METADATA, _IN_METADATA):
        for topic in items(parsed(row.response_body), "topics"):
            name = text(topic, "name") or text(topic, "topicId")
            for part in items(topic, "partitions"):
                code, partition = integer(part, "errorCode"), natural(part, "partitionIndex")
                if name and partition is not None and code is not None and code in _IN_METADATA:
                    yield Attempt(
                        cluster, f"{name}-{partition}", row.us, row.exchange_id, error_name(code), row.server, row.by
                    )


def _elections(places: Sequence[str]) -> str:
    """The commands that elect a new leader in each of them."""
    found = []
    for topic, _, partition in (place.rpartition("-") for place in places[:_SHOWN]):
        where = f"--topic {quote(topic)} --partition {quote(partition)}"
        found.append(f"`kafka-leader-election.sh --bootstrap-server BROKER --election-type unclean {where}`")
    if len(places) > _SHOWN:
        found.append(f"the same for {pluralize(len(places) - _SHOWN, 'more partition')}")
    return joined(found)


def _finding(wave: Wave, sources: Sources, settings: PartitionUnavailable.Thresholds) -> Finding:
    places = wave.places
    shown = ", ".join(places[:_SHOWN])
    shown += f" and {pluralize(len(places) - _SHOWN, 'more partition')}" if len(places) > _SHOWN else ""
    what = f"{shown} had no leader" if len(places) == 1 else f"{shown} had no leaders"
    advice = ADVICE.format(commands=_elections(places))
    found = finding(
        wave,
        PartitionUnavailable,
        wave.refused[0].place,
        what,
        advice,
        sources,
        settings.max_evidence,
        settings.unavailable_refusals,
    )
    topics = {place.rpartition("-")[0] for place in places}
    only = int(places[0].rpartition("-")[2]) if len(places) == 1 else None
    return replace(found, topic=topics.pop() if len(topics) == 1 else None, partition=only)
