-- Which member of a group owned which partition, from when until when? Open ends are owned still.
WITH told AS (
  -- A generation of a classic group holds for all its members; in the consumer protocol each member has its own epochs.
  SELECT
    a.cluster, a.group_id, a.generation,
    CASE WHEN a.group_protocol = 'consumer' THEN a.member_id ELSE '' END AS scope,
    min(a.first_ts) AS began
  FROM silver.assignments AS a
  GROUP BY
    a.cluster, a.group_id, a.generation, CASE WHEN a.group_protocol = 'consumer' THEN a.member_id ELSE '' END
),
spans AS (
  SELECT
    t.cluster, t.group_id, t.generation, t.scope,
    lead(t.began) OVER (PARTITION BY t.cluster, t.group_id, t.scope ORDER BY t.began, t.generation) AS next_began
  FROM told AS t
),
departures AS (
  SELECT a.cluster, a.group_id, a.generation, a.member_id, min(e.ts) AS left_ts
  FROM silver.assignments AS a
  JOIN silver.state_events AS e
    ON e.cluster = a.cluster AND e.group_id = a.group_id AND e.member_id = a.member_id AND e.ts >= a.first_ts
  WHERE e.kind = 'leave' AND e.error_code = 0
  GROUP BY a.cluster, a.group_id, a.generation, a.member_id
),
given AS (
  SELECT
    a.cluster, a.group_id, a.generation, a.member_id, a.client_id, a.group_protocol,
    coalesce(a.topic, a.topic_id) AS topic, a.partition, a.first_ts,
    CASE WHEN a.group_protocol = 'consumer' THEN a.member_id ELSE '' END AS scope,
    lead(a.first_ts) OVER (
      PARTITION BY a.cluster, a.group_id, coalesce(a.topic, a.topic_id), a.partition ORDER BY a.first_ts, a.generation
    ) AS given_again
  FROM silver.assignments AS a
  WHERE a.partition IS NOT NULL
)
SELECT
  g.cluster, g.group_id, g.topic, g.partition, g.member_id, g.client_id, g.generation, g.group_protocol,
  g.first_ts AS owned_from,
  least(s.next_began, d.left_ts, g.given_again) AS owned_until
FROM given AS g
JOIN spans AS s
  ON s.cluster = g.cluster AND s.group_id = g.group_id AND s.generation = g.generation AND s.scope = g.scope
LEFT JOIN departures AS d
  ON d.cluster = g.cluster AND d.group_id = g.group_id AND d.generation = g.generation AND d.member_id = g.member_id
