"""Rule ``duplicate_write``: a producer without idempotence sent a batch again, and the broker appended it twice.

Evidence: the same batch (timestamps, number of records and bytes) of one client goes to one partition twice: the second
time on a connection that was made after the first was sent and not answered in time, or after an error that leaves open
what has become of it (REQUEST_TIMED_OUT, NOT_ENOUGH_REPLICAS_AFTER_APPEND). And both copies have an offset, as the
answers state it or as a consumer has read it. With idempotence (KIP-98) the broker knows the batch by its sequence.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from pydantic import Field

from decoder.kafka.apis import KafkaError
from pipeline.analysis.claims.kafka.producers import DUPLICATE_WRITE
from pipeline.analysis.rules.case.case import Case
from pipeline.analysis.rules.case.texts import LOSES
from pipeline.analysis.rules.format import who
from pipeline.analysis.rules.model import Finding, Sources
from pipeline.analysis.rules.recurrence import last_of_each
from pipeline.analysis.rules.rule import OF_CLIENT, Rule
from pipeline.analysis.rules.shown_by import ShownBy
from pipeline.analysis.rules.thresholds import RuleThresholds, Seconds
from pipeline.analysis.tables import Row, Tables
from pipeline.humanize import clock, pluralize, seconds

ADVICE = (
    "Now: let the readers of this topic drop what they have seen (by key or an id in the record); the offsets of both "
    "copies are in `details`. Fix: enable.idempotence=true with acks=all (Java: the default since 3.0 unless acks, "
    "retries or max.in.flight.requests.per.connection > 5 speak against it; librdkafka: the default is false). Then a "
    "batch that is sent again is written once. A longer request.timeout.ms (Java), socket.timeout.ms (librdkafka) "
    "makes it rarer only: find out why the broker did not answer in time."
)


class DuplicateWrite(Rule):
    """A producer without idempotence sent a batch again, and both copies are in the log."""

    class Thresholds(RuleThresholds):
        """When it fires."""

        duplicate_write_seconds: Seconds = Field(
            default=0.5, description="From a batch without an answer to the same batch on another connection, at least"
        )

    name = "duplicate_write"
    title = "Duplicate write"
    protocol = "kafka"
    about = "producers"
    severities = ("warning",)
    reads = ("batches", "exchanges")
    advice = (ADVICE,)
    urgency = LOSES
    shown_by = ShownBy(what="requests", is_on_two_connections=True)
    gathered = OF_CLIENT
    claims = DUPLICATE_WRITE

    @classmethod
    def is_lasting(cls, case: Case) -> bool:
        """Records stay twice in the log."""
        del case
        return True

    @classmethod
    def detect(cls, sources: Sources, settings: Thresholds) -> list[Finding]:
        """Apply the rule: one finding for each client and topic."""
        pairs = list(_resent(sources.tables, _sent(sources.tables), int(settings.duplicate_write_seconds * 1_000_000)))
        if not pairs:
            return []
        by_writer: defaultdict[tuple[str, str, str], list[Twice]] = defaultdict(list)
        for one in _appended(sources.tables, pairs):
            by_writer[one.first.cluster, one.first.topic, one.first.client_id or "?"].append(one)
        pause_us = int(settings.episode_pause_seconds * 1_000_000)
        times = (some for _, of_one in sorted(by_writer.items()) for some in _apart(of_one, pause_us))
        return last_of_each(_finding(some, sources, settings) for some in times)


_IN_DOUBT = (KafkaError.REQUEST_TIMED_OUT, KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
"""The leader has appended what it refuses."""
_SAME = "cluster, topic, partition, base_timestamp, max_timestamp, records, size"
_WITHOUT_ID = """
    source = 'produce' AND coalesce(producer_id, -1) < 0 AND topic IS NOT NULL AND base_timestamp IS NOT NULL
    AND records > 0
