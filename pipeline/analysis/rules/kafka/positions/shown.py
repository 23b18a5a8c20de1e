"""Which signs of groups that read without commits, or lost them, there are: asked once, before longer queries."""

from __future__ import annotations

from pipeline.analysis.rules.model import Sources
from pipeline.analysis.tables import Row

COMMITS_OF_ANY = "('committed', 'commit_rejected', 'txn_committed', 'txn_commit_rejected', 'txn_applied')"
_SHOWN = f"""
    WITH places AS (
        SELECT cluster, topic, partition, group_id, bool_or(kind IN {COMMITS_OF_ANY}) AS commits,
            bool_or(kind IN ('fetched', 'fetched_commit')) AS reads,
            bool_or(kind = 'fetch_rejected' AND error_name = 'OFFSET_OUT_OF_RANGE') AS out_of_range,
            count(*) FILTER (kind = 'fetched_commit' AND event_offset IS NULL AND error_name = 'NONE') AS without,
            min(epoch_us(ts)) FILTER (kind = 'fetched') AS first_us,
            max(epoch_us(ts)) FILTER (kind = 'fetched') AS last_us,
            max(ts) FILTER (kind = 'fetched_commit' AND event_offset IS NOT NULL)
                > min(ts) FILTER (kind IN ('committed', 'txn_applied'))
                AND min(event_offset) FILTER (kind = 'fetched_commit')
                < max(event_offset) FILTER (kind IN ('committed', 'txn_applied')) AS is_older
        FROM timeline GROUP BY ALL
    ), of_groups AS (
        SELECT group_id <> '' AS is_known, bool_or(commits) AS commits,
            bool_or(reads AND NOT commits) AS is_uncommitted, bool_or(out_of_range) AS out_of_range,
            max(without) AS without, min(first_us) AS first_us, max(last_us) AS last_us, bool_or(is_older) AS is_older
        FROM places GROUP BY cluster, group_id
    )
    SELECT coalesce(bool_or(commits AND is_uncommitted) FILTER (is_known), false) AS is_uncommitted,
        coalesce(bool_or(out_of_range) FILTER (is_known), false) AS out_of_range,
        coalesce(max(without) FILTER (is_known), 0) AS without,
        coalesce(max(last_us - first_us) FILTER (is_known AND NOT commits), 0) AS read_us,
        coalesce(bool_or(is_older) FILTER (is_known), false) AS is_older,
        coalesce(max(last_us) - min(first_us), 0) AS fetched_us
    FROM of_groups
"""


def shown(sources: Sources) -> Row:
    """What is shown of all groups.

    Returns:
        Whether groups commit and read without commits (``is_uncommitted``); whether OFFSET_OUT_OF_RANGE was answered;
        how often one place had no commit (``without``); how long a group read that commits nothing (``read_us``, µs);
        whether an answer to OffsetFetch may be older than a commit before it (``is_older``); for how long
        anybody fetched (``fetched_us``, µs).
    """

    def found() -> Row:
        (row,) = sources.tables.rows(_SHOWN)
        return row

    return sources.once("what groups show", found)
