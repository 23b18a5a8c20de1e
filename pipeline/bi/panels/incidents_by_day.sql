-- How many incidents began on each day, by severity?
-- title: Incidents that began
-- reader: on-call engineer
-- chart: bar
-- x: day
-- y: incidents
-- series: severity
-- unit: incidents
SELECT date_trunc('day', i.first_ts) AS day, i.severity, count(*) AS incidents
FROM gold.incidents AS i
GROUP BY date_trunc('day', i.first_ts), i.severity
ORDER BY day, severity
