-- How many requests per minute got an error, or no response that was due, by api?
-- title: Failed and unanswered requests
-- reader: on-call engineer
-- chart: line
-- x: minute
-- y: failed
-- series: api_name
-- unit: requests a minute
SELECT
  l.minute, coalesce(l.api_name, 'unknown') AS api_name, CAST(sum(l.errors + l.unanswered) AS bigint) AS failed,
  CAST(sum(l.exchanges) AS bigint) AS exchanges
FROM gold.api_latency AS l
GROUP BY l.minute, coalesce(l.api_name, 'unknown')
ORDER BY minute, api_name
