"""Which copy of a connection counts, where two agents saw the same one? In each hour, one of them.

A connection between two machines with an agent on each lands twice, with the same ``flow_id``. Of each hour that copy
counts which has the most whole exchanges, of equals the one whose agent comes first by name.
"""

from __future__ import annotations

import pyarrow as pa

from pipeline.analysis.fit import fit
from pipeline.analysis.hours import hour_sql
from pipeline.analysis.tables import Tables
from pipeline.tables import COPIES

_US = "epoch_us(ts)"


def copies(exchanges: pa.Table) -> pa.Table:
    """Rows of ``silver.copies``: those that do not count."""
    tables = Tables({"exchanges": exchanges})
    try:
        found = tables.table(f"""
            WITH each AS (
                SELECT flow_id, agent_id, connection_id, {hour_sql(_US)} AS us,
                    count(*) FILTER (status NOT IN ('unanswered', 'orphan_response')) AS whole, count(*) AS "all"
                FROM exchanges GROUP BY flow_id, agent_id, connection_id, us
            ), best AS (
                SELECT *, first_value(agent_id) OVER (
                    PARTITION BY flow_id, us ORDER BY whole DESC, "all" DESC, agent_id, connection_id
                ) AS counted_agent_id FROM each
            )
            SELECT *, make_timestamp(us) AS hour, make_timestamp(us)::DATE AS date
            FROM best WHERE agent_id <> counted_agent_id
        """)
    finally:
        tables.close()
    return fit(found, COPIES)


def counted_sql(rows: str, others: str) -> str:
    """Those rows of a table (with ``exchange_id`` and ``ts``) that are of no copy, as SQL.

    An exchange is a connection's, and its number.
    """
    return f"""
        SELECT * FROM {rows} WHERE NOT EXISTS (
            SELECT 1 FROM {others} AS others WHERE others.connection_id = split_part({rows}.exchange_id, '-', 1)
                AND epoch_us(others.hour) = {hour_sql(f"epoch_us({rows}.ts)")}
        )
    """


def counted(rows: pa.Table, others: pa.Table) -> pa.Table:
    """The rows (with ``exchange_id`` and ``ts``) that are of no copy."""
    if not others.num_rows:
        return rows
    tables = Tables({"rows": rows, "others": others})
    try:
        return tables.table(counted_sql("rows", "others")).cast(rows.schema)
    finally:
        tables.close()
