-- How much is produced to each topic on each day, and how full are the batches?
-- title: Produced to topics
-- reader: capacity planner
-- chart: bar
-- x: day
-- y: mebibytes
-- series: topic
-- unit: MiB a day
-- Copies of a connection, which other agents or mirrors saw, do not count.
WITH copies AS (
  SELECT x.exchange_id
  FROM silver.duplicate_flows AS d
  JOIN silver.exchanges AS x ON x.connection_id = d.connection_id AND date_trunc('hour', x.ts) = d.hour
)
SELECT
  date_trunc('day', b.ts) AS day, coalesce(b.topic, b.topic_id) AS topic, sum(b.size) / 1048576e0 AS mebibytes,
  CAST(sum(b.records) AS bigint) AS records, count(*) AS batches, sum(b.records) / (count(*) * 1e0) AS records_per_batch
FROM silver.record_batches AS b
LEFT JOIN copies AS c ON c.exchange_id = b.exchange_id
WHERE b.source = 'produce' AND c.exchange_id IS NULL
GROUP BY date_trunc('day', b.ts), coalesce(b.topic, b.topic_id)
ORDER BY day, topic
