"""Where each partition, and each group that reads it, is over time: ``gold.offset_timeline`` from silver.

One row for each offset event, with everything that was known at that moment carried forward: the partition's log state
from all its events, the group's committed offset from the group's, the fetch position from the client's. A last stable
offset is carried with the high watermark and the time of the response that stated it. Order is
(ts, exchange_id, kind, ordinal), so that the result does not depend on arrival. Log positions follow the last
statement, also downwards: a truncated log shows. A late answer to a producer sets no high watermark back.
"""

from __future__ import annotations

from datetime import timedelta

import pyarrow as pa

from decoder.columns import Ints
from pipeline.analysis.cluster_catalog import ClusterCatalog
from pipeline.analysis.columns.compiled import pays
from pipeline.analysis.columns.nullable import Numbers
from pipeline.analysis.columns.numbering import order_of
from pipeline.analysis.fit import fit, schema_of
from pipeline.analysis.hours import DAY_US, first_hour_sql
from pipeline.analysis.safety.guard import contain
from pipeline.analysis.tables import Tables
from pipeline.analysis.timeline.carry import EVENT, KNOWN, MARKER, ORDER, PRODUCED, Pass
from pipeline.analysis.timeline.groups import SETTLED, WITH_GROUP
from pipeline.lake.arrow import arrow_array, arrow_type
from pipeline.tables import (
    DERIVED_DAYS,
    OFFSET_EVENTS,
    OFFSET_SNAPSHOTS,
    OFFSET_STATE,
    OFFSET_TIMELINE,
    Column,
)

KERNEL_AFTER = 2_000
"""Rows from which on loading the compiled pass pays."""
COMPILING_AFTER = 20_000
"""Rows from which on compiling it pays."""
_KERNEL = ("pipeline.analysis.timeline", "carry_kernel.carry")
_LOG = "cluster, topic, incarnation, partition"
_TYPES = {column.name: column.type for column in (*OFFSET_EVENTS.columns, *OFFSET_TIMELINE.columns)}
_TYPES |= {"incarnation": "int", "event_ordinal": "int"}
_OF_ENDED = (
    "date", "cluster", "topic", "incarnation", "partition", "group_id", "ts", "exchange_id", "kind", "event_ordinal",
    "client_id", "member_id", "generation", "error_name", "event_offset", "committed_offset",
)  # fmt: skip
ENDED = tuple(Column(name, _TYPES[name], "") for name in _OF_ENDED)
"""What :func:`ended` gives."""
_STABLE = """
    coalesce(last_stable_offset, CASE WHEN kind = 'listed' AND list_timestamp = -1
        AND isolation_level = 'read_committed' THEN "offset" END)
"""
_COMMITTED = """
    CASE WHEN kind IN ('committed', 'fetched_commit') AND coalesce(error_code, 0) = 0 THEN "offset" END
"""
_STATEMENTS = f"""
    SELECT date, {_LOG}, group_id, ts, exchange_id, kind, ordinal AS event_ordinal, client_id, member_id, generation,
        error_name, "offset" AS event_offset, next_offset AS event_next_offset,
        coalesce(log_start_offset, CASE WHEN kind = 'listed' AND list_timestamp = -2 THEN "offset" END)
            AS log_start_offset,
        {_STABLE} AS last_stable_offset,
        CASE WHEN last_stable_offset IS NOT NULL THEN high_watermark END AS last_stable_high_watermark,
        CASE WHEN {_STABLE} IS NOT NULL THEN epoch_us(ts) END AS last_stable_ts,
        coalesce(high_watermark, CASE WHEN kind = 'listed' AND list_timestamp = -1
            AND isolation_level = 'read_uncommitted' THEN "offset" END,
            CASE WHEN kind = 'produced' THEN next_offset END) AS high_watermark,
        CASE WHEN kind = 'produced' THEN next_offset END AS produced_offset,
        {_COMMITTED} AS committed_offset,
        CASE WHEN kind = 'txn_committed' THEN "offset" END AS pending_offset,
        CASE WHEN kind = 'fetched' AND isolation_level IS NOT NULL THEN coalesce(next_offset, "offset") END
            AS fetch_position,
        isolation_level, NULL::BIGINT AS "at", NULL::BIGINT AS until, NULL::BIGINT AS seen_hour, {EVENT} AS what
    FROM with_group
"""
"""Each event with the values that it states itself."""
_ENDED = f"""
    WITH {SETTLED}
    SELECT make_timestamp(ended.us)::DATE AS date, {_LOG}, group_id,
        make_timestamp(ended.us)::TIMESTAMP AS ts, ended.exchange_id AS exchange_id,
        CASE WHEN ended.commits THEN 'txn_applied' ELSE 'txn_discarded' END AS kind, event_ordinal, client_id,
        member_id, generation, error_name, "offset" AS event_offset,
        CASE WHEN ended.commits THEN "offset" END AS committed_offset
    FROM settled WHERE ended.us >= $since_us AND ended.us < $until_us
"""
_INPUTS = f"""
    WITH {WITH_GROUP}, stated AS (
        SELECT * REPLACE (epoch_us(ts) AS ts) FROM ({_STATEMENTS})
        UNION ALL BY NAME
        SELECT * REPLACE (epoch_us(ts) AS ts), {EVENT} AS what FROM ended
        UNION ALL BY NAME
        SELECT {_LOG}, group_id, client_id, epoch_us(ts) AS ts, exchange_id, kind, {", ".join(OFFSET_STATE)},
            {KNOWN} AS what
        FROM (SELECT * REPLACE (epoch_us(last_stable_ts) AS last_stable_ts) FROM known)
    ), commits AS (
        SELECT {_LOG}, {_COMMITTED} AS committed_offset FROM recent
        UNION ALL BY NAME SELECT {_LOG}, committed_offset FROM ended
        UNION ALL BY NAME SELECT {_LOG}, committed_offset FROM known
    ), lowest AS (
        SELECT {_LOG}, min(committed_offset) AS lowest FROM commits WHERE committed_offset IS NOT NULL GROUP BY ALL
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
"""
"""Of what was produced, and of markers, lag looks up nothing below the lowest commit: a group that gets on is near
the end of the log."""