"""
"""Batches of producers without idempotence, as SQL."""


@dataclass(frozen=True, slots=True)
class Twice:
    """A batch that is in the log twice.

    Attributes:
        first, again: rows of :func:`_sent`.
        offsets: base offsets of the copies.
    """

    first: Row
    again: Row
    offsets: tuple[int, ...]


def _apart(some: Sequence[Twice], pause_us: int) -> Iterator[list[Twice]]:
    """Cut where nothing was written twice for longer than a pause, µs; in order of time."""
    run: list[Twice] = []
    for one in sorted(some, key=lambda one: (one.again.us, one.again.exchange_id)):
        if run and one.first.us - run[-1].again.us > pause_us:
            yield run
            run = []
        run.append(one)
    if run:
        yield run


def _sent(tables: Tables) -> list[Row]:
    """Batches without a producer id that came more than once, batch by batch in order of time."""
    of_one = f"{_SAME}, client_id"
    if not tables.any(f"SELECT {of_one} FROM batches WHERE {_WITHOUT_ID} GROUP BY {of_one} HAVING count(*) > 1"):
        return []
    return tables.rows(f"""
        WITH twice AS (
            SELECT {of_one}, base_offset, exchange_id FROM batches WHERE {_WITHOUT_ID}
            QUALIFY count(*) OVER (PARTITION BY {of_one}) > 1
        )
        SELECT {_SAME}, twice.client_id, base_offset, exchange_id, exchanges.connection_id, client_ip, server_ip,
            epoch_us(request_ts) AS us, epoch_us(response_ts) AS answered_us, error_codes
        FROM twice JOIN exchanges USING (exchange_id)
        WHERE request_ts IS NOT NULL
        ORDER BY {_SAME}, twice.client_id, client_ip, us, exchange_id
    """)


def _resent(tables: Tables, rows: Sequence[Row], least_us: int) -> Iterator[tuple[Row, Row]]:
    """Neighbours, the second sent because the fate of the first was unknown.

    Two producers of one client id may write equal batches in the same millisecond: who gave up a connection makes a new
    one, or goes to another broker.
    """
    pairs = [
        (first, again)
        for _, some in groupby(rows, key=lambda r: (*r[:8], r.client_ip))
        for first, again in pairwise(some)
        if again.us - first.us >= least_us
    ]
    began = _began(tables, [again.connection_id for _, again in pairs]) if pairs else {}
    for first, again in pairs:
        in_doubt = any(code in _IN_DOUBT for code in first.error_codes or ())
        was_late = first.answered_us is None or first.answered_us - first.us >= least_us
        is_elsewhere = first.server_ip != again.server_ip or began[again.connection_id] > first.us
        if in_doubt or (was_late and first.connection_id != again.connection_id and is_elsewhere):
            yield first, again


def _began(tables: Tables, connections: Sequence[str]) -> dict[str, int]:
    """When connections were first used, µs since the epoch."""
    rows = tables.rows(
        """
        SELECT connection_id, min(epoch_us(ts)) AS us FROM exchanges
        WHERE connection_id IN (SELECT unnest($connections)) GROUP BY connection_id
        """,
        connections=sorted(set(connections)),
    )
    return {row.connection_id: row.us for row in rows}


def _appended(tables: Tables, pairs: Sequence[tuple[Row, Row]]) -> Iterator[Twice]:
    """Those whose copies both have an offset: from both answers, or from a Fetch that read both."""
    read: defaultdict[tuple[object, ...], set[int]] = defaultdict(set)
    if any(first.base_offset is None or again.base_offset is None for first, again in pairs):
        rows = tables.rows(
            f"""
            SELECT {_SAME}, base_offset FROM batches
            WHERE source = 'fetch' AND coalesce(producer_id, -1) < 0 AND base_offset IS NOT NULL
                AND base_timestamp IN (SELECT unnest($timestamps))
            """,
            timestamps=sorted({first.base_timestamp for first, _ in pairs}),
        )
        for row in rows:
            read[row[:7]].add(row.base_offset)
    for first, again in pairs:
        answered = {one.base_offset for one in (first, again) if one.base_offset is not None}
        offsets = answered if len(answered) > 1 else answered | read[first[:7]]
        if len(offsets) > 1:
            yield Twice(first, again, tuple(sorted(offsets)))


def _finding(some: Sequence[Twice], sources: Sources, settings: DuplicateWrite.Thresholds) -> Finding:
    first, last = some[0].first, max((one.again for one in some), key=lambda r: r.us)
    first_us, records = min(one.first.us for one in some), sum(one.first.records for one in some)
    partitions = sorted({one.first.partition for one in some})
    waited = max(one.again.us - one.first.us for one in some)
    shown = "; ".join(f"{one.first.partition}: {' and '.join(map(str, one.offsets))}" for one in some[:3])
    times = "once" if len(some) == 1 else f"{len(some)} times"
    summary = (
        f"{who(first.client_id, first.client_ip)} wrote {pluralize(records, 'record')} to "
        f"{first.topic} twice: it got no answer, sent the batch again after up to {seconds(waited)} ({times}, last at "
        f"{clock(last.us)} UTC), and the broker appended both. Offsets by partition: {shown}"
        f"{' and more' if len(some) > 3 else ''}. It writes without idempotence."
    )
    exchanges = dict.fromkeys(r.exchange_id for one in some for r in (one.first, one.again))
    return Finding(
        rule=DuplicateWrite.name, severity="warning", subject=f"{first.topic}/{first.client_id or '?'}",
        state=sources.state(first.cluster, first_us, last.us, 2 * len(some)), cluster=first.cluster,
        topic=first.topic, partition=partitions[0] if len(partitions) == 1 else None, group_id=None,
        first_us=first_us, last_us=last.us, summary=summary, advice=ADVICE,
        evidence=list(exchanges)[: settings.max_evidence],
        details={
            "batches": len(some), "records": records, "client_id": first.client_id, "host": first.client_ip,
            "copies": [{"partition": one.first.partition, "offsets": list(one.offsets)} for one in some[:50]],
            "enough_us": some[0].again.us,
        },
    )  # fmt: skip
