"""Who was given which partition in which generation? ``silver.state_events`` → ``silver.assignments``."""

from __future__ import annotations

import pyarrow as pa

from pipeline.analysis.fit import fit
from pipeline.analysis.tables import Tables
from pipeline.tables import ASSIGNMENTS

_ROWS = """
    WITH valid AS (
        SELECT *, CASE WHEN kind = 'join' OR group_protocol = 'consumer' THEN client_id END AS own FROM states
        WHERE kind IN ('assignment', 'join') AND group_id IS NOT NULL AND member_id IS NOT NULL
            AND generation IS NOT NULL AND error_code = 0
    ), named AS (
        SELECT *, min(own) OVER (PARTITION BY date, cluster, group_id, member_id) AS member_client,
            coalesce(topic_id, topic) AS place
        FROM valid
    ), assigned AS (
        SELECT *, {'server': server, 'exchange_id': exchange_id, 'group_protocol': group_protocol} AS source
        FROM named WHERE kind = 'assignment'
    )
    SELECT cluster, group_id, generation, member_id, partition, min(topic) AS topic, min(topic_id) AS topic_id,
        min(member_client) AS client_id, min(ts) AS first_ts, max(ts) AS last_ts,
        unnest(arg_min(source, (ts, exchange_id)))
    FROM assigned GROUP BY cluster, group_id, generation, member_id, place, partition
"""
"""An assignment may be from the group's leader; a member's client id comes from the member itself."""


def assignments(states: pa.Table) -> pa.Table:
    """Rows of ``silver.assignments``: a row is merged from all statements of the same content."""
    tables = Tables({"states": states})
    try:
        return fit(tables.table(_ROWS), ASSIGNMENTS)
    finally:
        tables.close()
