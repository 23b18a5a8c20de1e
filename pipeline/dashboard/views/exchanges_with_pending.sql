-- Every exchange, also those whose request or response is still awaited (status pending).
SELECT
  x.exchange_id, x.connection_id, x.agent_id, x.protocol, x.client_ip, x.client_port, x.server_ip, x.server_port,
  x.api_key, x.api_name, x.api_version, x.correlation_id, x.client_id, x.ts, x.request_ts, x.response_ts, x.latency_us,
  x.request_size, x.response_size, x.status, x.request_status, x.response_status, x.service_us
FROM silver.exchanges AS x
UNION ALL
SELECT
  o.exchange_id, o.connection_id, o.agent_id, o.protocol, o.client_ip, o.client_port, o.server_ip, o.server_port,
  o.api_key, o.api_name, o.api_version, o.correlation_id, o.client_id, o.ts,
  CASE WHEN o.direction = 'request' THEN o.ts END AS request_ts,
  CASE WHEN o.direction = 'response' THEN o.ts END AS response_ts,
  CAST(NULL AS BIGINT) AS latency_us,
  CASE WHEN o.direction = 'request' THEN o.size END AS request_size,
  CASE WHEN o.direction = 'response' THEN o.size END AS response_size,
  'pending' AS status,
  CASE WHEN o.direction = 'request' THEN o.decode_status END AS request_status,
  CASE WHEN o.direction = 'response' THEN o.decode_status END AS response_status,
  CAST(NULL AS BIGINT) AS service_us
FROM silver.pending_exchanges AS o
-- After a crash between two writes a completed exchange can stand in both tables until the replay.
WHERE NOT EXISTS (SELECT 1 FROM silver.exchanges AS x WHERE x.exchange_id = o.exchange_id)
