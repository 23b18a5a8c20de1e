"""Who was given which partition in which generation: ``silver.state_events`` → ``silver.assignments``.

The days that have news are taken in again; rows that are there already are merged with theirs
(:mod:`pipeline.analysis.ownership.assignments`), so that the result does not depend on how often a day is taken in.
"""

from __future__ import annotations

from datetime import date

from pyspark.sql import functions as F  # noqa: N812 - the usual name

from pipeline.analysis.cluster_catalog import ClusterCatalog
from pipeline.analysis.ownership.assignments import KINDS, assignments
from pipeline.streaming.storage.lake_io import LakeIO
from pipeline.streaming.storage.sinks import delete_rows
from pipeline.streaming.storage.table_scan import TableScan
from pipeline.tables import ASSIGNMENTS, STATE_EVENTS

_SAME = (
    "t.generation = s.generation AND t.cluster = s.cluster AND t.group_id = s.group_id AND t.member_id = s.member_id "
    "AND (coalesce(t.topic_id, t.topic) IS NOT DISTINCT FROM coalesce(s.topic_id, s.topic)) "
    "AND (t.partition IS NOT DISTINCT FROM s.partition) AND (t.subtopology IS NOT DISTINCT FROM s.subtopology)"
)
_OF_SERVERS = "SELECT 1 AS one FROM rows WHERE cluster IN (SELECT unnest($servers::VARCHAR[])) LIMIT 1"


def refresh_assignments(rows: LakeIO, first: date) -> None:
    """Take in the statements of the days from ``first`` on."""
    states = TableScan(STATE_EVENTS, from_day=first, kinds=KINDS, once=True)
    generations = rows.bounds(states, "generation")
    if generations is None:
        return
    held = TableScan(ASSIGNMENTS, between={"generation": generations})
    changed = rows.derive(
        lambda tables: assignments(tables["states"], tables["held"]),
        {"states": states, "held": held},
        ("cluster", "group_id"),
        ASSIGNMENTS,
    )
    # What the key holds anyway lets Delta skip the files of other generations.
    rows.merge(changed, ASSIGNMENTS, _SAME, {"generation": generations})


def drop_provisional(rows: LakeIO, catalog: ClusterCatalog) -> None:
    """Delete rows of a server whose cluster was learned since: their statements come again under the cluster's id."""
    if rows.is_empty(ASSIGNMENTS):
        return
    servers = sorted({server for server, _ in catalog.brokers})
    if rows.lake.is_local and not rows.ask(TableScan(ASSIGNMENTS), _OF_SERVERS, servers=servers):
        return
    delete_rows(rows.spark, rows.lake, ASSIGNMENTS, F.col("cluster").isin(servers))
