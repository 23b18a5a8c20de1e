"""Who holds a transaction open at a last stable offset, for all stalls at once. For :mod:`lso_stalled`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from pipeline.analysis.rules.kafka.records_behind import Behind
from pipeline.analysis.tables import Row, Tables


@dataclass(frozen=True, slots=True)
class Producer:
    """Who holds the transaction open, as far as the wire shows."""

    producer_id: int
    epoch: int
    first_offset: int
    since_us: int
    exchange_id: str
    transactional_id: str | None
    client_id: str | None
    address: str | None


def add_stalls(tables: Tables, stalls: Sequence[Row]) -> None:
    """Name the table ``stalls``: one row each with its number, place, offset and time."""
    rows = [
        {"number": number, "cluster": s.cluster, "topic": s.topic, "partition": s.partition, "lso": s.lso,
         "high_watermark": s.hw_last, "first_us": s.first_us, "last_us": s.last_us, "place": f"{s.topic}-{s.partition}"}
        for number, s in enumerate(stalls)
    ]  # fmt: skip
    tables.add("stalls", pa.Table.from_pylist(rows, _STALLS))


_STALLS = pa.schema(
    {
        "number": pa.int64(), "cluster": pa.string(), "topic": pa.string(), "partition": pa.int64(), "lso": pa.int64(),
        "high_watermark": pa.int64(), "first_us": pa.int64(), "last_us": pa.int64(), "place": pa.string(),
    }
)  # fmt: skip


def producers(tables: Tables) -> dict[int, Producer]:
    """By number of stall the producer of the transactional batch that begins at its offset, if one was seen.

    Transactional id and client are from its Produce requests, InitProducerId or AddPartitionsToTxn.
    """
    # Of batches the Produce request first: it gives the time of writing.
    rows = tables.rows("""
        WITH holding AS (
            SELECT number, batches.cluster, producer_id, producer_epoch, base_offset, epoch_us(ts) AS us, exchange_id
            FROM batches JOIN stalls ON batches.cluster = stalls.cluster AND batches.topic = stalls.topic
                AND batches.partition = stalls.partition AND base_offset <= lso AND last_offset >= lso
            WHERE is_transactional AND NOT is_control
            QUALIFY row_number() OVER (PARTITION BY number ORDER BY source <> 'produce', ts, exchange_id) = 1
        ), naming AS (
            SELECT cluster, producer_id, transactional_id, client_id, client, ts, exchange_id FROM events
            WHERE kind = 'produced' AND transactional_id IS NOT NULL
            UNION ALL
            SELECT cluster, producer_id, transactional_id, client_id, client, ts, NULL FROM states
            WHERE kind IN ('txn_init', 'txn_add_partition') AND transactional_id IS NOT NULL
        ), introduced AS (
            SELECT number, transactional_id, client_id, client FROM holding JOIN naming USING (cluster, producer_id)
            QUALIFY row_number() OVER (
                PARTITION BY number
                ORDER BY naming.exchange_id IS DISTINCT FROM holding.exchange_id, ts, client
            ) = 1
        )
        SELECT holding.*, transactional_id, client_id, client FROM holding LEFT JOIN introduced USING (number)
    """)
    return {
        row.number: Producer(
            row.producer_id, row.producer_epoch, row.base_offset, row.us, row.exchange_id, row.transactional_id,
            row.client_id, row.client,
        )
        for row in rows
    }  # fmt: skip


def withheld(tables: Tables, stalls: Sequence[Row]) -> list[Behind]:
    """What each stall holds back, from its offset up to the high watermark that was seen last."""
    rows = tables.rows("""
        SELECT number, count(DISTINCT base_offset) AS markers
        FROM batches JOIN stalls ON batches.cluster = stalls.cluster AND batches.topic = stalls.topic
            AND batches.partition = stalls.partition AND base_offset >= lso AND base_offset < high_watermark
        WHERE is_control AND source = 'fetch' GROUP BY number
    """)
    markers = {row.number: row.markers for row in rows}
    some = ((stall.hw_last - stall.lso, markers.get(number, 0)) for number, stall in enumerate(stalls))
    return [Behind(max(offsets - between, 0), between) for offsets, between in some]


def committers(tables: Tables) -> set[tuple[int, int]]:
    """Number of stall and id of producer, of the transactions there that committed at the end of the stall."""
    rows = tables.rows("""
        SELECT DISTINCT number, producer_id FROM (
            SELECT cluster, producer_id, first_ts, last_ts, unnest(partitions) AS place FROM transactions
            WHERE state IN ('committing', 'committed')
        ) AS done JOIN stalls USING (cluster, place)
        WHERE epoch_us(first_ts) <= last_us AND epoch_us(last_ts) >= last_us
    """)
    return {(row.number, row.producer_id) for row in rows}
