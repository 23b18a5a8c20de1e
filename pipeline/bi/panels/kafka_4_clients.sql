-- Which clients use request versions that Kafka 4 has removed (KIP-896), with which software, and do they break?
-- title: Clients that Kafka 4 refuses
-- reader: platform owner
-- chart: table
SELECT
  b.verdict, b.client_id, b.client_ip, array_join(b.removed_versions, ', ') AS removed_versions,
  array_join(b.software, ', ') AS software, b.cluster, b.last_ts AS last_seen
FROM breaking_clients AS b
ORDER BY verdict, client_id, client_ip
