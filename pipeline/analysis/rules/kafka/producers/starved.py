"""Consumers that read only what is committed and are at a last stable offset. For :mod:`lso_stalled`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pipeline.analysis.rules.kafka.records_behind import Behind, offsets_or_records
from pipeline.analysis.rules.model import NAMELESS
from pipeline.analysis.tables import Row, Tables

if TYPE_CHECKING:
    from pipeline.analysis.rules.kafka.producers.read_committed_starved import ReadCommittedStarved


def starved_readers(tables: Tables, settings: ReadCommittedStarved.Thresholds) -> dict[int, list[Row]]:
    """By number in ``stalls`` the read_committed consumers that are at its LSO during the stall.

    Of a fetch session (KIP-227) neither each request nor each answer names the partition: where it is is carried,
    and each fetch of the session counts.
    """
    rows = tables.rows(
        """
        WITH placed AS (
            SELECT number, exchange_id, ts, server, client, client_id, session_id, first_us, last_us, lso,
                last_value(coalesce(next_offset, "offset") IGNORE NULLS) OVER (
                    PARTITION BY number, server, client, session_id ORDER BY ts, exchange_id, ordinal
                    ROWS UNBOUNDED PRECEDING
                ) AS position
            FROM events JOIN stalls USING (cluster, topic, partition)
            WHERE kind = 'fetched' AND isolation_level = 'read_committed' AND epoch_us(ts) <= last_us
        ), standing AS (
            SELECT * FROM placed WHERE position >= lso
        ), sessions AS (
            SELECT number, first_us, last_us, server, client, client_id, session_id, min(ts) AS since FROM standing
            WHERE coalesce(session_id, 0) <> 0 GROUP BY ALL
        ), fetches AS (
            SELECT number, exchange_id, ts, client, client_id FROM standing WHERE epoch_us(ts) >= first_us
            UNION
            SELECT number, states.exchange_id, states.ts, client, sessions.client_id
            FROM states JOIN sessions USING (server, client, session_id) JOIN stalls USING (number)
            WHERE states.kind = 'fetch_session' AND states.cluster = stalls.cluster AND states.session_epoch >= 0
                AND states.ts >= since
                AND epoch_us(states.ts) BETWEEN sessions.first_us AND sessions.last_us
        ), groups AS (
            SELECT number, client, max(timeline.group_id) AS reader_group
            FROM timeline JOIN stalls USING (cluster, topic, partition) JOIN standing USING (number, exchange_id)
            WHERE timeline.kind = 'fetched' AND timeline.group_id <> ''
            GROUP BY ALL
        )
        SELECT number, client_id, host_of(client) AS host, reader_group, count(*) AS fetches,
            max(exchange_id) AS exchange_id, min(epoch_us(ts)) AS first_us, max(epoch_us(ts)) AS last_us,
            list(epoch_us(ts) ORDER BY ts)[$enough] AS enough_us
        FROM fetches LEFT JOIN groups USING (number, client)
        GROUP BY ALL ORDER BY number, client_id, host, reader_group
        """,
        enough=settings.starved_fetches,
    )
    found: defaultdict[int, list[Row]] = defaultdict(list)
    for row in rows:
        found[row.number].append(row)
    return found


def readers(starved: Sequence[Row], withheld: Behind) -> str:
    """Who reads only what is committed, and how much they miss."""
    if not starved:
        return ""
    groups = {(r.client_id or NAMELESS, r.reader_group) for r in starved}
    names = sorted(f"{client} (group {group})" if group else client for client, group in groups)
    read, miss = ("reads", "misses") if len(names) == 1 else ("read", "miss")
    return f"{', '.join(names)} {read} only committed records and {miss} {offsets_or_records(withheld)}"
