"""What became of each transaction: statements of silver → ``silver.transactions``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta
from itertools import groupby
from operator import attrgetter
from typing import Any

import pyarrow as pa

from decoder.kafka.extractors.transactions import FINAL, Transaction, TxnEvent, follow
from pipeline.analysis.fit import fit, schema_of, table_of
from pipeline.analysis.hours import DAY_US, span_us
from pipeline.analysis.safety.guard import contain
from pipeline.analysis.tables import IS_LOSS, Tables
from pipeline.tables import TRANSACTIONS

Values = tuple[Any, ...]
OUTPUT = (
    "cluster", "transactional_id", "producer_id", "producer_epoch", "first_exchange_id", "client_id", "client", "state",
    "partitions", "marked_partitions", "groups", "records", "first_us", "end_us", "last_us", "duration_us",
    "end_exchange_id", "complete",
)  # fmt: skip
"""Of what :func:`follow_producer` gives."""
ORDER_WITHIN = {
    "init": 0,
    "add_partition": 1,
    "add_group": 1,
    "produced": 2,
    "end": 3,
    "marker": 4,
    "control": 4,
    "loss": 5,
}
"""Of the events of one exchange."""


def follow_producer(cluster: str, rows: Iterable[Values], patience_us: int) -> Iterator[Values]:
    """The transactions of one producer of a cluster.

    Args:
        cluster: where.
        rows: cluster, transactional id, and the values of a TxnEvent, in order of time; of one exchange by
            ``ORDER_WITHIN``. In place of a partition come all of an event, ascending, or None.
        patience_us: if nothing is seen of a transaction for so long, it stays as it is.
    """
    ids: list[str] = []
    found = follow(_noting_ids(iter(rows), ids), patience_us)
    name = ids[0] if ids else ""  # markers name none
    return (_values((cluster, name), transaction) for transaction in found)


def _noting_ids(rows: Iterator[Values], ids: list[str]) -> Iterator[TxnEvent]:
    for row in rows:
        if row[1] is not None and not ids:
            ids.append(row[1])
        event = TxnEvent._make(row[2:])
        partitions = row[_PARTITIONS]
        if partitions is None:
            yield event
        for partition in partitions or ():
            yield event._replace(partition=partition)


def _values(ids: tuple[str, str], t: Transaction) -> Values:
    duration = None if t.end_us is None else max(0, t.end_us - t.first_us)
    return (
        *ids, t.producer_id, t.producer_epoch, t.first_exchange_id, t.client_id, t.client, t.state,
        sorted(t.offsets), sorted(t.marked), sorted(t.groups), t.records, t.first_us, t.end_us, t.last_us, duration,
        t.end_exchange_id, not t.lost,
    )  # fmt: skip


_STARTS = f"""
    starts AS (
        SELECT cluster, producer_id, min(epoch_us(first_ts)) AS began_us FROM held
        WHERE epoch_us(last_ts) >= $since_us - $patience_us
            AND (NOT list_contains({sorted(FINAL)}, state) OR epoch_us(last_ts) >= $since_us)
        GROUP BY cluster, producer_id
    )
