-- How long do answers take, for each api, version and client, waiting behind earlier requests of the connection apart?
WITH ranked AS (
  SELECT
    x.api_name, x.api_version, x.client_id, x.latency_us, coalesce(x.service_us, x.latency_us) AS took_us,
    row_number() OVER (
      PARTITION BY x.api_name, x.api_version, x.client_id ORDER BY coalesce(x.service_us, x.latency_us)
    ) AS position,
    count(*) OVER (PARTITION BY x.api_name, x.api_version, x.client_id) AS total
  FROM silver.exchanges AS x
  WHERE x.latency_us IS NOT NULL
)
-- By nearest rank, in microseconds: the two engines' own percentile functions differ; whole numbers do not.
SELECT
  r.api_name, r.api_version, r.client_id,
  count(*) AS exchanges,
  min(CASE WHEN r.position * 100 >= r.total * 50 THEN r.took_us END) AS p50_us,
  min(CASE WHEN r.position * 100 >= r.total * 95 THEN r.took_us END) AS p95_us,
  min(CASE WHEN r.position * 100 >= r.total * 99 THEN r.took_us END) AS p99_us,
  max(r.took_us) AS max_us,
  max(try_subtract(r.latency_us, r.took_us)) AS longest_wait_us
FROM ranked AS r
GROUP BY r.api_name, r.api_version, r.client_id
