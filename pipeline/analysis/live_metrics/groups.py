"""Groups that are behind, by how much, and whether they catch up: from ``gold.offset_timeline``.

Lag falls with each commit and grows until the next, so two looks at it at any moments say little. A trend is taken from
commit to commit; of a group that has not committed for three of its own periods, since its last commit; of one that
never did, over the window.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from pipeline.analysis.live_metrics.lag import lag_now, lag_seconds_now
from pipeline.analysis.live_metrics.window import Window
from pipeline.analysis.tables import Row, Tables

BUCKETS = 12
"""Looks at the lag in a window."""
_PERIODS = 3
_LEAST_QUIET_US = 5_000_000
_GROWS = 0.05
"""Records per second."""
_PLACE = "cluster, topic, partition, group_id"
_ROWS = """
    SELECT timeline.*, epoch_us(ts) AS us, coalesce(incarnation, 0) AS made,
        greatest(0, ceil((epoch_us(ts) - $first) * $buckets / ($last - $first)))::INT AS bucket
    FROM timeline SEMI JOIN (
        SELECT cluster, topic, max(coalesce(incarnation, 0)) AS newest FROM timeline GROUP BY cluster, topic
    ) AS living ON living.cluster = timeline.cluster AND living.topic = timeline.topic
        AND living.newest = coalesce(timeline.incarnation, 0)
    WHERE epoch_us(ts) <= $last
"""
"""Of the topic that bears its name now; bucket 0 is what was before the window."""
_ENDS = f"""
    WITH rows AS ({_ROWS})
    SELECT cluster, topic, partition, bucket, arg_max(high_watermark, (us, exchange_id, ordinal)) AS high
    FROM rows WHERE high_watermark IS NOT NULL GROUP BY ALL
"""
_STOOD = f"""
    WITH rows AS ({_ROWS})
    SELECT {_PLACE}, bucket, max(us) AS us, unnest(arg_max(
        {{'committed': committed_offset, 'lag': lag, 'lag_seconds': lag_seconds, 'high': high_watermark}},
        (us, exchange_id, ordinal)
    ))
    FROM rows WHERE group_id <> '' AND lag IS NOT NULL GROUP BY {_PLACE}, bucket
"""
_CLUSTERS = "SELECT cluster, max(epoch_us(ts)) AS us FROM timeline WHERE epoch_us(ts) <= $last GROUP BY cluster"
"""Ages are as of the last word of their cluster: what is not mentioned any more grows no older."""
_COMMITS = f"""
    WITH rows AS ({_ROWS}), commits AS (
        SELECT *, max(us) OVER (PARTITION BY {_PLACE}) AS last_us FROM rows
        WHERE kind IN ('committed', 'txn_applied') AND lag IS NOT NULL AND group_id <> ''
    )
    SELECT {_PLACE}, max(us) AS last_us, arg_max(lag, (us, exchange_id, ordinal)) AS last_lag, min(us) AS first_us,
        count(DISTINCT us) AS commits,
        coalesce(max(us) FILTER (us <= last_us - $length), min(us)) AS before_us,
        coalesce(
            arg_max(lag, (us, exchange_id, ordinal)) FILTER (us <= last_us - $length),
            arg_min(lag, (us, exchange_id, ordinal))
        ) AS before_lag
    FROM commits GROUP BY {_PLACE}
"""
"""The last commit, and the last one that was a window earlier, or the first."""
_REFUSED = """
    SELECT cluster, group_id, count(*) AS refused FROM timeline
    WHERE kind IN ('commit_rejected', 'txn_commit_rejected') AND group_id <> '' AND epoch_us(ts) > $first
        AND epoch_us(ts) <= $last
    GROUP BY cluster, group_id
