"""Who was given which partition in which generation? ``silver.state_events`` → ``silver.assignments``."""

from __future__ import annotations

import pyarrow as pa

from pipeline.analysis.fit import fit, schema_of
from pipeline.analysis.holders.tasks import WITH_TOPICS
from pipeline.analysis.statements.new_groups import TOPOLOGY
from pipeline.analysis.tables import Tables
from pipeline.tables import ASSIGNMENTS

_ROWS = """
    WITH TASKS, valid AS (
        SELECT *, CASE WHEN kind = 'join' OR group_protocol <> 'classic' THEN client_id END AS own FROM placed
        WHERE kind IN ('assignment', 'join') AND group_id IS NOT NULL AND member_id IS NOT NULL
            AND generation IS NOT NULL AND error_code = 0
    ), named AS (
        SELECT *, min(own) OVER (PARTITION BY date, cluster, group_id, member_id) AS member_client,
            coalesce(topic_id, topic) AS place
        FROM valid
    ), assigned AS (
        SELECT *, {'server': server, 'exchange_id': exchange_id, 'group_protocol': group_protocol} AS source
        FROM named WHERE kind = 'assignment'
    ), stated AS (
        SELECT cluster, group_id, generation, member_id, place, partition, topic, topic_id, subtopology,
            member_client AS client_id, ts AS first_ts, ts AS last_ts, source, exchange_id
        FROM assigned
        UNION ALL BY NAME
        SELECT * EXCLUDE (server, group_protocol), coalesce(topic_id, topic) AS place,
            {'server': server, 'exchange_id': exchange_id, 'group_protocol': group_protocol} AS source
        FROM held
    ), merged AS (
        SELECT cluster, group_id, generation, member_id, partition, subtopology,
            min(topic) AS topic, min(topic_id) AS topic_id,
            min(client_id) AS client_id, min(first_ts) AS first_ts, max(last_ts) AS last_ts,
            unnest(arg_min(source, (first_ts, exchange_id)))
        FROM stated GROUP BY cluster, group_id, generation, member_id, place, partition, subtopology
    )
    SELECT COLUMNS FROM merged EXCEPT SELECT COLUMNS FROM held
""".replace("TASKS", WITH_TOPICS).replace("COLUMNS", ", ".join(f'"{name}"' for name in ASSIGNMENTS.column_names))
"""An assignment may be from the group's leader; a member's client id comes from the member itself."""
KINDS = ("assignment", "join", TOPOLOGY)
"""The statements that the table is made of."""


def assignments(states: pa.Table, held: pa.Table | None = None) -> pa.Table:
    """Rows of ``silver.assignments``: a row is merged from all statements of the same content.

    By minima and maxima only, so that the result does not depend on how often a statement is taken in.

    Args:
        states: rows of ``silver.state_events`` of whole days.
        held: what the table holds of the same groups; of these rows only those that change are given.
    """
    before = schema_of(ASSIGNMENTS).empty_table() if held is None else held
    tables = Tables({"states": states, "held": before})
    try:
        return fit(tables.table(_ROWS), ASSIGNMENTS)
    finally:
        tables.close()
