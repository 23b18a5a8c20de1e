"""Open transactions, their age, and whose readers they hold back: ``silver.transactions`` and a view."""

from __future__ import annotations

from typing import Any

import duckdb

from pipeline.analysis.rules.kafka.listening import DEAF_US
from pipeline.dashboard.queries.scope import IN_SPAN, Scope, as_of, ask_rows, rows_if_there

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

# Where nothing is seen of a cluster for long, it is unknown how long its transactions stay open, as the rule has it.
_OPEN = f"""
WITH minutes AS (
  SELECT cluster, min(ts) AS first_ts, max(ts) AS last_ts FROM gold.offset_timeline
  WHERE {IN_SPAN} GROUP BY cluster, date_trunc('minute', ts)
),
seen AS (
  SELECT cluster, last_ts, lead(first_ts) OVER (PARTITION BY cluster ORDER BY first_ts) AS next_ts FROM minutes
),
known AS (
  SELECT t.transactional_id, t.producer_id, t.producer_epoch, t.client_id, t.client,
         CASE WHEN t.end_ts > $end THEN 'ongoing' ELSE t.state END AS state, t.partitions, t.groups,
         t.records, t.first_ts, t.last_ts, t.cluster, t.first_exchange_id,
         (SELECT coalesce(
            min(greatest(h.last_ts, t.last_ts)) FILTER (
              epoch_us(h.next_ts) - epoch_us(greatest(h.last_ts, t.last_ts)) > {DEAF_US}
            ), max(greatest(h.last_ts, t.last_ts)), t.last_ts)
          FROM seen AS h WHERE h.cluster = t.cluster) AS seen_until
  FROM silver.transactions AS t
  WHERE t.first_ts <= $end AND (t.end_ts > $end OR (t.end_ts IS NULL AND t.state <> 'unknown'))
    AND ($transactional_id IS NULL OR t.transactional_id = $transactional_id)
)
SELECT * EXCLUDE (seen_until), least(coalesce(seen_until, last_ts), $end) AS known_until FROM known
"""  # noqa: S608 - our own text
_JUDGED = """
SELECT cluster, subject, first_ts, last_ts, state FROM gold.findings
WHERE rule = 'hanging_transaction' AND coalesce(state, 'ongoing') <> 'resolved' AND last_ts <= $end
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
    ``open_seconds`` is from its first request to ``known_until``: what the rule says that judges it, else the last time
    in the span that its cluster was seen without a break. Its ``state`` is ``unknown`` where that is no more known.
    """
    rows = ask_rows(connection, _OPEN, scope, transactional_id=transactional_id)
    judged = {
        (row["cluster"], row["subject"], row["first_ts"]): row for row in rows_if_there(connection, _JUDGED, scope)
    }
    found = [_aged(row, judged.get((row["cluster"], row["transactional_id"], row["first_ts"]))) for row in rows]
    return sorted(found, key=lambda row: (-row["open_seconds"], row["transactional_id"] or ""))[:MOST]


def _aged(row: dict[str, Any], judged: dict[str, Any] | None) -> dict[str, Any]:
    """A transaction with how long it is known to be open: of one that a rule has judged as its finding says."""
    until = judged["last_ts"] if judged else row["known_until"]
    state = "unknown" if judged and judged["state"] == "unknown" else row["state"]
    return {**row, "known_until": until, "state": state, "open_seconds": (until - row["first_ts"]).total_seconds()}


def ended_transactions(
    connection: duckdb.DuckDBPyConnection, scope: Scope, transactional_id: str | None = None
) -> list[dict[str, Any]]:
    """Transactions that ended within the span, the longest first; ``seconds`` is how long they were open."""
    return ask_rows(connection, _ENDED, scope, most=MOST, transactional_id=transactional_id)
