"""Refused commits that were made good: by the member, which commits again, or by the partition's next owner.

A rebalance refuses commits that were under way, and a member whose epoch has moved on (KIP-848) learns of it by
STALE_MEMBER_EPOCH: both continue at their next period.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median

import pyarrow as pa

from pipeline.analysis.rules.episode import Shown
from pipeline.analysis.rules.kafka.commits.commit_rejected import CommitRejected
from pipeline.analysis.tables import Tables

_PERIODS = 3
_STALE_EPOCH = "STALE_MEMBER_EPOCH"
_COMMITS = """
    SELECT exchange_id, cluster, group_id, client, epoch_us(ts) AS us,
        bool_and(kind IN ('committed', 'txn_committed')) AS taken,
        bool_or(coalesce(member_id, '') <> '' OR coalesce(generation, -1) >= 0) AS inside
    FROM events SEMI JOIN doubts USING (cluster, group_id, client)
    WHERE kind IN ('committed', 'txn_committed', 'commit_rejected', 'txn_commit_rejected')
    GROUP BY exchange_id, cluster, group_id, client, ts ORDER BY ts, exchange_id
"""
_BY_ANOTHER = """
    WITH refused AS (
        SELECT exchange_id, cluster, group_id, topic, partition, "offset" AS wanted, epoch_us(ts) AS us, until_us
        FROM events JOIN (SELECT DISTINCT exchange_id, until_us FROM doubts) USING (exchange_id)
        WHERE kind IN ('commit_rejected', 'txn_commit_rejected')
    ), taken AS (
        SELECT cluster, group_id, topic, partition, "offset" AS reached, epoch_us(ts) AS taken_us
        FROM events WHERE kind IN ('committed', 'txn_committed')
    ), last AS (
        SELECT exchange_id, us, wanted, reached, taken_us FROM refused
        ASOF LEFT JOIN taken ON refused.cluster = taken.cluster AND refused.group_id = taken.group_id
            AND refused.topic = taken.topic AND refused.partition = taken.partition
            AND refused.until_us >= taken.taken_us
    )
    SELECT exchange_id, max(taken_us) AS us FROM last GROUP BY exchange_id
    HAVING bool_and(coalesce(taken_us > us AND reached >= wanted, false))
"""
"""Of each refused exchange whether all its offsets are reached at the end of the time that it has."""


@dataclass(slots=True)
class _Committer:
    """Commits of one connection to one group: when, which were taken whole, and how many were refused in a row."""

    times_us: list[int] = field(default_factory=list)
    taken_us: list[int] = field(default_factory=list)
    is_inside: dict[str, bool] = field(default_factory=dict)
    refused: dict[int, int] = field(default_factory=dict)

    def period_us(self) -> int:
        """The usual time from one commit to the next; 0 if there are fewer than three."""
        gaps = [later - earlier for earlier, later in pairwise(self.times_us)]
        return round(median(gaps)) if len(gaps) > 1 else 0

    def in_a_row(self, us: int) -> int:
        """How many were refused between the success before a time and the one after it."""
        return self.refused.get(bisect_right(self.taken_us, us), 0)

    def next_taken(self, us: int) -> int | None:
        """The next success after a time."""
        place = bisect_right(self.taken_us, us)
        return self.taken_us[place] if place < len(self.taken_us) else None


def commit_repairs(
    refused: Mapping[int, tuple[str, Shown]],
    tables: Tables,
    ends: Mapping[str, int],
    settings: CommitRejected.Thresholds,
) -> dict[int, int]:
    """When refused commits were made good, µs since the epoch, by their number; those that were not are left out.

    Made good is what is accepted of the same member within ``commit_repair_seconds``, or three of its own periods if
    they are longer; or what the partition's owner commits in that time, unless the member is refused again and again.
    Where the data ends before that, it is taken as made good then: too little was seen.

    Args:
        refused: by number cluster and symptom.
        tables: ``events``.
        ends: by cluster the time of the last exchange, µs since the epoch.
        settings: how long a commit has.
    """
    floor_us = int(settings.commit_repair_seconds * 1_000_000)
    places = [(cluster, one.group_id, one.client) for cluster, one in refused.values()]
    tables.add("doubts", pa.table(dict(zip(("cluster", "group_id", "client"), zip(*places, strict=True), strict=True))))
    committers = _committers(tables)
    until: dict[int, int] = {}
    for number, (cluster, one) in refused.items():
        by = committers[cluster, one.group_id, one.client]
        until[number] = one.us + one.latency_us + max(floor_us, _PERIODS * by.period_us())
    ids = [one.exchange_id for _, one in refused.values()]
    tables.add("doubts", pa.table({"exchange_id": ids, "until_us": list(until.values())}))
    by_another = {row.exchange_id: row.us for row in tables.rows(_BY_ANOTHER)}
    healed: dict[int, int] = {}
    for number, (cluster, one) in refused.items():
        by, answered_us = committers[cluster, one.group_id, one.client], one.us + one.latency_us
        again_us, end_us = by.next_taken(answered_us), ends.get(cluster, until[number])
        is_loop = by.in_a_row(answered_us) >= settings.commit_rejected_times_rebalancing
        if again_us is not None and again_us <= until[number]:
            healed[number] = again_us
        elif not by.is_inside.get(one.exchange_id, True):
            continue
        elif not is_loop and one.exchange_id in by_another:
            healed[number] = by_another[one.exchange_id]
        elif end_us < until[number] and (not is_loop or one.what == _STALE_EPOCH):
            healed[number] = end_us
    return healed


def _committers(tables: Tables) -> defaultdict[tuple[str, str | None, str], _Committer]:
    found: defaultdict[tuple[str, str | None, str], _Committer] = defaultdict(_Committer)
    for row in tables.rows(_COMMITS):
        by = found[row.cluster, row.group_id, row.client]
        by.times_us.append(row.us)
        by.is_inside[row.exchange_id] = row.inside
        if row.taken:
            by.taken_us.append(row.us)
        else:
            by.refused[len(by.taken_us)] = by.refused.get(len(by.taken_us), 0) + 1
    return found
