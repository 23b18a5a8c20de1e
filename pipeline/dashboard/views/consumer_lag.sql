-- How far behind is each consumer group now, for readers of either isolation level?
WITH log_state AS (
  SELECT
    t.cluster, t.topic, t.partition, t.ts, t.high_watermark, t.last_stable_offset,
    row_number() OVER (
      PARTITION BY t.cluster, t.topic, t.partition ORDER BY t.ts DESC, t.exchange_id DESC, t.ordinal DESC
    ) AS age
  FROM gold.offset_timeline AS t
),
group_state AS (
  SELECT
    t.cluster, t.topic, t.partition, t.group_id, t.ts, t.committed_offset, t.lag_seconds,
    row_number() OVER (
      PARTITION BY t.cluster, t.topic, t.partition, t.group_id ORDER BY t.ts DESC, t.exchange_id DESC, t.ordinal DESC
    ) AS age
  FROM gold.offset_timeline AS t
  WHERE t.group_id <> ''
)
SELECT
  g.cluster, g.topic, g.partition, g.group_id,
  g.committed_offset, l.last_stable_offset, l.high_watermark,
  CASE WHEN l.high_watermark < g.committed_offset THEN 0 ELSE l.high_watermark - g.committed_offset END AS lag,
  CASE
    WHEN l.last_stable_offset < g.committed_offset THEN 0 ELSE l.last_stable_offset - g.committed_offset
  END AS lag_read_committed,
  g.lag_seconds,
  g.ts AS group_seen,
  l.ts AS partition_seen
FROM group_state AS g
JOIN log_state AS l ON l.cluster = g.cluster AND l.topic = g.topic AND l.partition = g.partition AND l.age = 1
WHERE g.age = 1
