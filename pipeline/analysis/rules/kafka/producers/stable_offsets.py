"""Rules ``lso_stalled`` and ``read_committed_starved``: a transaction stays open, and who gets nothing for that.

Meaning: consumers with isolation level read_committed read up to the last stable offset (LSO) only, which is the first
offset of the oldest open transaction. If its producer died or hangs, they starve while producers write on (KIP-98).
Evidence: fetch answers in which the LSO stays the same for ``lso_stalled_seconds`` while the high watermark grows by
``lso_stalled_records``. The batch at the LSO names the producer; its requests name transactional id and client.
Each consumer that is there is a finding of its own: those who run it look for its name, not for the producer's.
Advice: see ADVICE and STARVED_ADVICE.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline.analysis.rules.format import times, wait_or_waits
from pipeline.analysis.rules.kafka.producers.aborting import by_hand
from pipeline.analysis.rules.kafka.producers.holding import Producer, add_stalls, committers, producers, withheld
from pipeline.analysis.rules.kafka.producers.starved import readers, starved_readers
from pipeline.analysis.rules.kafka.progress.rhythm import usual_us
from pipeline.analysis.rules.kafka.records_behind import Behind, offsets_or_records
from pipeline.analysis.rules.model import Finding, Sources, State
from pipeline.analysis.tables import Row, Tables
from pipeline.humanize import clock, pluralize, seconds

if TYPE_CHECKING:
    from pipeline.analysis.rules.kafka.producers.lso_stalled import LsoStalled
    from pipeline.analysis.rules.kafka.producers.read_committed_starved import ReadCommittedStarved

    class StableOffsetThresholds(LsoStalled.Thresholds, ReadCommittedStarved.Thresholds):
        """Thresholds of rules that share a pass."""


STARVED_ADVICE = (
    "Now: end the transaction that is open there, see lso_stalled of the same partition for its producer; the consumer "
    "is in good health, and a restart of it changes nothing. Fix: as there. isolation.level=read_uncommitted would "
    "read on, and read what may be aborted."
)

ADVICE = (
    "Now: start the producer named here again with the same transactional.id, which aborts what it left open; if it "
    "hangs, stop it; if it is gone for good, {command}. Fix: end each transaction in a finally block "
    "(commitTransaction, abortTransaction), and let transaction.timeout.ms be as long as a transaction really takes: "
    "until then the broker leaves it open."
)

NAME = "lso_stalled"
STARVED = "read_committed_starved"
_MOST_JUDGED = 100
"""Partitions whose producers and readers are looked for, those that have stood still for the longest."""
_ENOUGH_TRANSACTIONS = 3
"""Transactions that it takes to know how long they usually are open."""


def stalls_and_starved(sources: Sources, settings: StableOffsetThresholds) -> list[Finding]:
    """Apply the rules."""
    candidates = _stalls(sources.tables, settings)
    if not candidates:
        return []
    usual = _usual_us(sources.tables, candidates)
    least = settings.lso_stalled_ratio
    found: list[Finding] = []
    lasting = [s for s in candidates if s.last_us - s.first_us >= usual.get(_place(s), 0) * least]
    of_place: defaultdict[tuple[str, str], list[Row]] = defaultdict(list)
    for stall in lasting:
        of_place[_place(stall)].append(stall)
    last_of_each = _last_of_each(lasting)
    others = max(len(last_of_each) - _MOST_JUDGED, 0)
    judged = _longest(last_of_each)
    add_stalls(sources.tables, judged)
    held_by, committed = producers(sources.tables), committers(sources.tables)
    starved_at, held_back = starved_readers(sources.tables, settings), withheld(sources.tables, judged)
    for number, stall in enumerate(judged):
        producer, starved = held_by.get(number), starved_at.get(number, [])
        is_committed = producer is not None and (number, producer.producer_id) in committed
        end = _End.of(stall, sources, settings, is_committed=is_committed, is_usual_known=_place(stall) in usual)
        before = [s for s in of_place[_place(stall)] if s.span != stall.span]
        behind = held_back[number]
        found.append(_finding(stall, producer, starved, behind, end, before, others, settings))
        found += [
            _starving(stall, reader, producer, behind, end, settings)
            for reader in starved
            if reader.fetches >= settings.starved_fetches
        ]
    return found


@dataclass(frozen=True, slots=True)
class _End:
    """What became of a stall, and how bad it is."""

    state: State
    severity: str
    words: str

    @classmethod
    def of(
        cls, stall: Row, sources: Sources, settings: StableOffsetThresholds, *, is_committed: bool, is_usual_known: bool
    ) -> _End:
        """A transaction that committed was just long. What is long is unknown where too few were seen."""
        if stall.span < stall.last_span:
            words = "It was committed, and the offset has moved on since" if is_committed else "It has moved on since"
            return cls("resolved", "info" if is_committed else "warning", words)
        is_seen = sources.state(stall.cluster, stall.first_us, stall.last_us, 1) == "ongoing"
        state: State = "ongoing" if is_seen else "unknown"
        words = "" if state == "ongoing" else f"No client has fetched there since {clock(stall.last_us)} UTC"
        if is_usual_known or stall.last_us - stall.first_us >= int(settings.transaction_seconds * 1_000_000):
            return cls(state, "critical", words)
        return cls(state, "info", words or "Too few transactions were seen here to know how long they usually are open")


_HELD_BACK = """
    SELECT last_stable_offset FROM events
    WHERE kind = 'fetched' AND high_watermark > last_stable_offset
    GROUP BY cluster, topic, partition, last_stable_offset
    HAVING max(epoch_us(ts)) - min(epoch_us(ts)) >= $lasting
        AND max(high_watermark)::HUGEINT - min(high_watermark) >= $growing
