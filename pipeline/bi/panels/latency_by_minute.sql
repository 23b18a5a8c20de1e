-- How long did the slowest percent of the requests of each api take, minute by minute, in milliseconds?
-- title: Service time, 99th percentile
-- reader: on-call engineer
-- chart: line
-- x: minute
-- y: p99_ms
-- series: api_name
-- unit: ms
-- Fetch, JoinGroup and SyncGroup wait on purpose: their time is patience, not slowness.
SELECT l.minute, l.api_name, max(l.p99_us) / 1e3 AS p99_ms, max(l.longest_wait_us) / 1e3 AS longest_wait_ms
FROM gold.api_latency AS l
WHERE l.p99_us IS NOT NULL AND l.api_name NOT IN ('Fetch', 'JoinGroup', 'SyncGroup', 'ShareFetch')
GROUP BY l.minute, l.api_name
ORDER BY minute, api_name