_FOR_EVER = 2**62
_FIRST = ORDER.index("exchange_id")
"""Columns of ``ORDER`` that distinguish most rows."""


def ended(
    events: pa.Table, states: pa.Table, catalog: ClusterCatalog, since_us: int = 0, until_us: int = _FOR_EVER
) -> pa.Table:
    """At the end of each transaction a row, of the columns ``ENDED``, for each offset that it commits or drops.

    Args:
        events, states: rows of ``silver.offset_events`` and ``state_events``; of a connection that two agents saw, one
            copy. Of both all that name the same transactional id of a cluster.
        catalog: clusters and topic names.
        since_us, until_us: of transactions that ended in between, µs since the epoch; the second is exclusive.
    """
    renewed = _renewed(catalog)
    tables = Tables({"all_events": events, "states": states, "renewed": renewed})
    try:
        tables.view("events", _with_incarnation("all_events", renewed))
        return _fitted(tables.table(_ENDED, since_us=since_us, until_us=until_us))
    finally:
        tables.close()


def _fitted(rows: pa.Table) -> pa.Table:
    schema = pa.schema([pa.field(column.name, arrow_type(column.type)) for column in ENDED])
    return pa.Table.from_arrays([rows.column(field.name).cast(field.type) for field in schema], schema=schema)


def timeline(
    events: pa.Table,
    states: pa.Table,
    batches: pa.Table,
    catalog: ClusterCatalog,
    lookback: timedelta,
    *,
    since_us: int = 0,
    until_us: int = _FOR_EVER,
    known: pa.Table | None = None,
    of_transactions: pa.Table | None = None,
) -> pa.Table:
    """Rows of ``gold.offset_timeline``.

    Args:
        events, states, batches: rows of ``silver.offset_events``, ``state_events`` and ``record_batches``; of a
            connection that two agents saw, one copy.
        catalog: clusters and topic names.
        lookback: records produced, and markers seen, earlier than this are not looked up.
        since_us, until_us: rows are made of the hours in between, µs since the epoch; the second is exclusive. What
            events and batches state of the log before them, as far as ``lookback`` goes, is looked up.
        known: what was known when that hour began: rows of ``gold.offset_snapshots``.
        of_transactions: what :func:`ended` gives; None: of these events and states.
    """
    if of_transactions is None:
        of_transactions = ended(events, states, catalog, since_us, until_us)
    before = schema_of(OFFSET_SNAPSHOTS).empty_table() if known is None else known
    renewed = _renewed(catalog)
    tables = Tables(
        {
            "all_events": events, "states": states, "all_batches": batches, "renewed": renewed,
            "ended": of_transactions, "known": before,
        }
    )  # fmt: skip
    try:
        for name, rows in (("events", "all_events"), ("batches", "all_batches")):
            tables.view(name, _with_incarnation(rows, renewed))
        tables.view(
            "recent",
            f"SELECT * FROM events WHERE epoch_us(ts) >= {int(since_us)} AND epoch_us(ts) < {int(until_us)}",
        )
        inputs = tables.table(_INPUTS).combine_chunks()
    finally:
        tables.close()
    inputs = inputs.set_column(
        inputs.schema.get_field_index("ts"), "ts", inputs.column("ts").cast(pa.timestamp("us", "UTC"))
    )
    found = passed(inputs, order_of(inputs, ORDER[:_FIRST], ORDER[_FIRST:]), lookback)
    return fit(pa.Table.from_batches(found) if found else pa.table({}), OFFSET_TIMELINE)


