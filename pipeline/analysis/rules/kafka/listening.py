"""Until when was a cluster listened to? What nobody listened to is not silent."""

from __future__ import annotations

from pipeline.analysis.rules.model import Sources
from pipeline.analysis.tables import ADDRESS

_DEAF_US = 300_000_000
"""Each client asks for metadata as often (metadata.max.age.ms): where nothing was seen for longer, nobody listened."""
_MINUTE_US = 60_000_000


def known_until_us(sources: Sources, cluster: str, server: str, since_us: int) -> int:
    """Up to when, µs, a cluster and a broker of it were listened to without a break since ``since_us``."""
    end_us = sources.ends.get(cluster, since_us)
    last_us = sources.server_ends.get(server, end_us)
    until_us = last_us if end_us - last_us > _DEAF_US else end_us
    return max(min(until_us, _before_the_first_break(sources, cluster, since_us, end_us)), since_us)


def _before_the_first_break(sources: Sources, cluster: str, since_us: int, end_us: int) -> int:
    rows = sources.tables.rows(
        f"""
        SELECT {ADDRESS["server"]} AS server, min(epoch_us(ts)) AS first_us, max(epoch_us(ts)) AS last_us
        FROM exchanges WHERE protocol = 'kafka' AND epoch_us(ts) >= $since
        GROUP BY server, epoch_us(ts) // {_MINUTE_US} ORDER BY first_us
        """,
        since=since_us,
    )
    clusters = sources.facts.clusters_at((row.server, row.first_us) for row in rows)
    known_us = since_us
    for row in (row for of, row in zip(clusters, rows, strict=True) if of == cluster):
        if row.first_us - known_us > _DEAF_US:
            return known_us
        known_us = max(known_us, row.last_us)
    return end_us
