"""Which topics does a task of a Streams group (KIP-1071) read? Members say it when they join.

Answers name tasks alone. As SQL over ``states``, for all who ask who was given what.
"""

from __future__ import annotations

from pipeline.analysis.statements.new_groups import TOPOLOGY

_MOST_PLACED = 50_000
"""Tasks times topics that are all distinct; a message of 15 KB may name 1,700 of each."""
_TOPICS_OF_MANY = 3
"""Beyond, so many topics of each subtopology, the first by name."""

WITH_TOPICS = f"""
    read AS (
        SELECT DISTINCT cluster, group_id, subtopology, topic AS read_topic FROM states
        WHERE kind = '{TOPOLOGY}' AND topic IS NOT NULL
    ), numbered AS (
        SELECT *, row_number() OVER (PARTITION BY cluster, group_id, subtopology ORDER BY read_topic) AS number
        FROM read
    ), tasks AS (
        SELECT cluster, group_id, subtopology, count(*) AS tasks FROM states
        WHERE kind = 'assignment' AND subtopology IS NOT NULL GROUP BY ALL
    ), topologies AS (
        SELECT numbered.* FROM numbered
        WHERE number <= {_TOPICS_OF_MANY} OR {_MOST_PLACED} >= (
            SELECT sum(tasks) FROM numbered JOIN tasks USING (cluster, group_id, subtopology)
        )
    ), placed AS (
        SELECT states.* EXCLUDE (topic), coalesce(read_topic, topic) AS topic
        FROM states LEFT JOIN topologies
            ON states.kind = 'assignment' AND topologies.cluster = states.cluster
            AND topologies.group_id = states.group_id AND topologies.subtopology = states.subtopology
    )
"""
"""``placed``: the rows of ``states``, in which a task stands once for each topic that its subtopology reads.

Where tasks and topics are so many that their products are no traffic any more, the first topics of each stand for all.
A task of which no statement names what it reads has no topic.
"""
