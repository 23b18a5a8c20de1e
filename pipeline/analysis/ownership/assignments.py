"""Who was given which partition in which generation: ``silver.state_events`` → ``silver.assignments``."""

from __future__ import annotations

import pyarrow as pa

from pipeline.analysis.fit import fit
from pipeline.analysis.ownership.tasks import WITH_TOPICS
from pipeline.analysis.statements.new_groups import TOPOLOGY
from pipeline.analysis.tables import Tables
from pipeline.tables import ASSIGNMENTS

_COLUMNS = ", ".join(f'"{name}"' for name in ASSIGNMENTS.column_names)
_ROWS = """
    WITH TASKS, own AS (
        SELECT date, cluster, group_id, member_id, min(client_id) AS client_id FROM states
        WHERE (kind = 'join' OR kind = 'assignment' AND group_protocol <> 'classic') AND group_id IS NOT NULL
            AND member_id IS NOT NULL AND generation IS NOT NULL AND error_code = 0
        GROUP BY date, cluster, group_id, member_id
    ), spoken AS (
        SELECT placed.date, placed.cluster, placed.group_id, generation, placed.member_id, topic, topic_id,
            subtopology, ts, server, exchange_id, group_protocol, flatten(list(partitions)) AS partitions,
            count(*) > 1 AS is_listed_again
        FROM placed
        WHERE kind = 'assignment' AND placed.group_id IS NOT NULL AND placed.member_id IS NOT NULL
            AND generation IS NOT NULL AND error_code = 0
        GROUP BY ALL
    ), stated AS (
        SELECT spoken.cluster, spoken.group_id, generation, spoken.member_id, coalesce(topic_id, topic) AS place,
            partitions, is_listed_again, topic, topic_id, subtopology, own.client_id AS client_id,
            ts AS first_ts, ts AS last_ts, server, group_protocol, exchange_id
        FROM spoken LEFT JOIN own ON own.date IS NOT DISTINCT FROM spoken.date
            AND own.cluster IS NOT DISTINCT FROM spoken.cluster AND own.group_id = spoken.group_id
            AND own.member_id = spoken.member_id
        HELD
    ), counted AS MATERIALIZED (
        SELECT * EXCLUDE (is_listed_again), is_listed_again OR count(*) OVER (
            PARTITION BY cluster, group_id, generation, member_id, place, subtopology
        ) > 1 AS is_again FROM stated
    ), merged AS (
        SELECT cluster, group_id, generation, member_id, partition, subtopology,
            min(topic) AS topic, min(topic_id) AS topic_id,
            min(client_id) AS client_id, min(first_ts) AS first_ts, max(last_ts) AS last_ts,
            unnest(arg_min(
                {'server': server, 'exchange_id': exchange_id, 'group_protocol': group_protocol},
                (first_ts, exchange_id)
            ))
        FROM (SELECT *, unnest(partitions) AS partition FROM counted WHERE is_again)
        GROUP BY cluster, group_id, generation, member_id, place, partition, subtopology
        UNION ALL BY NAME
        SELECT * EXCLUDE (place, partitions, is_again), unnest(partitions) AS partition FROM counted WHERE NOT is_again
    )
    SELECT COLUMNS FROM merged
""".replace("TASKS", WITH_TOPICS).replace("COLUMNS", _COLUMNS)
"""An assignment may be from the group's leader; a member's client id comes from the member itself.

A heartbeat can give a member 250,000 partitions: one list, until each is a row. Most are stated once: nothing to merge.
"""
_HELD = """UNION ALL BY NAME
        SELECT * EXCLUDE (partition), coalesce(topic_id, topic) AS place, [partition] AS partitions,
            false AS is_listed_again FROM held"""
_CHANGED = f" EXCEPT SELECT {_COLUMNS} FROM held"
KINDS = ("assignment", "join", TOPOLOGY)
"""The statements that the table is made of."""


def assignments(states: pa.Table, held: pa.Table | None = None) -> pa.Table:
    """Rows of ``silver.assignments``: a row is merged from all statements of the same content.

    By minima and maxima only, so that the result does not depend on how often a statement is taken in.

    Args:
        states: rows of ``silver.state_events`` of whole days.
        held: what the table holds of the same groups; of these rows only those that change are given.
    """
    tables = Tables({"states": states} if held is None else {"states": states, "held": held})
    query = _ROWS.replace("HELD", "") if held is None else _ROWS.replace("HELD", _HELD) + _CHANGED
    try:
        return fit(tables.table(query), ASSIGNMENTS)
    finally:
        tables.close()
