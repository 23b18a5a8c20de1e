"""Whether a group had read all that was written when it rebalanced."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.analysis.rules.episode import Episode
from pipeline.analysis.tables import Tables


def have_read_all(tables: Tables, episodes: Sequence[Episode]) -> dict[tuple[str, str], bool]:
    """Whether groups (cluster, name) had no lag at their last commits within an episode, where their lag is known."""
    asked = [
        {"cluster": one.cluster, "group": one.subject, "first_us": one.first_us, "last_us": one.last_us}
        for one in episodes
    ]
    answers = tables.of_each(_LAST_LAG, asked)
    return {
        (one.cluster, one.subject): row.lag == 0
        for one, (row,) in zip(episodes, answers, strict=True)
        if row.lag is not None
    }


_LAST_LAG = """
    WITH last AS (
        SELECT arg_max(lag, (ts, ordinal)) AS lag FROM timeline
        WHERE cluster = $cluster AND group_id = $group AND lag IS NOT NULL
            AND epoch_us(ts) BETWEEN $first_us AND $last_us
        GROUP BY topic, partition
    )
    SELECT sum(lag) AS lag FROM last
"""
