-- Which client libraries in which versions are in use, on how many hosts?
-- title: Client software
-- reader: platform owner
-- chart: table
WITH named AS (
  SELECT c.protocol, c.client_id, c.client_ip, c.last_ts, explode(c.software) AS software FROM gold.clients AS c
)
SELECT
  n.protocol, n.software, count(DISTINCT n.client_id) AS client_ids, count(DISTINCT n.client_ip) AS hosts,
  max(n.last_ts) AS last_seen
FROM named AS n
GROUP BY n.protocol, n.software
ORDER BY hosts DESC, software