def passed(inputs: pa.Table, order: Ints, lookback: timedelta) -> list[pa.RecordBatch]:
    """The events among rows, completed (:mod:`pipeline.analysis.timeline.carry`): by compiled code where that pays.

    Args:
        inputs: rows in any order.
        order: their places in the order of ``ORDER``.
        lookback: records produced, and markers seen, earlier than this are not looked up.
    """
    if pays(inputs.num_rows, after=KERNEL_AFTER, compiling_after=COMPILING_AFTER, kernel=_KERNEL):
        from pipeline.analysis.timeline import carry_columns  # noqa: PLC0415 - loads compiled code

        try:
            return list(carry_columns.timelines(inputs, order, lookback))
        except Exception as error:
            contain(error, f"table {OFFSET_TIMELINE.full_name}")
    pass_ = Pass(lookback)
    in_order = inputs.take(Numbers.all_known(order).arrow(pa.int64()))
    return [pass_.timeline(batch) for batch in in_order.combine_chunks().to_batches(50_000)]


_LAST = f"""
    WITH rows AS (
        SELECT {_LOG}, group_id, client_id, ts, exchange_id, kind, ordinal, {", ".join(OFFSET_STATE)} FROM since_last
        UNION ALL BY NAME
        SELECT {_LOG}, group_id, client_id, ts, exchange_id, kind, {", ".join(OFFSET_STATE)} FROM noted
    )
    SELECT * REPLACE (coalesce(incarnation, 0) AS incarnation), make_timestamp($hour_us) AS hour,
        make_timestamp($hour_us)::DATE AS date
    FROM rows WHERE epoch_us(ts) >= $oldest_us
    QUALIFY row_number() OVER (
        PARTITION BY cluster, topic, coalesce(incarnation, 0), partition, group_id, client_id
        ORDER BY ts DESC, exchange_id DESC, ordinal DESC
    ) = 1
"""


def last_known(since_last: pa.Table, noted: pa.Table, hour_us: int) -> pa.Table:
    """Rows of ``gold.offset_snapshots``: what is known when an hour begins (µs since the epoch).

    The last row of each client in each group of each partition; together they hold all that was known: every row has
    the state of its moment carried forward, so that the latest of these holds the partition's state, and the latest of
    a group the group's. What was not seen for ``DERIVED_DAYS`` is forgotten.

    Args:
        since_last: rows of ``gold.offset_timeline`` before that hour, and not before that of ``noted``.
        noted: rows of ``gold.offset_snapshots`` of an hour before.
        hour_us: the hour.
    """
    tables = Tables({"since_last": since_last, "noted": noted})
    try:
        found = tables.table(_LAST, hour_us=hour_us, oldest_us=hour_us - DERIVED_DAYS * DAY_US)
    finally:
        tables.close()
    return fit(found, OFFSET_SNAPSHOTS)


def _renewed(catalog: ClusterCatalog) -> pa.Table:
    columns = ("cluster", "name", "id", "number", "from_us", "until_us")
    types = (pa.string(), pa.string(), pa.string(), pa.int32(), pa.int64(), pa.int64())
    rows = catalog.renewed_topics
    return pa.table(
        {
            name: arrow_array([row[n] for row in rows], kind)
            for n, (name, kind) in enumerate(zip(columns, types, strict=True))
        }
    )


def _with_incarnation(rows: str, renewed: pa.Table) -> str:
    """Rows named, with ``incarnation``: which topic of this name it is, by the id if there is one, else by the time."""
    if not renewed.num_rows:
        return f"SELECT * REPLACE (coalesce(topic, topic_id) AS topic), 0::INTEGER AS incarnation FROM {rows}"
    return f"""
        WITH named AS (
            SELECT * REPLACE (coalesce(topic, topic_id) AS topic),
                CASE WHEN topic_id IS NULL THEN epoch_us(ts) END AS us
            FROM {rows}
        ), spans AS (SELECT * FROM renewed WHERE from_us < until_us)
        SELECT named.* EXCLUDE (us), coalesce(renewed.number, spans.number, 0) AS incarnation
        FROM named LEFT JOIN renewed
                ON named.cluster = renewed.cluster AND named.topic = renewed.name AND named.topic_id = renewed.id
            ASOF LEFT JOIN spans
                ON named.cluster = spans.cluster AND named.topic = spans.name AND named.us >= spans.from_us
    """
