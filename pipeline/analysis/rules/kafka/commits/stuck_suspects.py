"""Partitions of groups that one committer may hold back, by arrays: most partitions of a healthy lake are none."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from decoder.columns import Ints
from pipeline.analysis.columns.nullable import Numbers
from pipeline.analysis.columns.numbering import with_places
from pipeline.analysis.rules.kafka.brokers.shorter import below
from pipeline.analysis.tables import Tables

_PLACE = "(hash(cluster, topic, partition, group_id) >> 1)::BIGINT"
_COMMITS = f"""
    WITH counted AS (
        SELECT cluster, topic, partition, group_id, {_PLACE} AS place, "offset" AS committed, count(*) AS times,
            min(epoch_us(ts)) AS first_us, max(epoch_us(ts)) AS last_us
        FROM events WHERE kind = 'committed' AND "offset" IS NOT NULL
        GROUP BY cluster, topic, partition, group_id, "offset", client_id, member_id, client
    )
    SELECT * FROM counted SEMI JOIN (SELECT place FROM counted WHERE times >= $least) USING (place)
"""
"""How often one committer committed each offset, where any did so often."""
_FETCHES = f"""
    SELECT {_PLACE} AS place, fetch_position AS reached, min(epoch_us(ts)) AS us
    FROM timeline SEMI JOIN often USING (cluster, topic, partition, group_id)
    WHERE kind = 'fetched' AND group_id <> '' AND fetch_position IS NOT NULL
    GROUP BY cluster, topic, partition, group_id, fetch_position
"""


def suspects(tables: Tables, while_committing: int, while_fetching: int) -> pa.Table:
    """Places, numbered, where one committer repeats an offset often, and the group gets further before the last one.

    Args:
        tables: ``events`` and ``timeline``.
        while_committing, while_fetching: how often is often, where the group commits and where it fetches further.

    Returns:
        ``cluster``, ``topic``, ``partition``, ``group_id`` and ``place``, their number.
    """
    commits = tables.table(_COMMITS, least=min(while_committing, while_fetching))
    place, committed, times, first_us, last_us = (
        Numbers.of(commits.column(name)).values for name in ("place", "committed", "times", "first_us", "last_us")
    )
    is_suspect = np.zeros(len(place), np.bool_)

    def suspect(least: int, where: Ints, us: Ints, reached: Ints) -> None:
        often = np.flatnonzero(times >= least)
        is_suspect[often] |= below(where, us, reached, place[often], last_us[often] + 1, committed[often])

    suspect(while_committing, place, first_us, committed)
    tables.add("often", commits.filter(Numbers.all_known(times >= while_fetching).arrow(pa.bool_())))
    fetches = tables.table(_FETCHES)
    suspect(while_fetching, *(Numbers.of(fetches.column(name)).values for name in ("place", "us", "reached")))
    found = commits.select(["cluster", "topic", "partition", "group_id"])
    found = found.filter(Numbers.all_known(is_suspect).arrow(pa.bool_()))
    places = found.group_by(found.column_names).aggregate([])
    return with_places(places)
