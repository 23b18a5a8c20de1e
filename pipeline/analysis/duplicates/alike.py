"""Connections whose exchanges look alike at nearly the same time: a cheap look for those that may be copies.

Most captures hold none, and clients of one library look alike for a while: what is found here is compared by its
content (:mod:`pipeline.analysis.duplicates.translated`).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from pipeline.analysis.hours import HOUR_US
from pipeline.analysis.tables import Some, Tables
from pipeline.lake.arrow import arrow_type
from pipeline.tables import Column

REACH_US = 250_000
"""Within one capture packets are seen again at most so much later, µs: a proxy that waits is slower than a network."""
SKEW_US = 10_000_000
"""Clocks of two agents differ by at most so much."""
MOST_COMPARED = 2_000_000
"""Exchanges that are compared at most, of the connections that look most alike: a gigabyte, and ten seconds."""
LEAST_ALIKE = 4
"""Exchanges that two copies share in an hour at least."""

OF_ALIKE = (
    "connection_id", "agent_id", "protocol", "api_key", "api_version", "correlation_id", "client_id", "request_size",
    "response_size", "ts",
)  # fmt: skip
"""Columns of ``silver.exchanges`` that :func:`alike` reads."""
ALIKE = (
    Column("hour", "bigint", "µs since the epoch"),
    Column("connection_id", "string", ""),
    Column("other_id", "string", "null: all exchanges of the connection are counted", nullable=True),
    Column("exchanges", "bigint", ""),
)
"""What :func:`alike` gives."""
US_SQL = "epoch_us(ts)"
ALIKE_SQL = "hash(protocol, api_key, api_version, correlation_id, client_id, request_size, response_size)"


def alike(exchanges: Some) -> pa.Table:
    """How many exchanges two connections have in common at nearly the same time: rows of :data:`ALIKE`.

    It decides cheaply whether a capture may hold copies at all. Of exchanges that look alike each one is compared with
    the next in time: so there are no more rows than exchanges.

    Args:
        exchanges: rows of ``silver.exchanges``: all of a correlation id, or of several.
    """
    tables = Tables({"exchanges": exchanges})
    try:
        (counted,) = tables.rows("SELECT count(DISTINCT agent_id) AS agents FROM exchanges")
        reach = SKEW_US if counted.agents > 1 else REACH_US
        rows = tables.table(f"SELECT connection_id, {ALIKE_SQL} AS alike, {US_SQL} AS us FROM exchanges")
    finally:
        tables.close()
    if not rows.num_rows:
        return empty(ALIKE)
    ids = rows.column("connection_id").combine_chunks().dictionary_encode()
    key, us = rows.column("alike").to_numpy(), rows.column("us").to_numpy()
    hour, first = us // HOUR_US, us.min() // HOUR_US
    seen = ids.indices.to_numpy().astype(np.int64) * (hour.max() - first + 1) + (hour - first)
    order = np.lexsort((seen, us, key))
    seen, key, us, hour = seen[order], key[order], us[order], hour[order]
    is_near = (key[1:] == key[:-1]) & (us[1:] - us[:-1] <= reach) & (seen[1:] != seen[:-1]) & (hour[1:] == hour[:-1])
    pairs = np.sort(np.stack((seen[:-1][is_near], seen[1:][is_near]), axis=1), axis=1)
    found, times = np.unique(pairs, axis=0, return_counts=True)
    every, exchanges_of = np.unique(seen, return_counts=True)
    spans = hour.max() - first + 1

    def named(codes: np.ndarray) -> pa.Array:
        return ids.dictionary.take(pa.array(codes // spans))

    hours = np.concatenate((found[:, 0], every)) % spans + first
    return pa.table(
        {
            "hour": pa.array(hours * HOUR_US, pa.int64()),
            "connection_id": pa.concat_arrays([named(found[:, 0]), named(every)]),
            "other_id": pa.concat_arrays([named(found[:, 1]), pa.nulls(len(every), pa.string())]),
            "exchanges": pa.array(np.concatenate((times, exchanges_of)), pa.int64()),
        },
        schema=schema_of_columns(ALIKE),
    )


def _part(connection: str) -> str:
    """A connection in an hour, as SQL: one value, for DuckDB would join all connections of an hour by two of them."""
    return f"{connection} || '@' || hour"


def candidates(counted: pa.Table, least: int = LEAST_ALIKE) -> pa.Table:
    """The connections (``connection_id``) that may be copies, by what :func:`alike` gave of all exchanges together.

    Args:
        counted: rows of :data:`ALIKE`.
        least: exchanges that two connections must have in common in an hour, or none are candidates.
    """
    tables = Tables({"counted": counted})
    try:
        return tables.table(f"""
            WITH totals AS (
                SELECT {_part("connection_id")} AS part, connection_id, sum(exchanges) AS exchanges
                FROM counted WHERE other_id IS NULL GROUP BY ALL
            ), pairs AS (
                SELECT {_part("connection_id")} AS part, {_part("other_id")} AS other_part, connection_id, other_id,
                    sum(exchanges) AS exchanges
                FROM counted WHERE other_id IS NOT NULL GROUP BY ALL
            ), is_any AS (
                SELECT count(*) > 0 FROM pairs AS p JOIN totals AS a ON a.part = p.part
                JOIN totals AS b ON b.part = p.other_part
                WHERE p.exchanges >= {int(least)} AND p.exchanges * 4 >= least(a.exchanges, b.exchanges)
            ), near AS (
                SELECT connection_id, sum(exchanges) AS near FROM (
                    SELECT connection_id, exchanges FROM pairs
                    UNION ALL SELECT other_id AS connection_id, exchanges FROM pairs
                ) WHERE (FROM is_any) GROUP BY connection_id
            ), sized AS (
                SELECT connection_id, near, sum(exchanges) AS exchanges FROM near JOIN totals USING (connection_id)
                GROUP BY ALL
            )
            SELECT connection_id FROM sized
            QUALIFY sum(exchanges) OVER (ORDER BY near / exchanges DESC, connection_id) <= {MOST_COMPARED}
        """)
    finally:
        tables.close()


def empty(columns: Iterable[Column]) -> pa.Table:
    """A table without rows."""
    return schema_of_columns(columns).empty_table()


def schema_of_columns(columns: Iterable[Column]) -> pa.Schema:
    """The Arrow types of columns."""
    return pa.schema([pa.field(column.name, arrow_type(column.type)) for column in columns])
