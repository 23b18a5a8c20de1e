"""Where does each partition, and each group that reads it, stand over time? ``gold.offset_timeline`` from silver.

One row for each offset event, with everything that was known at that moment carried forward: the partition's log state
from all its events, the group's committed offset from the group's, the fetch position from the client's. Order is
(ts, exchange_id, kind, ordinal), so that the result does not depend on arrival. Log positions follow the last
statement, also downwards: a truncated log shows. A late answer to a producer sets no high watermark back.
"""

from __future__ import annotations

from datetime import timedelta

import pyarrow as pa

from pipeline.analysis.facts import Facts
from pipeline.analysis.fit import fit
from pipeline.analysis.groups import SETTLED, WITH_GROUP
from pipeline.analysis.hours import first_hour_sql
from pipeline.analysis.tables import Tables
from pipeline.analysis.timeline.carry import EVENT, MARKER, ORDER, PRODUCED, Pass
from pipeline.arrow import arrow_array
from pipeline.tables import OFFSET_TIMELINE

_LOG = "cluster, topic, incarnation, partition"
_STATEMENTS = f"""
    SELECT date, {_LOG}, group_id, ts, exchange_id, kind, ordinal AS event_ordinal, client_id, member_id, generation,
        error_name, "offset" AS event_offset, next_offset AS event_next_offset,
        coalesce(log_start_offset, CASE WHEN kind = 'listed' AND list_timestamp = -2 THEN "offset" END)
            AS log_start_offset,
        coalesce(last_stable_offset, CASE WHEN kind = 'listed' AND list_timestamp = -1
            AND isolation_level = 'read_committed' THEN "offset" END) AS last_stable_offset,
        coalesce(high_watermark, CASE WHEN kind = 'listed' AND list_timestamp = -1
            AND isolation_level = 'read_uncommitted' THEN "offset" END,
            CASE WHEN kind = 'produced' THEN next_offset END) AS high_watermark,
        CASE WHEN kind = 'produced' THEN next_offset END AS produced_offset,
        CASE WHEN kind IN ('committed', 'fetched_commit') AND coalesce(error_code, 0) = 0 THEN "offset" END
            AS committed_offset,
        CASE WHEN kind = 'txn_committed' THEN "offset" END AS pending_offset,
        CASE WHEN kind = 'fetched' AND isolation_level IS NOT NULL THEN coalesce(next_offset, "offset") END
            AS fetch_position,
        NULL::BIGINT AS "at", NULL::BIGINT AS until, NULL::BIGINT AS seen_hour, {EVENT} AS what
    FROM with_group
"""
"""Each event with the values that it states itself."""
_APPLIED = f"""
    SELECT make_timestamp(ended.us)::DATE AS date, {_LOG}, group_id,
        make_timestamp(ended.us)::TIMESTAMP AS naive_ts, ended.exchange_id AS exchange_id,
        CASE WHEN ended.commits THEN 'txn_applied' ELSE 'txn_discarded' END AS kind, event_ordinal, client_id,
        member_id, generation, error_name, "offset" AS event_offset,
        CASE WHEN ended.commits THEN "offset" END AS committed_offset, {EVENT} AS what
    FROM settled
"""
"""A row at the end of each transaction for each offset that it commits or drops."""
_INPUTS = f"""
    WITH {WITH_GROUP}, {SETTLED}, stated AS (
        SELECT * REPLACE (epoch_us(ts) AS ts) FROM ({_STATEMENTS})
        UNION ALL BY NAME
        SELECT * EXCLUDE (naive_ts), epoch_us(naive_ts) AS ts FROM ({_APPLIED})
    ), lowest AS (
        SELECT {_LOG}, min(committed_offset) AS lowest FROM stated GROUP BY ALL
    ), produced AS (
        SELECT {_LOG}, epoch_us(ts) AS ts, exchange_id, "offset" AS "at", next_offset AS until, {PRODUCED} AS what
        FROM events JOIN lowest USING ({_LOG})
        WHERE kind = 'produced' AND "offset" IS NOT NULL AND next_offset IS NOT NULL AND next_offset > lowest
    ), markers AS (
        SELECT {_LOG}, base_offset AS "at", {first_hour_sql("epoch_us(ts)")} AS seen_hour, min(epoch_us(ts)) AS ts,
            {MARKER} AS what
        FROM batches JOIN lowest USING ({_LOG})
        WHERE is_control AND source = 'fetch' AND base_offset IS NOT NULL AND base_offset >= lowest
        GROUP BY {_LOG}, base_offset, seen_hour
    )
    SELECT * FROM stated UNION ALL BY NAME SELECT * FROM produced UNION ALL BY NAME SELECT * FROM markers
    ORDER BY {", ".join(f'"{name}"' for name in ORDER)}
"""


def timeline(events: pa.Table, states: pa.Table, batches: pa.Table, facts: Facts, lookback: timedelta) -> pa.Table:
    """Rows of ``gold.offset_timeline``.

    Args:
        events, states, batches: rows of ``silver.offset_events``, ``state_events`` and ``record_batches``; of a
            connection that two agents saw, one copy.
        facts: clusters and topic names.
        lookback: records produced, and markers seen, earlier than this are not looked up.
    """
    tables = Tables({"all_events": events, "states": states, "all_batches": batches, "renewed": _renewed(facts)})
    try:
        for name, rows in (("events", "all_events"), ("batches", "all_batches")):
            tables.view(name, _with_incarnation(rows))
        inputs = tables.table(_INPUTS)
    finally:
        tables.close()
    inputs = inputs.set_column(
        inputs.schema.get_field_index("ts"), "ts", inputs.column("ts").cast(pa.timestamp("us", "UTC"))
    )
    pass_ = Pass(lookback)
    found = [pass_.timeline(batch) for batch in inputs.combine_chunks().to_batches(50_000)]
    return fit(pa.Table.from_batches(found) if found else pa.table({}), OFFSET_TIMELINE)


def _renewed(facts: Facts) -> pa.Table:
    columns = ("cluster", "name", "id", "number", "from_us", "until_us")
    types = (pa.string(), pa.string(), pa.string(), pa.int32(), pa.int64(), pa.int64())
    rows = facts.renewed_topics()
    return pa.table(
        {
            name: arrow_array([row[n] for row in rows], kind)
            for n, (name, kind) in enumerate(zip(columns, types, strict=True))
        }
    )


def _with_incarnation(rows: str) -> str:
    """Rows named, with ``incarnation``: which topic of this name it is, by the id if there is one, else by the time."""
    return f"""
        WITH named AS (SELECT * REPLACE (coalesce(topic, topic_id) AS topic) FROM {rows})
        SELECT named.*, coalesce(renewed.number, 0) AS incarnation FROM named LEFT JOIN renewed
            ON named.cluster = renewed.cluster AND named.topic = renewed.name AND (
                named.topic_id = renewed.id
                OR (named.topic_id IS NULL AND epoch_us(named.ts) >= renewed.from_us
                    AND epoch_us(named.ts) < renewed.until_us)
            )
    """
