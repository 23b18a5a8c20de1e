"""Copies of a connection: the same packets seen by two agents, or again behind address translation. One of them counts.

A connection between two machines with an agent on each lands twice, with the same ``flow_id``; behind address
translation it has another one (``translated`` finds those). Of each hour that copy counts which
has the most whole exchanges, of equals the one whose agent comes first by name. Of copies with different addresses the
one seen first counts, nearest to the client, unless it lacks more than a twentieth of what another one holds: else a
client would change its address where a few packets are lost.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.analysis.duplicates.alike import alike, candidates, empty
from pipeline.analysis.duplicates.numbers import same_numbers
from pipeline.analysis.duplicates.translated import SAME, Statements, connection_sql, same_flows
from pipeline.analysis.fit import fit
from pipeline.analysis.hours import hour_sql
from pipeline.analysis.tables import Some, Tables
from pipeline.tables import DUPLICATE_FLOWS

OF_EXCHANGES = (
    "flow_id", "agent_id", "connection_id", "client_ip", "client_port", "server_ip", "server_port", "ts", "status",
)  # fmt: skip
"""Columns of ``silver.exchanges`` by which copies are chosen."""
_US = "epoch_us(ts)"
_ADDRESSES = "(client_ip, client_port, server_ip, server_port)"


def all_copies(exchanges: pa.Table, statements: Statements, gaps: pa.Table) -> pa.Table:
    """Rows of ``silver.duplicate_flows``, by all exchanges, what they state, and rows of ``bronze.gaps``."""
    return copies(exchanges, same_flows(exchanges, statements, candidates(alike(exchanges)), same_numbers(gaps)))


def copies(exchanges: Some, same: pa.Table | None = None) -> pa.Table:
    """Rows of ``silver.duplicate_flows``: those that do not count.

    Args:
        exchanges: rows of ``silver.exchanges``, of a flow all of them.
        same: flows that are one (:func:`pipeline.analysis.duplicates.translated.same_flows`); None: none are.
    """
    tables = Tables({"exchanges": exchanges, "same": empty(SAME) if same is None else same})
    try:
        found = tables.table(f"""
            WITH by_hour AS (
                SELECT flow_id, agent_id, connection_id, {hour_sql(_US)} AS us, any_value({_ADDRESSES}) AS addresses,
                    count(*) FILTER (status NOT IN ('unanswered', 'orphan_response')) AS whole, count(*) AS "all"
                FROM exchanges GROUP BY flow_id, agent_id, connection_id, us
            ), each AS (
                SELECT by_hour.*, label, lead_us, coalesce(label, by_hour.flow_id) AS one,
                    max(whole) OVER (PARTITION BY one, us) AS most
                FROM by_hour LEFT JOIN same ON same.flow_id = by_hour.flow_id AND same.hour = by_hour.us
            ), best AS (
                SELECT *, first_value(each) OVER (
                    PARTITION BY one, us ORDER BY
                        CASE WHEN label IS NULL THEN whole ELSE (whole * 20 >= most * 19)::BIGINT END DESC,
                        lead_us, whole DESC, "all" DESC, agent_id, connection_id
                ) AS counted FROM each
            )
            SELECT make_timestamp(us) AS hour, make_timestamp(us)::DATE AS date, connection_id, agent_id, flow_id,
                counted.agent_id AS counted_agent_id, counted.connection_id AS counted_connection_id,
                addresses <> counted.addresses AS is_translated, flow_id <> counted.flow_id AS has_own_flow
            FROM best WHERE connection_id <> counted.connection_id
                AND (agent_id <> counted.agent_id OR label IS NOT NULL)
        """)
    finally:
        tables.close()
    return fit(found, DUPLICATE_FLOWS)


def counted_sql(rows: str, others: str) -> str:
    """Those rows of a table (with ``exchange_id`` and ``ts``) that are of no copy, as SQL.

    An exchange is a connection's, and its number.
    """
    return f"""
        SELECT * FROM {rows} WHERE NOT EXISTS (
            SELECT 1 FROM {others} AS others WHERE others.connection_id = {connection_sql(f"{rows}.exchange_id")}
                AND epoch_us(others.hour) = {hour_sql(f"epoch_us({rows}.ts)")}
        )
    """


def waiting_sql(rows: str, others: str) -> str:
    """Those rows of a table (with ``connection_id``) whose connection is no copy, as SQL.

    What waits for its other half follows what its connection was before.
    """
    return f"SELECT * FROM {rows} WHERE connection_id NOT IN (SELECT connection_id FROM {others})"


def waiting(rows: pa.Table, others: pa.Table) -> pa.Table:
    """The rows (with ``connection_id``) whose connection is no copy."""
    return rows.filter(pc.invert(pc.is_in(rows.column("connection_id"), others.column("connection_id").unique())))


def counted(rows: pa.Table, others: pa.Table) -> pa.Table:
    """The rows (with ``exchange_id`` and ``ts``) that are of no copy."""
    if not others.num_rows:
        return rows
    numbered = rows.select(["exchange_id", "ts"]).append_column("number", pa.array(np.arange(rows.num_rows)))
    tables = Tables({"rows": numbered, "others": others})
    try:
        is_counted = np.zeros(rows.num_rows, np.bool_)
        is_counted[
            tables.table(f"SELECT number FROM ({counted_sql('rows', 'others')})").column("number").to_numpy()
        ] = True
        return rows.filter(pa.array(is_counted))
    finally:
        tables.close()
