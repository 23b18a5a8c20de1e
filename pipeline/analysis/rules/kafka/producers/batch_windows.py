"""Batches that were written or read, in windows of ten seconds: what rules about batches find there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from decoder.kafka.apis import ApiKey
from pipeline.analysis.rules.model import Finding, Sources
from pipeline.analysis.tables import Row, Tables
from pipeline.humanize import clock

if TYPE_CHECKING:
    from pipeline.analysis.rules.kafka.producers.oversized_or_tiny_batches import OversizedOrTinyBatches

_WINDOW_US = 10_000_000
FORMAT_V2 = 2

_IS_TINY = """
    source = 'produce' AND count(*) >= $tiny_batches AND coalesce(sum(records), 0) <= $tiny_records * count(*)
"""
_ANY = f"""
    SELECT source FROM batches WHERE NOT coalesce(is_control, false)
    GROUP BY cluster, topic, partition, client_id, source, epoch_us(ts) // {_WINDOW_US}
    HAVING bool_or(NOT crc_valid) OR bool_or(magic < {FORMAT_V2}) OR ({_IS_TINY})
"""
"""Whether there is anything to report."""
_UNANSWERED = f"""
    SELECT exchange_id FROM exchanges
    WHERE protocol = 'kafka' AND api_key = {int(ApiKey.PRODUCE)} AND status = 'unanswered'
        AND (server_ip, server_port) IN (SELECT (server_ip, server_port) FROM exchanges WHERE status = 'paired')
"""


def windows_of(sources: Sources, settings: OversizedOrTinyBatches.Thresholds) -> list[Row]:
    """Ten seconds of one client's batches in one partition each, where there is anything to report, asked once.

    What a broker left without an answer, while it answered others, it may not have taken: Kafka 4 closes the connection
    on requests as old as v0 and v1 are.
    """
    return sources.once("windows of batches", lambda: _windows(sources.tables, settings))


def _windows(tables: Tables, settings: OversizedOrTinyBatches.Thresholds) -> list[Row]:
    limits = {"tiny_batches": settings.tiny_batches, "tiny_records": settings.tiny_records}
    if not tables.any(_ANY, **limits):
        return []
    is_old = tables.any(f"FROM batches WHERE magic < {FORMAT_V2} AND source = 'produce'")
    return tables.rows(
        f"""
        WITH unanswered AS ({_UNANSWERED if is_old else "SELECT NULL AS exchange_id WHERE false"}), marked AS (
            SELECT cluster, topic, partition, client_id, source, epoch_us(ts) AS us, exchange_id, records, magic,
                coalesce(NOT crc_valid, false) AS is_bad, coalesce(magic < {FORMAT_V2}, false)
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


def grouped(rows: Sequence[Row], key: Callable[[Row], tuple[object, ...]]) -> Iterator[list[Row]]:
    """Windows by a key, each group in the order of time."""
    ordered = sorted(rows, key=lambda row: (repr(key(row)), row.first_us))
    return (list(group) for _, group in groupby(ordered, key=key))


def span_of(group: Sequence[Row]) -> str:
    """From when to when some windows are, for people."""
    return f"from {clock(group[0].first_us)} to {clock(max(r.last_us for r in group))} UTC"


def finding_of_windows(
    rule: str, severity: str, subject: str, summary: str, advice: str, group: Sequence[Row], times: int,
    figures: dict[str, object], sources: Sources, settings: OversizedOrTinyBatches.Thresholds,
) -> Finding:  # fmt: skip
    """A finding about windows that have its subject in common."""
    row, first_us, last_us = group[0], group[0].first_us, max(r.last_us for r in group)
    one_partition = len({r.partition for r in group}) == 1
    return Finding(
        rule=rule, severity=severity, subject=subject, state=sources.state(row.cluster, first_us, last_us, times),
        cluster=row.cluster, topic=row.topic, partition=row.partition if one_partition else None, group_id=None,
        first_us=first_us, last_us=last_us, summary=summary, advice=advice,
        evidence=[r.evidence for r in group][: settings.max_evidence],
        details={**figures, "enough_us": first_us},
    )  # fmt: skip
