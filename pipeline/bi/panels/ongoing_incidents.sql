-- Which incidents are ongoing, how bad are they, and what stops the damage?
-- title: Ongoing incidents
-- reader: on-call engineer
-- chart: table
SELECT
  i.severity, i.headline, i.impact, i.immediate_action, i.source, i.affected, i.rule, i.cluster, i.first_ts, i.last_ts
FROM gold.incidents AS i
WHERE i.state = 'ongoing'
ORDER BY i.urgency
