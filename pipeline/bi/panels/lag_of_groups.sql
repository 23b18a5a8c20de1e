-- How far behind is each consumer group on each topic now, in records and in seconds?
-- title: Lag of consumer groups
-- reader: on-call engineer
-- chart: table
SELECT
  c.cluster, c.group_id, c.topic, count(*) AS partitions,
  CAST(sum(c.lag) AS bigint) AS lag, max(c.lag) AS worst_partition, max(c.lag_seconds) AS lag_seconds,
  count(*) - count(c.lag) AS partitions_unknown, max(c.group_seen) AS last_seen
FROM consumer_lag AS c
GROUP BY c.cluster, c.group_id, c.topic
ORDER BY lag DESC
