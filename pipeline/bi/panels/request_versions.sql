-- Which api versions are used, by how many clients, how often, and when last?
-- title: Api versions in use
-- reader: platform owner
-- chart: table
SELECT
  l.api_name, l.api_version, count(DISTINCT l.client_id) AS client_ids, CAST(sum(l.exchanges) AS bigint) AS exchanges,
  min(l.minute) AS first_seen, max(l.minute) AS last_seen
FROM gold.api_latency AS l
WHERE l.api_name IS NOT NULL AND l.api_version IS NOT NULL
GROUP BY l.api_name, l.api_version
ORDER BY api_name, api_version
