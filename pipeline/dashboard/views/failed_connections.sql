-- Which clients got no connection to which server, or lost it amid a request or a response, how and how often?
SELECT
  c.server_ip, c.server_port, c.client_ip, c.ended,
  try_cast(sum(cast(c.connections AS decimal(38, 0))) AS bigint) AS connections,
  min(c.first_ts) AS since,
  max(c.last_ts) AS last_seen,
  max(c.connection_id) AS connection_id
FROM silver.connections AS c
WHERE c.is_failed AND c.counted_connection_id IS NULL
GROUP BY c.server_ip, c.server_port, c.client_ip, c.ended