"""
_MEMBERS = """
    WITH last_statements AS (
        SELECT cluster, group_id, member_id, arg_max(kind, (ts, exchange_id, ordinal)) AS kind
        FROM states
        WHERE kind IN ('join', 'assignment', 'heartbeat', 'group', 'leave') AND error_code = 0
            AND coalesce(group_id, '') <> '' AND coalesce(member_id, '') <> ''
            AND epoch_us(ts) > $first AND epoch_us(ts) <= $last
        GROUP BY cluster, group_id, member_id
    )
    SELECT cluster, group_id, count(*) FILTER (kind <> 'leave') AS members FROM last_statements
    GROUP BY cluster, group_id
"""


@dataclass(frozen=True, slots=True)
class GroupNow:
    """A consumer group as it is.

    Attributes:
        members: seen in the window, without those that have left.
        partitions: those with a known lag.
        lag: records in all of them; None if it is known of none.
        behind_s: age of the oldest record that waits, s, as of the last word of its cluster; None if not known.
        lags: lag at BUCKETS moments of the window, None where it was not known of all partitions.
        trend: records by which the lag grows per second (below 0: it shrinks); None if not known.
        made, taken: records per second that were added to its partitions and that it committed.
        worst: topic, partition and lag where it is most behind; None where nothing waits.
        commit_us: last accepted commit, µs since the epoch; None if none was seen.
        refused: commits that were refused in the window.
    """

    cluster: str
    group_id: str
    members: int = 0
    partitions: int = 0
    lag: int | None = None
    behind_s: float | None = None
    lags: tuple[int | None, ...] = ()
    trend: float | None = None
    made: float | None = None
    taken: float | None = None
    worst: tuple[str, int, int] | None = None
    commit_us: int | None = None
    refused: int = 0

    @property
    def is_growing(self) -> bool:
        """Whether its lag grows."""
        return self.trend is not None and self.trend >= _GROWS


@dataclass(slots=True)
class _Place:
    """A partition of a group: by bucket of the window what was known at its end, None before anything was."""

    topic: str
    partition: int
    lags: list[int | None]
    highs: list[int | None]
    committed: list[int | None]
    behind_s: float | None
    trend: float | None
    commit_us: int | None


def groups_now(timeline: pa.Table, states: pa.Table, window: Window) -> list[GroupNow]:
    """All groups, by cluster and name.

    Args:
        timeline: rows of ``gold.offset_timeline``.
        states: rows of ``silver.state_events``; of a connection that two agents saw, one copy.
        window: the span that rates, trends and members are taken over.
    """
    span = {"first": window.first_us, "last": window.last_us}
    cut = {**span, "buckets": BUCKETS}
    tables = Tables({"timeline": timeline, "states": states})
    try:
        last_seen = {row.cluster: row.us for row in tables.rows(_CLUSTERS, last=window.last_us)}
        ends = _by_bucket(tables.rows(_ENDS, **cut), ("cluster", "topic", "partition"))
        stood = _by_bucket(tables.rows(_STOOD, **cut), ("cluster", "topic", "partition", "group_id"))
        commits = {
            (row.cluster, row.topic, row.partition, row.group_id): row
            for row in tables.rows(_COMMITS, **cut, length=window.last_us - window.first_us)
        }
        refused = {(row.cluster, row.group_id): row.refused for row in tables.rows(_REFUSED, **span)}
        members = {(row.cluster, row.group_id): row.members for row in tables.rows(_MEMBERS, **span)}
    finally:
        tables.close()
    places: defaultdict[tuple[str, str], list[_Place]] = defaultdict(list)
    for key, looks in stood.items():
        cluster, topic, partition, group_id = key
        places[cluster, group_id].append(
            _place(topic, partition, looks, ends.get(key[:3], {}), commits.get(key), window, last_seen[cluster])
        )
    return [
        _group(*key, places.get(key, []), members.get(key, 0), refused.get(key, 0), window)
        for key in sorted({*places, *refused, *members})
    ]


def _by_bucket(rows: Iterable[Row], key: tuple[str, ...]) -> dict[tuple[Any, ...], dict[int, Row]]:
    found: defaultdict[tuple[Any, ...], dict[int, Row]] = defaultdict(dict)
    for row in rows:
        found[tuple(getattr(row, name) for name in key)][row.bucket] = row
    return found


def _place(
    topic: str, partition: int, looks: Mapping[int, Row], ends: Mapping[int, Row], commits: Row | None, window: Window,
    seen_us: int,
) -> _Place:  # fmt: skip
    lags, highs, committed = [], [], []
    stood: Row | None = None
    high: int | None = None
    for bucket in range(BUCKETS + 1):
        stood = looks.get(bucket, stood)
        high = ends[bucket].high if bucket in ends else high
        lags.append(_lag(stood, high))
        highs.append(high)
        committed.append(stood.committed if stood is not None else None)
    lag = lags[-1]
    behind_s = None if stood is None else lag_seconds_now(lag, stood.lag, stood.lag_seconds, seen_us - stood.us)
    return _Place(
        topic, partition, lags, highs, committed, behind_s, _trend(commits, lags, window),
        None if commits is None else commits.last_us,
    )  # fmt: skip


def _lag(stood: Row | None, high: int | None) -> int | None:
    """How far behind a group is that was there, now that the log ends at ``high``."""
    if stood is None:
        return None
    return lag_now(stood.lag, stood.high, stood.committed, high)


def _trend(commits: Row | None, lags: list[int | None], window: Window) -> float | None:
    """See the module."""
    lag = lags[-1]
    if lag is None:
        return None
    if commits is None:
        first = next(number for number, one in enumerate(lags) if one is not None)
        begin = lags[first] or 0
        return (lag - begin) * BUCKETS / (window.seconds * (BUCKETS - first)) if first < BUCKETS else None
    quiet_us = window.last_us - commits.last_us
    is_rhythm_known = commits.commits > 1
    period_us = (commits.last_us - commits.first_us) / (commits.commits - 1) if is_rhythm_known else 0
    patience_us = max(_PERIODS * period_us, _LEAST_QUIET_US) if is_rhythm_known else 1e6 * window.seconds
    if quiet_us > patience_us:
        return float((lag - commits.last_lag) * 1e6 / quiet_us)
    if commits.last_us == commits.before_us:
        return None
    return float((commits.last_lag - commits.before_lag) * 1e6 / (commits.last_us - commits.before_us))


def _group(cluster: str, group_id: str, places: list[_Place], members: int, refused: int, window: Window) -> GroupNow:
    if not places:
        return GroupNow(cluster, group_id, members, refused=refused)
    bucket_s = window.seconds / BUCKETS
    lag = _total(place.lags[-1] for place in places)
    worst = max(places, key=lambda place: (place.lags[-1] or 0, place.topic, -place.partition))
    return GroupNow(
        cluster,
        group_id,
        members,
        len(places),
        None if lag is None else int(lag),
        max((place.behind_s for place in places if place.behind_s is not None), default=None),
        tuple(_whole(place.lags[bucket] for place in places) for bucket in range(1, BUCKETS + 1)),
        _total(place.trend for place in places),
        _total(rate for place in places for rate in _grown(place.highs, bucket_s)),
        _total(rate for place in places for rate in _grown(place.committed, bucket_s)),
        (worst.topic, worst.partition, most) if (most := worst.lags[-1]) else None,
        max((place.commit_us for place in places if place.commit_us is not None), default=None),
        refused,
    )


def _total(values: Iterable[float | None]) -> float | None:
    """The sum of those that are known; None without any."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _whole(values: Iterable[int | None]) -> int | None:
    """The sum, None if one of them is not known."""
    found = list(values)
    return None if None in found else sum(value for value in found if value is not None)


def _grown(offsets: list[int | None], bucket_s: float) -> Iterator[float]:
    """By how much an offset grew a second, from the bucket in which it was known first."""
    first = next((number for number, offset in enumerate(offsets) if offset is not None), None)
    if first is None or first == BUCKETS:
        return
    begin, end = offsets[first], offsets[-1]
    if begin is not None and end is not None:
        yield max(end - begin, 0) / ((BUCKETS - first) * bucket_s)