"""
"""Partitions in which the LSO was the same for so long, whatever it was in between."""


def _stalls(tables: Tables, settings: StableOffsetThresholds) -> list[Row]:
    """The spans of each partition in which the LSO stays below a growing high watermark."""
    least = {"lasting": int(settings.lso_stalled_seconds * 1_000_000), "growing": settings.lso_stalled_records}
    if not tables.any(_HELD_BACK, **least):
        return []
    return tables.rows(
        """
        WITH seen AS (
            SELECT cluster, topic, partition, ts, exchange_id, ordinal, high_watermark, last_stable_offset,
                last_stable_offset IS DISTINCT FROM lag(last_stable_offset) OVER in_order AS moved
            FROM events
            WHERE kind = 'fetched' AND high_watermark IS NOT NULL AND last_stable_offset IS NOT NULL
            WINDOW in_order AS (PARTITION BY cluster, topic, partition ORDER BY ts, exchange_id, ordinal)
        ), numbered AS (
            SELECT *, sum(moved::INT) OVER (
                PARTITION BY cluster, topic, partition ORDER BY ts, exchange_id, ordinal ROWS UNBOUNDED PRECEDING
            )::BIGINT AS span FROM seen
        ), spans AS (
            SELECT *, max(span) OVER (PARTITION BY cluster, topic, partition) AS last_span FROM numbered
        )
        SELECT cluster, topic, partition, span, last_span, last_stable_offset AS lso,
            min(high_watermark) AS hw_first, max(high_watermark) AS hw_last,
            min(epoch_us(ts)) AS first_us, max(epoch_us(ts)) AS last_us,
            arg_max(exchange_id, (ts, exchange_id)) AS exchange_id
        FROM spans WHERE high_watermark > last_stable_offset
        GROUP BY ALL
        HAVING last_us - first_us >= $lasting AND hw_last::HUGEINT - hw_first >= $growing
        ORDER BY cluster, topic, partition, span
        """,
        **least,
    )


def _longest(stalls: Sequence[Row]) -> list[Row]:
    """Those that are looked at, in the order given."""
    longest = sorted(range(len(stalls)), key=lambda n: (stalls[n].first_us - stalls[n].last_us, n))
    return [stalls[number] for number in sorted(longest[:_MOST_JUDGED])]


def _last_of_each(stalls: Iterable[Row]) -> list[Row]:
    """Of those of each partition, which are in order of time, the last."""
    return list({(s.cluster, s.topic, s.partition): s for s in stalls}.values())


def _usual_us(tables: Tables, stalls: Sequence[Row]) -> dict[tuple[str, str], int]:
    """By cluster and partition, how long a transaction usually stays open until it commits, µs, where it is known.

    Sinks that write exactly once hold a transaction open from one checkpoint to the next: seconds, or minutes.
    """
    wanted = {_place(stall) for stall in stalls}
    rows = tables.rows("""
        SELECT cluster, place, list(duration_us ORDER BY duration_us) AS durations
        FROM (
            SELECT cluster, unnest(partitions) AS place, duration_us FROM transactions
            WHERE state IN ('committing', 'committed') AND duration_us IS NOT NULL
        )
        GROUP BY ALL
    """)
    return {
        (row.cluster, row.place): usual_us(row.durations)
        for row in rows
        if (row.cluster, row.place) in wanted and len(row.durations) >= _ENOUGH_TRANSACTIONS
    }


def _place(stall: Row) -> tuple[str, str]:
    return stall.cluster, f"{stall.topic}-{stall.partition}"


def _finding(
    stall: Row, producer: Producer | None, starved: Sequence[Row], behind: Behind, end: _End, before: Sequence[Row],
    others: int, settings: StableOffsetThresholds,
) -> Finding:  # fmt: skip
    place = f"{stall.topic}-{stall.partition}"
    grown = stall.hw_last - stall.hw_first
    age = stall.last_us - (min(producer.since_us, stall.first_us) if producer else stall.first_us)
    parts = [
        f"The last stable offset of {place} was at {stall.lso} for {seconds(stall.last_us - stall.first_us)} "
        f"(from {clock(stall.first_us)} to {clock(stall.last_us)} UTC) while the high watermark grew by {grown} "
        f"to {stall.hw_last}",
        _blame(producer, age),
        readers(starved, behind),
        end.words,
        f"{pluralize(others, 'more partition')} stood still for a shorter time and "
        f"{'was' if others == 1 else 'were'} not "
        "looked at one by one"
        if others
        else "",
    ]
    evidence = [producer.exchange_id] if producer else []
    first_offset = producer.first_offset if producer else stall.lso
    evidence += [row.exchange_id for row in starved] or [stall.exchange_id]
    return Finding(
        rule=NAME, severity=end.severity, subject=place, state=end.state, cluster=stall.cluster, topic=stall.topic,
        partition=stall.partition, group_id=None, first_us=stall.first_us, last_us=stall.last_us,
        summary=". ".join(part for part in parts if part) + ".",
        advice=ADVICE.format(command=by_hand([place], {} if end.state == "resolved" else {place: first_offset}, None)),
        evidence=evidence[: settings.max_evidence],
        details={
            "last_stable_offset": stall.lso, "high_watermark": stall.hw_last, "high_watermark_growth": grown,
            **behind.figures, "producer_id": producer.producer_id if producer else None,
            "producer_epoch": producer.epoch if producer else None,
            "transactional_id": producer.transactional_id if producer else None,
            "client_id": producer.client_id if producer else None,
            "address": producer.address if producer else None,
            "first_offset": first_offset, "age_seconds": age / 1_000_000,
            "starved_consumers": [
                {"client_id": r.client_id, "host": r.host, "group_id": r.reader_group, "fetches": r.fetches}
                for r in starved
            ],
            "resolved": end.state == "resolved",
            "enough_us": _enough_us(stall, settings),
            "recurrences": len(before), "first_of_all_us": min(s.first_us for s in (*before, stall)),
            "last_of_all_us": stall.last_us,
        },
    )  # fmt: skip


def _starving(
    stall: Row, reader: Row, producer: Producer | None, behind: Behind, end: _End, settings: StableOffsetThresholds
) -> Finding:  # fmt: skip
    place = f"{stall.topic}-{stall.partition}"
    who = f"{reader.client_id or 'A client without client_id'} at {reader.host}"
    group = f" (group {reader.reader_group})" if reader.reader_group else ""
    name = (producer.transactional_id or f"producer {producer.producer_id}") if producer else "an unknown producer"
    summary = (
        f"{who}{group} gets no records of {place}: it reads only what is committed, and fetched "
        f"{times(reader.fetches, reader.first_us, reader.last_us)} at the last stable offset {stall.lso}, behind "
        f"which a transaction of {name} is open. "
        f"{offsets_or_records(behind)} {wait_or_waits(behind.records)}."
        f"{f' {end.words}.' if end.words else ''}"
    )
    return Finding(
        rule=STARVED, severity=end.severity,
        subject=f"{reader.reader_group or reader.client_id or '?'}/{place}", state=end.state,
        cluster=stall.cluster, topic=stall.topic, partition=stall.partition, group_id=reader.reader_group,
        first_us=reader.first_us, last_us=reader.last_us, summary=summary, advice=STARVED_ADVICE,
        evidence=[reader.exchange_id],
        details={
            "last_stable_offset": stall.lso, "high_watermark": stall.hw_last, "fetches": reader.fetches,
            **behind.figures, "enough_us": max(_enough_us(stall, settings), reader.enough_us),
        },
    )  # fmt: skip


def _enough_us(stall: Row, settings: StableOffsetThresholds) -> int:
    """When the offset had stood still for long enough, µs since the epoch."""
    return int(stall.first_us) + int(settings.lso_stalled_seconds * 1_000_000)


def _blame(producer: Producer | None, age_us: int) -> str:
    if producer is None:
        return "A transaction is open there; its first batch was not captured, so its producer is not known"
    name = f"transactional id {producer.transactional_id}, " if producer.transactional_id else ""
    client = f", client {producer.client_id or '?'} at {producer.address}" if producer.address else ""
    return (
        f"Producer {producer.producer_id} epoch {producer.epoch} ({name}first offset {producer.first_offset}{client}) "
        f"has held its transaction open for {seconds(age_us)}"
    )
