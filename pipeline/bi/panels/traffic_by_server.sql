-- How many bytes per second does each server take and give, and in how many requests, minute by minute?
-- title: Traffic of servers
-- reader: capacity planner
-- chart: line
-- x: minute
-- y: bytes_per_second
-- series: server
-- unit: bytes a second
WITH minutes AS (
  SELECT l.minute, l.server, l.exchanges AS requests, l.request_bytes, l.response_bytes FROM gold.api_latency AS l
  UNION ALL
  SELECT m.minute, m.server, m.commands AS requests, m.request_bytes, m.response_bytes FROM gold.mongo_commands AS m
)
SELECT
  b.minute, b.server, sum(b.request_bytes + b.response_bytes) / 60e0 AS bytes_per_second,
  sum(b.request_bytes) / 60e0 AS bytes_in_per_second, sum(b.response_bytes) / 60e0 AS bytes_out_per_second,
  sum(b.requests) / 60e0 AS requests_per_second
FROM minutes AS b
GROUP BY b.minute, b.server
ORDER BY minute, server
