"""The topics that a task of a Streams group (KIP-1071) reads; members state them when they join.

Answers name tasks alone. As SQL over ``states``, for all who ask who was given what.
"""

from __future__ import annotations

from pipeline.analysis.statements.new_groups import TOPOLOGY

_MOST_PLACED = 50_000
"""Tasks times topics that are all distinct; a message of 8 KB may name 1,000 of each."""

WITH_TOPICS = f"""
    read AS (
        SELECT DISTINCT cluster, group_id, subtopology, topic AS read_topic FROM states
        WHERE kind = '{TOPOLOGY}' AND topic IS NOT NULL
    ), numbered AS (
        SELECT *, row_number() OVER (PARTITION BY cluster, group_id, subtopology ORDER BY read_topic) AS number
        FROM read
    ), tasks AS (
        SELECT cluster, group_id, subtopology, sum(len(coalesce(partitions, [partition]))) AS tasks FROM states
        WHERE kind = 'assignment' AND subtopology IS NOT NULL GROUP BY ALL
    ), most AS (
        SELECT CASE WHEN sum(tasks) > {_MOST_PLACED}
            THEN greatest({_MOST_PLACED} // (SELECT sum(tasks) FROM tasks), 1) ELSE max(number) END AS topics_of_each
        FROM numbered JOIN tasks USING (cluster, group_id, subtopology)
    ), topologies AS (
        SELECT numbered.* FROM numbered WHERE number <= (SELECT topics_of_each FROM most)
    ), placed AS (
        SELECT states.* EXCLUDE (topic, partition, partitions), coalesce(read_topic, topic) AS topic,
            coalesce(partitions, [partition]) AS partitions
        FROM states LEFT JOIN topologies
            ON states.kind = 'assignment' AND topologies.cluster = states.cluster
            AND topologies.group_id = states.group_id AND topologies.subtopology = states.subtopology
    )
"""
"""``placed``: the rows of ``states``, in which tasks are once for each topic that their subtopology reads.

In it ``partitions`` is a list for every row: of one null where a member was given nothing, and of one partition where
an earlier release wrote a row for each.

Where tasks and topics are so many that their products are no traffic any more, the first topics by name stand for all.
A task without a statement of what it reads has no topic.
"""
