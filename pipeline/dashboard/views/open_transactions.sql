-- Where does an open transaction hold back readers of committed records, since when, and who opened it?
WITH fetches AS (
  SELECT
    e.cluster, coalesce(e.topic, e.topic_id) AS topic, e.partition, e.ts, e.last_stable_offset, e.high_watermark,
    row_number() OVER (
      PARTITION BY e.cluster, coalesce(e.topic, e.topic_id), e.partition
      ORDER BY e.ts DESC, e.exchange_id DESC, e.ordinal DESC
    ) AS age
  FROM silver.offset_events AS e
  -- Both from one response: known separately, one of them may be older than the other.
  WHERE e.kind = 'fetched' AND e.last_stable_offset IS NOT NULL AND e.high_watermark IS NOT NULL
),
latest AS (
  SELECT f.cluster, f.topic, f.partition, f.ts, f.last_stable_offset, f.high_watermark
  FROM fetches AS f
  WHERE f.age = 1 AND f.last_stable_offset < f.high_watermark
),
held AS (
  SELECT f.cluster, f.topic, f.partition, min(f.ts) AS since
  FROM fetches AS f
  JOIN latest AS l
    ON l.cluster = f.cluster AND l.topic = f.topic AND l.partition = f.partition
    AND l.last_stable_offset = f.last_stable_offset
  WHERE f.last_stable_offset < f.high_watermark
  GROUP BY f.cluster, f.topic, f.partition
),
-- Of what a fetch returned: who wrote the first batch, and the offsets of transaction markers, which hold no records.
batches AS (
  SELECT
    l.cluster, l.topic, l.partition,
    min(CASE WHEN b.is_transactional AND b.base_offset = l.last_stable_offset THEN b.producer_id END) AS producer_id,
    count(DISTINCT CASE WHEN b.is_control THEN b.base_offset END) AS transaction_markers
  FROM latest AS l
  JOIN silver.record_batches AS b
    ON b.cluster = l.cluster AND coalesce(b.topic, b.topic_id) = l.topic AND b.partition = l.partition
    AND b.source = 'fetch' AND b.base_offset >= l.last_stable_offset AND b.base_offset < l.high_watermark
  GROUP BY l.cluster, l.topic, l.partition
)
SELECT
  l.cluster, l.topic, l.partition, l.last_stable_offset, l.high_watermark,
  greatest(
    try_subtract(try_subtract(l.high_watermark, l.last_stable_offset), coalesce(p.transaction_markers, 0)), 0
  ) AS records_held_back,
  h.since, l.ts AS last_seen, p.producer_id, coalesce(p.transaction_markers, 0) AS transaction_markers
FROM latest AS l
JOIN held AS h ON h.cluster = l.cluster AND h.topic = l.topic AND h.partition = l.partition
LEFT JOIN batches AS p ON p.cluster = l.cluster AND p.topic = l.topic AND p.partition = l.partition
