"""Rules about what is written: crc_mismatch, old_message_format, and tiny batches. One pass over record batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

from decoder.kafka.apis import ApiKey
from pipeline.analysis.rules.kafka.producers.crc_mismatch import CORRUPT, CrcMismatch
from pipeline.analysis.rules.kafka.producers.old_message_format import (
    OLD_ADVICE,
    READ_ADVICE,
    STORED_ADVICE,
    OldMessageFormat,
)
from pipeline.analysis.rules.kafka.producers.oversized_or_tiny_batches import TINY, OversizedOrTinyBatches
from pipeline.analysis.rules.model import Finding, Sources
from pipeline.analysis.rules.rule import finds
from pipeline.analysis.tables import Row, Tables
from pipeline.humanize import clock, pluralize

_WINDOW_US = 10_000_000
_V2 = 2
_FIRST_V2_FETCH = 4
"""The first version of Fetch whose answers may hold format v2 (KIP-98): for older ones brokers convert."""

_IS_TINY = """
    source = 'produce' AND count(*) >= $tiny_batches AND coalesce(sum(records), 0) <= $tiny_records * count(*)
"""
_ANY = f"""
    SELECT source FROM batches WHERE NOT coalesce(is_control, false)
    GROUP BY cluster, topic, partition, client_id, source, epoch_us(ts) // {_WINDOW_US}
    HAVING bool_or(NOT crc_valid) OR bool_or(magic < {_V2}) OR ({_IS_TINY})
"""
"""Whether there is anything to report."""
_UNANSWERED = f"""
    SELECT exchange_id FROM exchanges
    WHERE protocol = 'kafka' AND api_key = {int(ApiKey.PRODUCE)} AND status = 'unanswered'
        AND (server_ip, server_port) IN (SELECT (server_ip, server_port) FROM exchanges WHERE status = 'paired')
