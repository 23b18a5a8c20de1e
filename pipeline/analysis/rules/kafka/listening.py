"""Until when a cluster was captured: what was not captured is not silent."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict

from pipeline.analysis.rules.model import Sources
from pipeline.analysis.tables import ADDRESS

DEAF_US = 300_000_000
"""Each client asks for metadata as often (metadata.max.age.ms): longer without a request means not captured."""
_MINUTE_US = 60_000_000


class Listening:
    """When the clusters of ``sources`` were listened to; looks once through all exchanges. Times are µs."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._breaks = _breaks(sources)

    def silent_since_us(self, server: str, until_us: int) -> int | None:
        """Since when nothing was seen of a broker, if that is long: it was silent, or not captured."""
        last_us = self._sources.server_ends.get(server, until_us)
        return last_us if until_us - last_us > DEAF_US else None

    def until_us(self, cluster: str, since_us: int) -> int:
        """Up to when a cluster was listened to without a break since ``since_us``."""
        until_us = self._sources.ends.get(cluster, since_us)
        breaks = self._breaks.get(cluster, [])
        # One that began before can last beyond since_us; of those after it the first one counts.
        place = bisect_right(breaks, since_us, key=lambda each: each[0])
        for first_us, next_us in breaks[max(place - 1, 0) : place + 1]:
            if next_us - max(first_us, since_us) > DEAF_US:
                until_us = min(until_us, max(first_us, since_us))
                break
        return max(until_us, since_us)


def _breaks(sources: Sources) -> dict[str, list[tuple[int, int]]]:
    """By cluster, in the order of time, the last time before each break and the first one after it."""
    rows = sources.tables.rows(f"""
        SELECT {ADDRESS["server"]} AS server, min(epoch_us(ts)) AS first_us, max(epoch_us(ts)) AS last_us
        FROM exchanges WHERE protocol = 'kafka'
        GROUP BY server, epoch_us(ts) // {_MINUTE_US} ORDER BY first_us
    """)
    known_us: dict[str, int] = {}
    found: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    for cluster, row in zip(sources.catalog.clusters_at((row.server, row.first_us) for row in rows), rows, strict=True):
        before_us = known_us.get(cluster)
        if before_us is not None and row.first_us - before_us > DEAF_US:
            found[cluster].append((before_us, row.first_us))
        known_us[cluster] = max(row.last_us, before_us or 0)
    return found
