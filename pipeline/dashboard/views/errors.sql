-- Which errors did which client get from which api or command, how often and when?
WITH one_error_a_row AS (
  SELECT x.api_name, x.api_version, x.client_id, x.ts, explode(x.error_names) AS error_name
  FROM silver.exchanges AS x
)
SELECT
  e.api_name, e.error_name, e.client_id, count(*) AS exchanges, min(e.ts) AS first_seen, max(e.ts) AS last_seen
FROM one_error_a_row AS e
GROUP BY e.api_name, e.error_name, e.client_id
