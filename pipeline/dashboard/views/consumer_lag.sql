-- How far behind is each consumer group now, for readers of either isolation level?
WITH ends AS (
  -- First the time of the last event, then what stands there: a sort of all events takes three times as long.
  SELECT
    t.cluster, t.topic, t.partition, coalesce(t.incarnation, 0) AS incarnation, t.group_id, max(t.ts) AS ts
  FROM gold.offset_timeline AS t
  GROUP BY t.cluster, t.topic, t.partition, coalesce(t.incarnation, 0), t.group_id
),
-- What nobody says anything of any more grows no older: ages are as of the last word of their cluster.
clusters AS (
  SELECT e.cluster, max(e.ts) AS as_of FROM ends AS e GROUP BY e.cluster
),
newest AS (
  SELECT
    t.cluster, t.topic, t.partition, coalesce(t.incarnation, 0) AS incarnation, t.group_id, t.ts, t.exchange_id,
    t.ordinal, t.committed_offset, t.lag, t.lag_read_committed, t.lag_seconds, t.high_watermark, t.last_stable_offset,
    t.last_stable_high_watermark, t.last_stable_ts
  FROM gold.offset_timeline AS t
  JOIN ends AS e
    ON e.cluster = t.cluster AND e.topic = t.topic AND e.partition = t.partition
    AND e.incarnation = coalesce(t.incarnation, 0) AND e.group_id = t.group_id AND e.ts = t.ts
),
log_state AS (
  SELECT
    t.cluster, t.topic, t.partition, t.incarnation, t.ts, t.high_watermark, t.last_stable_offset,
    t.last_stable_high_watermark, t.last_stable_ts,
    row_number() OVER (
      PARTITION BY t.cluster, t.topic, t.partition
      ORDER BY t.incarnation DESC, t.ts DESC, t.exchange_id DESC, t.ordinal DESC
    ) AS age
  FROM newest AS t
),
group_state AS (
  SELECT
    t.cluster, t.topic, t.partition, t.incarnation, t.group_id, t.ts, t.committed_offset, t.lag, t.lag_read_committed,
    t.lag_seconds, t.high_watermark AS high_watermark_then, t.last_stable_offset AS last_stable_then,
    row_number() OVER (
      PARTITION BY t.cluster, t.topic, t.partition, t.incarnation, t.group_id
      ORDER BY t.ts DESC, t.exchange_id DESC, t.ordinal DESC
    ) AS age
  FROM newest AS t
  WHERE t.group_id <> ''
),
lagging AS (
  SELECT
    g.cluster, g.topic, g.partition, g.group_id,
    g.committed_offset, l.last_stable_offset, l.last_stable_high_watermark, l.last_stable_ts, l.high_watermark,
    {lag} AS lag,
    {lag_read_committed} AS lag_read_committed,
    g.lag AS lag_then,
    g.lag_seconds,
    g.ts AS group_seen,
    l.ts AS partition_seen,
    c.as_of
  FROM group_state AS g
  JOIN log_state AS l
    ON l.cluster = g.cluster AND l.topic = g.topic AND l.partition = g.partition
    AND l.incarnation = g.incarnation AND l.age = 1
  JOIN clusters AS c ON c.cluster = g.cluster
  WHERE g.age = 1
)
SELECT
  s.group_id, s.topic, s.partition, s.lag, s.lag_read_committed,
  {lag_seconds} AS lag_seconds,
  s.committed_offset, s.last_stable_offset, s.high_watermark, s.group_seen, s.partition_seen, s.cluster,
  s.last_stable_high_watermark, s.last_stable_ts, s.as_of,
  -- Transaction markers, and what retention removed: of the offsets between both those that are no records.
  CASE
    WHEN s.high_watermark >= s.committed_offset
      THEN try_subtract(try_subtract(s.high_watermark, s.committed_offset), s.lag)
  END AS offsets_without_records
FROM lagging AS s