"""


@finds(CrcMismatch, OldMessageFormat, OversizedOrTinyBatches)
def find(sources: Sources, settings: OversizedOrTinyBatches.Thresholds) -> list[Finding]:
    """Apply the rules."""
    rows = _windows(sources.tables, settings)
    return [
        *_crc_mismatch(rows, sources, settings),
        *_old_format(rows, sources, settings),
        *_tiny(rows, sources, settings),
    ]


def _windows(tables: Tables, settings: OversizedOrTinyBatches.Thresholds) -> list[Row]:
    """Ten seconds of one client's batches in one partition each, where there is anything to report.

    What a broker left without an answer, while it answered others, it may not have taken: Kafka 4 closes the connection
    on requests as old as v0 and v1 are.
    """
    limits = {"tiny_batches": settings.tiny_batches, "tiny_records": settings.tiny_records}
    if not tables.any(_ANY, **limits):
        return []
    is_old = tables.any(f"FROM batches WHERE magic < {_V2} AND source = 'produce'")
    return tables.rows(
        f"""
        WITH unanswered AS ({_UNANSWERED if is_old else "SELECT NULL AS exchange_id WHERE false"}), marked AS (
            SELECT cluster, topic, partition, client_id, source, epoch_us(ts) AS us, exchange_id, records, magic,
                coalesce(NOT crc_valid, false) AS is_bad, coalesce(magic < {_V2}, false)
                    AND (source <> 'produce' OR exchange_id NOT IN (SELECT exchange_id FROM unanswered)) AS is_old
            FROM batches WHERE NOT coalesce(is_control, false)
        )
        SELECT cluster, topic, partition, client_id, source, us // {_WINDOW_US} AS "window",
            count(*) AS batches, coalesce(sum(records), 0)::BIGINT AS records,
            count(*) FILTER (is_bad) AS bad, count(*) FILTER (is_old) AS old,
            list_sort(list(DISTINCT magic) FILTER (is_old)) AS magics,
            coalesce(min(us) FILTER (is_bad OR is_old), min(us)) AS first_us,
            coalesce(max(us) FILTER (is_bad OR is_old), max(us)) AS last_us,
            coalesce(
                arg_min(exchange_id, (us, exchange_id)) FILTER (is_bad OR is_old),
                arg_min(exchange_id, (us, exchange_id))
            ) AS evidence,
            {_IS_TINY} AS tiny
        FROM marked GROUP BY cluster, topic, partition, client_id, source, "window"
        HAVING bad > 0 OR old > 0 OR tiny
        ORDER BY cluster, topic, partition, client_id, source, "window"
        """,
        **limits,
    )


def _grouped(rows: Sequence[Row], key: Callable[[Row], tuple[object, ...]]) -> Iterator[list[Row]]:
    ordered = sorted(rows, key=lambda row: (repr(key(row)), row.first_us))
    return (list(group) for _, group in groupby(ordered, key=key))


def _crc_mismatch(
    rows: Sequence[Row], sources: Sources, settings: OversizedOrTinyBatches.Thresholds
) -> Iterator[Finding]:
    bad = [row for row in rows if row.bad]
    for group in _grouped(bad, lambda r: (r.cluster, r.topic, r.partition, r.client_id, r.source)):
        row, times = group[0], sum(r.bad for r in group)
        verb = "sent to" if row.source == "produce" else "got from"
        place = f"{row.topic}-{row.partition}"
        summary = (
            f"The checksum of {pluralize(times, 'batch', 'batches')} that {row.client_id or '?'} {verb} {place} does "
            "not "
            f"match {'its' if times == 1 else 'their'} content, {_when(group)}."
        )
        subject = f"{place}/{row.client_id or '?'}"
        figures = {"batches": times, "source": row.source}
        yield _finding("crc_mismatch", "critical", subject, summary, CORRUPT, group, times, figures, sources, settings)


def _old_format(
    rows: Sequence[Row], sources: Sources, settings: OversizedOrTinyBatches.Thresholds
) -> Iterator[Finding]:
    old = [row for row in rows if row.old]
    stored = _stored(sources.tables) if any(row.source == "fetch" for row in old) else set()
    for group in _grouped(old, lambda r: (r.cluster, r.topic)):
        times = sum(r.old for r in group)
        magics = sorted({magic for r in group for magic in r.magics or ()})
        writers, readers = (sorted({r.client_id or "?" for r in group if r.source == s}) for s in ("produce", "fetch"))
        takes_v2 = sorted({r.client_id or "?" for r in group if (r.cluster, r.topic, r.client_id) in stored})
        formats = " and v".join(map(str, magics))
        by = [f"{word} {', '.join(names)}" for word, names in (("written by", writers), ("read by", readers)) if names]
        meaning, advice = _meaning(writers, takes_v2)
        summary = (
            f"Topic {group[0].topic} carries messages of format v{formats}, {' and '.join(by)}: "
            f"{pluralize(times, 'batch', 'batches')}, {_when(group)}. {meaning}"
        )
        figures = {
            "batches": times, "magics": magics, "writers": writers, "readers": readers, "stored_for": takes_v2,
        }  # fmt: skip
        subject = group[0].topic
        yield _finding("old_message_format", "info", subject, summary, advice, group, times, figures, sources, settings)


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
        "Nobody was seen to write them: these requests (Fetch v0 to v3) cannot take format v2, so the broker converts "
        "for them, or its log holds old formats.",
        READ_ADVICE,
    )


def _stored(tables: Tables) -> set[tuple[str, str, str | None]]:
    """Cluster, topic and client of old batches that came by requests whose answers could hold format v2."""
    rows = tables.rows(f"""
        SELECT DISTINCT batches.cluster, batches.topic, batches.client_id
        FROM batches JOIN exchanges USING (exchange_id)
        WHERE source = 'fetch' AND magic < {_V2} AND NOT coalesce(is_control, false)
            AND exchanges.api_version >= {_FIRST_V2_FETCH}
    """)
    return {(row.cluster, row.topic, row.client_id) for row in rows}


def _tiny(rows: Sequence[Row], sources: Sources, settings: OversizedOrTinyBatches.Thresholds) -> Iterator[Finding]:
    for group in _grouped([row for row in rows if row.tiny], lambda r: (r.cluster, r.topic, r.client_id)):
        batches, records = sum(r.batches for r in group), sum(r.records for r in group)
        span = max(1.0, (group[-1].last_us - group[0].first_us) / 1_000_000)
        client = group[0].client_id or "?"
        summary = (
            f"{client} writes {records / batches:.1f} records a batch to {group[0].topic}, {batches / span:.0f} "
            f"batches a second, {_when(group)}: most of the brokers' work goes into headers and requests."
        )
        subject = f"{group[0].topic}/{client}"
        figures = {"batches": batches, "records": records}
        name = "oversized_or_tiny_batches"
        yield _finding(name, "info", subject, summary, TINY, group, batches, figures, sources, settings)


def _when(group: Sequence[Row]) -> str:
    return f"from {clock(group[0].first_us)} to {clock(max(r.last_us for r in group))} UTC"


def _finding(
    rule: str, severity: str, subject: str, summary: str, advice: str, group: Sequence[Row], times: int,
    figures: dict[str, object], sources: Sources, settings: OversizedOrTinyBatches.Thresholds,
) -> Finding:  # fmt: skip
    row, first_us, last_us = group[0], group[0].first_us, max(r.last_us for r in group)
    one_partition = len({r.partition for r in group}) == 1
    return Finding(
        rule=rule, severity=severity, subject=subject, state=sources.state(row.cluster, first_us, last_us, times),
        cluster=row.cluster, topic=row.topic, partition=row.partition if one_partition else None, group_id=None,
        first_us=first_us, last_us=last_us, summary=summary, advice=advice,
        evidence=[r.evidence for r in group][: settings.max_evidence],
        details={**figures, "enough_us": first_us},
    )  # fmt: skip
