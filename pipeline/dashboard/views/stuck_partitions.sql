-- Which client keeps committing one and the same offset (3 times or more) while the partition has moved on?
WITH log_state AS (
  SELECT
    t.cluster, t.topic, t.partition, t.high_watermark, max(t.ts) OVER (PARTITION BY t.cluster) AS as_of,
    row_number() OVER (
      PARTITION BY t.cluster, t.topic, t.partition ORDER BY t.ts DESC, t.exchange_id DESC, t.ordinal DESC
    ) AS age
  FROM gold.offset_timeline AS t
),
commits AS (
  SELECT
    t.cluster, t.topic, t.partition, t.group_id, t.client_id, t.ts, t.event_offset, t.lag, t.high_watermark,
    t.fetch_position,
    row_number() OVER (
      PARTITION BY t.cluster, t.topic, t.partition, t.group_id, t.client_id
      ORDER BY t.ts DESC, t.exchange_id DESC, t.ordinal DESC
    ) AS age,
    first_value(t.event_offset) OVER (
      PARTITION BY t.cluster, t.topic, t.partition, t.group_id, t.client_id
      ORDER BY t.ts DESC, t.exchange_id DESC, t.ordinal DESC
    ) AS final_offset,
    first_value(t.event_offset) OVER (
      PARTITION BY t.cluster, t.topic, t.partition, t.group_id
      ORDER BY t.ts DESC, t.exchange_id DESC, t.ordinal DESC
    ) AS group_offset
  FROM gold.offset_timeline AS t
  WHERE t.kind = 'committed' AND t.group_id <> ''
),
change AS (
  SELECT c.cluster, c.topic, c.partition, c.group_id, c.client_id, min(c.age) AS age
  FROM commits AS c
  WHERE c.event_offset <> c.final_offset
  GROUP BY c.cluster, c.topic, c.partition, c.group_id, c.client_id
),
run AS (
  SELECT
    c.cluster, c.topic, c.partition, c.group_id, c.client_id,
    c.final_offset AS stuck_offset,
    count(*) AS commits,
    min(c.ts) AS since,
    max(c.ts) AS last_commit,
    max(c.fetch_position) AS fetch_position,
    max(c.group_offset) AS group_offset,
    c.final_offset AS committed_offset,
    max(CASE WHEN c.age = 1 THEN c.lag END) AS lag,
    max(CASE WHEN c.age = 1 THEN c.high_watermark END) AS high_watermark_then
  FROM commits AS c
  LEFT JOIN change AS x
    ON x.cluster = c.cluster AND x.topic = c.topic AND x.partition = c.partition AND x.group_id = c.group_id
    AND coalesce(x.client_id, '') = coalesce(c.client_id, '')
  -- Whoever commits the end again, because nothing comes, is not stuck.
  WHERE (x.age IS NULL OR c.age < x.age) AND c.lag > 0
  GROUP BY c.cluster, c.topic, c.partition, c.group_id, c.client_id, c.final_offset
)
SELECT
  g.cluster, g.topic, g.partition, g.group_id, g.client_id, g.stuck_offset, g.commits, g.since, g.last_commit,
  g.fetch_position, l.high_watermark,
  {lag} AS records_behind
FROM run AS g
JOIN log_state AS l ON l.cluster = g.cluster AND l.topic = g.topic AND l.partition = g.partition AND l.age = 1
WHERE g.commits >= 3 AND l.high_watermark > g.stuck_offset
  -- Over, as the finding of rule stuck_commit is: the group has moved on, and for three of its intervals, five seconds at
  -- least, nobody has committed the old offset again.
  AND NOT (
    g.group_offset > g.stuck_offset
    AND unix_micros(l.as_of) - unix_micros(g.last_commit)
      > greatest(3 * (unix_micros(g.last_commit) - unix_micros(g.since)) / (g.commits - 1), 5000000)
  )