"""
"""From when on a producer is followed again: where a transaction was under way, from its beginning."""
# Of the losses behind a statement the first says what there is to say: what was open then is not whole.
_PLACE = "concat_ws('-', coalesce(topic, topic_id), partition)"
_SELECTED = {"ts_us": "epoch_us(ts) AS ts_us", "partition": "partitions"}
_PARTITIONS = 2 + TxnEvent._fields.index("partition")
_COMMON = "ts, exchange_id, cluster, producer_id, producer_epoch"
_EVENTS = f"""
    WITH {_STARTS}, asked AS (
        SELECT {_COMMON}, client, client_id, connection_id, transactional_id, group_id, committed, error_code,
            substr(kind, 5) AS kind, list({_PLACE} ORDER BY {_PLACE}) FILTER (partition IS NOT NULL) AS partitions
        FROM states WHERE starts_with(kind, 'txn_') GROUP BY ALL
    ), written AS (
        SELECT {_COMMON}, client, client_id, transactional_id, error_code, records, [{_PLACE}] AS partitions,
            'produced' AS kind, next_offset - 1 AS "offset"
        FROM events WHERE transactional_id IS NOT NULL AND kind = 'produced' AND "offset" IS NOT NULL
    ), commits AS (
        SELECT {_COMMON}, client, client_id, transactional_id, group_id, error_code, 'add_group' AS kind
        FROM events WHERE transactional_id IS NOT NULL AND kind = 'txn_committed'
    ), controls AS (
        SELECT {_COMMON}, [{_PLACE}] AS partitions, 'control' AS kind, base_offset AS "offset",
            control_type = 'COMMIT' AS committed, 0 AS error_code
        FROM batches WHERE is_control AND control_type IN ('COMMIT', 'ABORT')
    ), known AS (
        SELECT * FROM (
            SELECT * FROM asked UNION ALL BY NAME SELECT * FROM written UNION ALL BY NAME SELECT * FROM commits
            UNION ALL BY NAME SELECT * FROM controls
        ) WHERE producer_id IS NOT NULL AND producer_epoch IS NOT NULL
    ), losses AS (
        SELECT DISTINCT used.cluster, used.producer_id, used.connection_id, gaps.ts,
            '' AS exchange_id, 'loss' AS kind, 0 AS producer_epoch, 0 AS error_code
        FROM known AS used ASOF JOIN (FROM gaps WHERE {IS_LOSS}) AS gaps
            ON used.connection_id = gaps.connection_id AND used.ts < gaps.ts
    ), with_losses AS (
        SELECT * FROM known UNION ALL BY NAME SELECT * FROM losses
    )
    SELECT cluster, transactional_id, {", ".join(_SELECTED.get(name, f'"{name}"') for name in TxnEvent._fields)}
    FROM with_losses LEFT JOIN starts USING (cluster, producer_id)
    WHERE epoch_us(ts) >= coalesce(began_us, $since_us)
    ORDER BY cluster, producer_id, ts_us, exchange_id,
        CASE kind {" ".join(f"WHEN '{kind}' THEN {place}" for kind, place in ORDER_WITHIN.items())} END,
        coalesce(partitions[1], ''), coalesce("offset", 0), error_code, committed
"""


_KEPT = f"""
    WITH {_STARTS}
    SELECT held.* FROM held LEFT JOIN starts USING (cluster, producer_id)
    WHERE epoch_us(first_ts) < coalesce(began_us, $since_us)
"""


def transactions(
    events: pa.Table,
    states: pa.Table,
    batches: pa.Table,
    gaps: pa.Table,
    patience: timedelta,
    held: pa.Table | None = None,
    since_us: int = 0,
) -> pa.Table:
    """Rows of ``silver.transactions``.

    Every producer is followed again from ``since_us`` or, where a transaction was under way then, from its beginning:
    what was over before stays as it is.

    Args:
        events, states, batches: rows of ``silver.offset_events``, ``state_events`` and ``record_batches``; of a
            connection that two agents saw, one copy.
        gaps: rows of ``bronze.gaps``.
        patience: see StreamSettings.lag_lookback; if nothing is seen of a transaction for so long, it stays as it is.
        held: what the table held of the days of all these.
        since_us: time of the first news, µs since the epoch.
    """
    before = schema_of(TRANSACTIONS).empty_table() if held is None else held
    tables = Tables({"events": events, "states": states, "batches": batches, "gaps": gaps, "held": before})
    times = {"since_us": since_us, "patience_us": span_us(patience)}
    found = []
    try:
        kept = fit(tables.table(_KEPT, **times), TRANSACTIONS)
        rows = tables.each(_EVENTS, **times)
        for (cluster, producer_id), of_producer in groupby(rows, key=attrgetter("cluster", "producer_id")):
            try:
                found += _rows(follow_producer(cluster, of_producer, span_us(patience)))
            except Exception as error:
                contain(error, f"table {TRANSACTIONS.full_name}", f"producer id {producer_id}")
    finally:
        tables.close()
    return pa.concat_tables([table_of(found, TRANSACTIONS), kept])


def _rows(of_producer: Iterable[Values]) -> list[dict[str, Any]]:
    found = []
    for values in of_producer:
        row = dict(zip(OUTPUT, values, strict=True))
        ends = {"first_ts": row["first_us"], "end_ts": row["end_us"], "last_ts": row["last_us"]}
        found.append({**row, **ends, "date": row["first_us"] // DAY_US})
    return found


def begun(held: pa.Table, since_us: int, patience: timedelta) -> pa.Table:
    """From when on producers are followed again, if that is before ``since_us``: a row with ``us``, or none.

    Args:
        held: rows of ``silver.transactions``, those at least that were seen from ``patience`` before on.
        since_us: time of the first news, µs since the epoch.
        patience: see StreamSettings.lag_lookback.
    """
    tables = Tables({"held": held})
    try:
        found = tables.table(
            f"WITH {_STARTS} SELECT min(began_us) AS us FROM starts HAVING min(began_us) < $since_us",
            since_us=since_us, patience_us=span_us(patience),
        )  # fmt: skip
    finally:
        tables.close()
    return found
