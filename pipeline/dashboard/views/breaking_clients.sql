-- Which clients use request versions that Kafka 4 has removed, and is it known that they break?
WITH judged AS (
  SELECT DISTINCT c.cluster, c.client_id, c.client_ip
  FROM gold.clients AS c
  JOIN gold.findings AS f
    ON f.cluster = c.cluster AND f.subject = CASE WHEN c.client_id = '' THEN '?' ELSE c.client_id END
    AND f.details LIKE concat('%"', c.client_ip, '"%')
  WHERE f.rule = 'kip896_incompatible_client' AND f.severity = 'warning'
)
SELECT
  c.cluster, c.client_id, c.client_ip,
  -- Whoever asks for versions and takes the newest that an old broker has may know newer ones.
  CASE WHEN j.client_ip IS NOT NULL THEN 'breaks' ELSE 'unknown' END AS verdict,
  c.removed_versions, c.software, c.first_ts, c.last_ts
FROM gold.clients AS c
LEFT JOIN judged AS j ON j.cluster = c.cluster AND j.client_id = c.client_id AND j.client_ip = c.client_ip
WHERE c.breaks_on_kafka_4
