"""The group of an event, and when a commit inside a transaction counts: from other exchanges."""

from __future__ import annotations

from decoder.kafka.extractors.state import GROUP_KINDS
from pipeline.analysis.hours import GROUP_KNOWN_US, HOUR_US, first_hour_sql, hour_sql

_HOST = "host_of(client)"
_GROUP_KINDS = sorted(GROUP_KINDS)

WITH_GROUP = f"""
    naming AS (
        SELECT DISTINCT server, client, client_id, group_id AS named, {first_hour_sql("epoch_us(ts)")} AS first,
            {hour_sql("epoch_us(ts)")} AS own
        FROM states WHERE list_contains({_GROUP_KINDS}, kind) AND group_id <> ''
    ), seen AS (
        SELECT server, client, client_id, {_HOST} AS client_ip, named,
            unnest(range(first, own + {GROUP_KNOWN_US} + 1, {HOUR_US})) AS hour
        FROM naming
    ), by_connection AS (
        SELECT hour, server, client, min(named) AS connection_group FROM seen
        GROUP BY hour, server, client HAVING count(DISTINCT named) = 1
    ), by_client AS (
        SELECT hour, client_ip, client_id, min(named) AS client_group FROM seen WHERE client_id IS NOT NULL
        GROUP BY hour, client_ip, client_id HAVING count(DISTINCT named) = 1
    ), placed AS (
        SELECT *, {hour_sql("epoch_us(ts)")} AS hour, {_HOST} AS client_ip FROM recent
    ), with_group AS (
        SELECT placed.* REPLACE (coalesce(
            group_id,
            CASE WHEN kind IN ('fetched', 'fetch_rejected', 'fetch_forgotten') AND isolation_level IS NOT NULL
                THEN coalesce(connection_group, client_group) END,
            ''
        ) AS group_id)
        FROM placed LEFT JOIN by_connection USING (hour, server, client)
            LEFT JOIN by_client USING (hour, client_ip, client_id)
    )
"""
"""``recent`` events with ``group_id``: a Fetch names no group, so its client's other requests decide, if they agree.

A request counts for its hour and the next ones, up to ``GROUP_KNOWN_US``. First those of the same connection, then
those of the same host and client_id (clients keep a connection of its own to the group's coordinator). Where they name
several groups, or none, the group stays empty.
"""

SETTLED = """
    ends AS (
        SELECT cluster, ts, exchange_id, transactional_id,
            {'us': epoch_us(ts), 'exchange_id': exchange_id,
             'commits': coalesce(kind = 'txn_end' AND committed, false)} AS ended
        FROM states WHERE kind IN ('txn_end', 'txn_init') AND error_code = 0
    ), commits_and_ends AS (
        SELECT *, ordinal AS event_ordinal, NULL AS ended FROM events WHERE kind = 'txn_committed'
        UNION ALL BY NAME
        SELECT cluster, ts, exchange_id, transactional_id, ended FROM ends
    ), closed AS (
        SELECT * REPLACE (last_value(ended IGNORE NULLS) OVER (
            PARTITION BY cluster, transactional_id
            ORDER BY ts DESC, exchange_id DESC, event_ordinal DESC ROWS UNBOUNDED PRECEDING
        ) AS ended) FROM commits_and_ends
    ), settled AS (
        SELECT * FROM closed WHERE kind IS NOT NULL AND ended IS NOT NULL
        QUALIFY row_number() OVER (
            PARTITION BY cluster, transactional_id, ended, group_id, topic, incarnation, partition
            ORDER BY ts DESC, exchange_id DESC, event_ordinal DESC
        ) = 1
    )
"""
"""Offsets committed by TxnOffsetCommit, at the time of the EndTxn that ends their transaction (KIP-98).

An InitProducerId ends it as well: whoever starts over aborts what an earlier process has left open. Of each
transaction, group and partition the last counts; ``ended`` holds when and by which exchange, and whether it commits.
"""
