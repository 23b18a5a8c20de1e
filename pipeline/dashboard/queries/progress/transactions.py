"""Which transactions are open, how long, and whose readers do they hold back? ``silver.transactions`` and a view."""

from __future__ import annotations

from typing import Any

import duckdb

from pipeline.dashboard.queries.scope import Scope, as_of, ask_rows

MOST = 500

_NAMES = """
SELECT DISTINCT transactional_id FROM silver.transactions
WHERE transactional_id IS NOT NULL AND first_ts <= $end AND (end_ts IS NULL OR end_ts >= $start)
"""

_HELD = f"""
WITH held AS ({as_of("open_transactions")}),
producers AS (
  SELECT cluster, producer_id, arg_max(transactional_id, last_ts) AS transactional_id,
         arg_max(client_id, last_ts) AS client_id, arg_max(client, last_ts) AS client
  FROM silver.transactions
  WHERE first_ts <= $end
  GROUP BY cluster, producer_id
)
SELECT h.*, p.transactional_id, p.client_id, p.client,
       (epoch_us(h.last_seen) - epoch_us(h.since)) / 1e6 AS held_seconds
FROM held AS h LEFT JOIN producers AS p ON p.cluster = h.cluster AND p.producer_id = h.producer_id
WHERE $transactional_id IS NULL OR p.transactional_id = $transactional_id
ORDER BY h.records_held_back DESC, h.topic, h.partition
LIMIT $most
"""  # noqa: S608 - our own view

# A cluster of which nothing is seen any more shows nothing of how long its transactions stay open.
_OPEN = """
WITH clusters AS (
  SELECT cluster, max(ts) AS last_seen FROM gold.offset_timeline
  WHERE date BETWEEN $first_day AND $last_day AND ts BETWEEN $start AND $end
  GROUP BY cluster
)
SELECT t.transactional_id, t.producer_id, t.producer_epoch, t.client_id, t.client,
       CASE WHEN t.end_ts > $end THEN 'ongoing' ELSE t.state END AS state, t.partitions, t.groups,
       t.records, t.first_ts, t.last_ts, t.cluster, t.first_exchange_id,
       (epoch_us(least(greatest(t.last_ts, coalesce(c.last_seen, t.last_ts)), $end)) - epoch_us(t.first_ts)) / 1e6
         AS open_seconds
FROM silver.transactions AS t LEFT JOIN clusters AS c ON c.cluster = t.cluster
WHERE t.first_ts <= $end AND (t.end_ts > $end OR (t.end_ts IS NULL AND t.state <> 'unknown'))
  AND ($transactional_id IS NULL OR t.transactional_id = $transactional_id)
ORDER BY open_seconds DESC, t.transactional_id
LIMIT $most
"""

_ENDED = """
SELECT transactional_id, producer_id, producer_epoch, client_id, state, partitions, groups, records, first_ts, end_ts,
       duration_us / 1e6 AS seconds, cluster, first_exchange_id
FROM silver.transactions
WHERE date <= $last_day AND end_ts BETWEEN $start AND $end
  AND ($transactional_id IS NULL OR transactional_id = $transactional_id)
ORDER BY duration_us DESC NULLS LAST, first_ts
LIMIT $most
"""


def names(connection: duckdb.DuckDBPyConnection, scope: Scope) -> set[str]:
    """Transactional ids that had a transaction in the span, or may have had one open."""
    return {row["transactional_id"] for row in ask_rows(connection, _NAMES, scope)}


def held_partitions(
    connection: duckdb.DuckDBPyConnection, scope: Scope, transactional_id: str | None = None
) -> list[dict[str, Any]]:
    """Partitions whose last stable offset a transaction holds at the end of the span, with its producer.

    Args:
        connection: to the lake.
        scope: the span.
        transactional_id: of the only producer that matters; None: all.

    Raises:
        NotThereYetError: a table is missing.
    """
    return ask_rows(connection, _HELD, scope, most=MOST, transactional_id=transactional_id)


def open_transactions(
    connection: duckdb.DuckDBPyConnection, scope: Scope, transactional_id: str | None = None
) -> list[dict[str, Any]]:
    """Transactions that had not ended at the end of the span, the longest first.

    Those whose end was not seen (``unknown``) are none of them: most have long been followed by another one.
    ``open_seconds`` is from its first request to the last word of its cluster within the span.
    """
    return ask_rows(connection, _OPEN, scope, most=MOST, transactional_id=transactional_id)


def ended_transactions(
    connection: duckdb.DuckDBPyConnection, scope: Scope, transactional_id: str | None = None
) -> list[dict[str, Any]]:
    """Transactions that ended within the span, the longest first; ``seconds`` is how long they were open."""
    return ask_rows(connection, _ENDED, scope, most=MOST, transactional_id=transactional_id)
