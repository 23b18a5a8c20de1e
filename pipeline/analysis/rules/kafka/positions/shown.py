"""Which signs of groups that read without commits, or lost them, there are: asked once, before longer queries."""

from __future__ import annotations

from pipeline.analysis.rules.model import Sources
from pipeline.analysis.tables import Row

COMMITS_OF_ANY = "('committed', 'commit_rejected', 'txn_committed', 'txn_commit_rejected', 'txn_applied')"
LEFT_US = 60_000_000
"""For how long a partition is left out, at least."""
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
                < max(event_offset) FILTER (kind IN ('committed', 'txn_applied')) AS is_older,
            max(high_watermark) AS "end", bool_or(kind = 'produced') AS is_written,
            max(epoch_us(ts)) FILTER (kind = 'fetched' AND isolation_level IS NOT NULL) AS read_us,
            max(epoch_us(ts)) FILTER (kind IN ('committed', 'fetched_commit')) AS known_us,
            max(CASE kind WHEN 'fetched' THEN fetch_position WHEN 'committed' THEN event_offset END) AS position
        FROM timeline GROUP BY ALL
    ), of_groups AS (
        SELECT bool_or(commits) AS commits, bool_or(reads AND NOT commits) AS is_uncommitted,
            bool_or(out_of_range) AS out_of_range, max(without) AS without, max(last_us) - min(first_us) AS read_us,
            bool_or(is_older) AS is_older
        FROM places WHERE group_id <> '' GROUP BY cluster, group_id
    ), beside AS (
        SELECT greatest(read_us, known_us) AS sign_us, position,
            max("end") OVER (PARTITION BY cluster, topic, partition) AS "end",
            max(read_us) OVER (PARTITION BY cluster, topic, group_id) AS others_us,
            count(read_us) OVER (PARTITION BY cluster, topic, group_id) AS read_ones,
            count(*) FILTER (is_written) OVER (PARTITION BY cluster, topic) AS written_ones
        FROM places
    ), left_out AS (
        SELECT bool_or((others_us - sign_us >= {LEFT_US} AND "end" > coalesce(position, 0))
            OR (read_ones >= 2 AND read_ones < written_ones)) AS is_left
        FROM beside
    )
    SELECT coalesce(bool_or(commits AND is_uncommitted), false) AS is_uncommitted,
        coalesce(bool_or(out_of_range), false) AS out_of_range, coalesce(max(without), 0) AS without,
        coalesce(max(read_us) FILTER (NOT commits), 0) AS read_us, coalesce(bool_or(is_older), false) AS is_older,
        coalesce((SELECT is_left FROM left_out), false) AS is_left
    FROM of_groups
"""


def shown(sources: Sources) -> Row:
    """What is shown of all groups.

    Returns:
        Whether groups commit and read without commits (``is_uncommitted``); whether OFFSET_OUT_OF_RANGE was answered;
        how often one place had no commit (``without``); how long a group read that commits nothing (``read_us``, µs);
        whether an answer to OffsetFetch may be older than a commit before it (``is_older``); whether a partition is
        not read although others of its topic are (``is_left``).
    """

    def found() -> Row:
        (row,) = sources.tables.rows(_SHOWN)
        return row

    return sources.once("what groups show", found)
