"""Which topics does a task of a Streams group (KIP-1071) read? Members say it when they join.

Answers name tasks alone. As SQL over ``states``, for all who ask who was given what.
"""

from __future__ import annotations

from pipeline.analysis.statements.new_groups import TOPOLOGY

WITH_TOPICS = f"""
    topologies AS (
        SELECT DISTINCT cluster, group_id, subtopology, topic AS read_topic FROM states
        WHERE kind = '{TOPOLOGY}' AND topic IS NOT NULL
    ), placed AS (
        SELECT states.* EXCLUDE (topic), coalesce(read_topic, topic) AS topic
        FROM states LEFT JOIN topologies
            ON states.kind = 'assignment' AND topologies.cluster = states.cluster
            AND topologies.group_id = states.group_id AND topologies.subtopology = states.subtopology
    )
"""
"""``placed``: the rows of ``states``, in which a task stands once for each topic that its subtopology reads.

A task of which no statement names what it reads has no topic.
"""
