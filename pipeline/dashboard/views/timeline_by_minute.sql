-- Where was each partition, and each group on it, at the end of each minute, for up to 7 days beyond a statement?
WITH log_minutes AS (
  SELECT
    t.cluster, t.topic, t.partition, date_trunc('minute', t.ts) AS stated,
    t.log_start_offset, t.last_stable_offset, t.last_stable_high_watermark, t.last_stable_ts, t.high_watermark,
    t.produced_offset,
    row_number() OVER (
      PARTITION BY t.cluster, t.topic, t.partition, date_trunc('minute', t.ts)
      ORDER BY t.ts DESC, t.exchange_id DESC, t.ordinal DESC
    ) AS age
  FROM gold.offset_timeline AS t
),
log_spans AS (
  SELECT
    m.cluster, m.topic, m.partition, m.stated, m.log_start_offset, m.last_stable_offset, m.last_stable_high_watermark,
    m.last_stable_ts, m.high_watermark, m.produced_offset,
    lead(m.stated) OVER (PARTITION BY m.cluster, m.topic, m.partition ORDER BY m.stated) AS next_stated
  FROM log_minutes AS m
  WHERE m.age = 1
),
log_filled AS (
  SELECT
    s.cluster, s.topic, s.partition, s.log_start_offset, s.last_stable_offset, s.last_stable_high_watermark,
    s.last_stable_ts, s.high_watermark, s.produced_offset,
    -- For at most a week: between two statements may lie years, by a clock that was wrong.
    explode(
      sequence(
        s.stated,
        least(coalesce(s.next_stated - INTERVAL 1 MINUTE, s.stated), s.stated + INTERVAL 7 DAY),
        INTERVAL 1 MINUTE
      )
    ) AS minute
  FROM log_spans AS s
),
group_minutes AS (
  SELECT
    t.cluster, t.topic, t.partition, t.group_id, date_trunc('minute', t.ts) AS stated,
    t.committed_offset, t.pending_offset, t.fetch_position, t.lag, t.lag_read_committed,
    t.high_watermark AS high_watermark_then, t.last_stable_offset AS last_stable_then,
    row_number() OVER (
      PARTITION BY t.cluster, t.topic, t.partition, t.group_id, date_trunc('minute', t.ts)
      ORDER BY t.ts DESC, t.exchange_id DESC, t.ordinal DESC
    ) AS age
  FROM gold.offset_timeline AS t
  WHERE t.group_id <> ''
),
group_spans AS (
  SELECT
    m.cluster, m.topic, m.partition, m.group_id, m.stated, m.committed_offset, m.pending_offset, m.fetch_position,
    m.lag, m.lag_read_committed, m.high_watermark_then, m.last_stable_then,
    lead(m.stated) OVER (PARTITION BY m.cluster, m.topic, m.partition, m.group_id ORDER BY m.stated) AS next_stated
  FROM group_minutes AS m
  WHERE m.age = 1
),
fetched_minutes AS (
  SELECT t.cluster, t.topic, t.partition, date_trunc('minute', t.ts) AS minute
  FROM gold.offset_timeline AS t
  WHERE t.kind = 'fetched'
  UNION
  -- Partitions without news stand in no frame of an incremental fetch, but in its session.
  SELECT
    f.cluster, coalesce(f.topic, f.topic_id) AS topic, f.partition,
    explode(
      sequence(
        date_trunc('minute', f.first_ts),
        least(date_trunc('minute', f.last_ts), date_trunc('minute', f.first_ts) + INTERVAL 7 DAY),
        INTERVAL 1 MINUTE
      )
    ) AS minute
  FROM silver.fetch_sessions AS f
  WHERE f.isolation_level IS NOT NULL
)
SELECT
  l.cluster, l.topic, l.partition, coalesce(g.group_id, '') AS group_id, l.minute,
  l.log_start_offset, l.last_stable_offset, l.high_watermark, l.produced_offset,
  g.committed_offset, g.pending_offset, g.fetch_position,
  {lag} AS lag,
  {lag_read_committed} AS lag_read_committed,
  f.minute IS NOT NULL AS is_fetched,
  l.last_stable_high_watermark, l.last_stable_ts
FROM log_filled AS l
LEFT JOIN group_spans AS g
  ON g.cluster = l.cluster AND g.topic = l.topic AND g.partition = l.partition
  AND l.minute >= g.stated AND (g.next_stated IS NULL OR l.minute < g.next_stated)
LEFT JOIN fetched_minutes AS f
  ON f.cluster = l.cluster AND f.topic = l.topic AND f.partition = l.partition AND f.minute = l.minute
