-- Which member of a group owned which partition, from when until when? Open ends are owned still.
WITH generations AS (
  SELECT a.cluster, a.group_id, a.generation, min(a.first_ts) AS began
  FROM silver.assignments AS a
  WHERE a.group_protocol = 'classic'
  GROUP BY a.cluster, a.group_id, a.generation
),
spans AS (
  SELECT
    g.cluster, g.group_id, g.generation,
    lead(g.began) OVER (PARTITION BY g.cluster, g.group_id ORDER BY g.began, g.generation) AS next_began
  FROM generations AS g
),
given AS (
  SELECT
    a.cluster, a.group_id, a.generation, a.member_id, a.client_id, a.group_protocol,
    coalesce(a.topic, a.topic_id) AS topic, a.partition, a.first_ts, a.last_ts,
    lead(a.first_ts) OVER (
      -- A share group gives a partition to several members at once.
      PARTITION BY
        a.cluster, a.group_id, coalesce(a.topic, a.topic_id), a.partition,
        CASE WHEN a.group_protocol = 'share' THEN a.member_id END
      ORDER BY a.first_ts, a.generation
    ) AS given_again
  FROM silver.assignments AS a
  WHERE a.partition IS NOT NULL
),
ends AS (
  SELECT g.cluster, g.group_id, g.generation, g.member_id, g.topic, g.partition, min(e.ts) AS ended
  FROM given AS g
  JOIN silver.state_events AS e
    ON e.cluster = g.cluster AND e.group_id = g.group_id AND e.member_id = g.member_id
    AND (
      (e.kind = 'leave' AND e.ts >= g.first_ts)
      -- Where brokers assign, each answer holds the whole assignment: what it leaves out is taken away.
      OR (e.kind = 'assignment' AND e.group_protocol <> 'classic' AND e.ts > g.last_ts)
    )
  WHERE e.error_code = 0
  GROUP BY g.cluster, g.group_id, g.generation, g.member_id, g.topic, g.partition
)
SELECT
  g.cluster, g.group_id, g.topic, g.partition, g.member_id, g.client_id, g.generation, g.group_protocol,
  g.first_ts AS owned_from,
  least(s.next_began, e.ended, g.given_again) AS owned_until
FROM given AS g
LEFT JOIN spans AS s
  ON s.cluster = g.cluster AND s.group_id = g.group_id AND s.generation = g.generation AND g.group_protocol = 'classic'
LEFT JOIN ends AS e
  ON e.cluster = g.cluster AND e.group_id = g.group_id AND e.generation = g.generation AND e.member_id = g.member_id
  AND e.topic = g.topic AND e.partition = g.partition
