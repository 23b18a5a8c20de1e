"""Computes what Burrow would have said of a recording at each of its polls.

It asks for the ends of logs each ten seconds, and its HTTP endpoint tells what follows from them; its notifier looks
each minute (`pipeline/analysis/rules/kafka/progress/burrow.py`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

import pyarrow as pa

from pipeline.analysis.rules.kafka.progress.burrow import LOOK_US, POLL_US, BurrowState, Partition
from pipeline.analysis.rules.kafka.progress.lagging import burrow_partition, group_points, points_of
from pipeline.analysis.tables import Row, Tables

_SECOND = 1_000_000


@dataclass(frozen=True)
class Alarm:
    """A span of polls at which Burrow finds a group ill: the first state, when it was first and last said, µs."""

    state: str
    first_us: int
    last_us: int


@dataclass(frozen=True)
class Watched:
    """A group that commits, and what Burrow says of it.

    Attributes:
        alarms: in order of time.
        looked_us: looks of its notifier (one a minute) at which it was ill, µs since the epoch.
        period_s: between the commits of a partition, the median, in seconds; None if none has two.
    """

    alarms: Sequence[Alarm]
    looked_us: Sequence[int]
    period_s: float | None

    def alarm_at(self, us: int) -> Alarm | None:
        """The one that is at a time, µs since the epoch."""
        return next((alarm for alarm in self.alarms if alarm.first_us < us <= alarm.last_us), None)

    def alarm_after(self, us: int) -> Alarm | None:
        """The first that begins then or later."""
        return next((alarm for alarm in self.alarms if alarm.first_us >= us), None)

    def look_after(self, us: int) -> int | None:
        """The first look then or later at which it is ill, µs since the epoch."""
        return next((look for look in self.looked_us if look >= us), None)


def groups_watched(timeline: pa.Table) -> dict[str, Watched]:
    """All groups that commit, by name.

    Args:
        timeline: rows of `gold.offset_timeline` of one recording; Burrow begins with the first.
    """
    tables = Tables({"timeline": timeline})
    try:
        rows: defaultdict[tuple[str, str], list[Row]] = defaultdict(list)
        for row in group_points(tables):
            rows[row.group_id, row.topic].append(row)
        (span,) = tables.rows("SELECT min(epoch_us(ts)) AS first_us, max(epoch_us(ts)) AS last_us FROM timeline")
    finally:
        tables.close()
    if not rows:
        return {}
    known: defaultdict[str, list[Partition]] = defaultdict(list)
    gaps: defaultdict[str, list[int]] = defaultdict(list)
    for (group, _), some in rows.items():
        for points in points_of(some).values():
            partition = burrow_partition(points, span.first_us)
            known[group].append(partition)
            gaps[group] += [after - before for (before, _), (after, _) in pairwise(partition.offsets)]
    return {
        group: _watched(partitions, gaps[group], span.first_us, span.last_us) for group, partitions in known.items()
    }


def _watched(partitions: Sequence[Partition], gaps: Sequence[int], first_us: int, last_us: int) -> Watched:
    alarms: list[Alarm] = []
    looked = []
    for poll_us in range(first_us + POLL_US, last_us + POLL_US, POLL_US):
        state = max(one.state(poll_us) for one in partitions)
        if state < BurrowState.WARN:
            continue
        if alarms and alarms[-1].last_us == poll_us - POLL_US:
            alarms[-1] = Alarm(alarms[-1].state, alarms[-1].first_us, poll_us)
        else:
            alarms.append(Alarm(state.name, poll_us, poll_us))
        if (poll_us - first_us) % LOOK_US == 0:
            looked.append(poll_us)
    return Watched(alarms, looked, median(gaps) / _SECOND if gaps else None)


def told_of_health(watched: Mapping[str, Watched], since_us: int) -> str:
    """Groups that Burrow finds ill: what it says first, and from when to when, in seconds after ``since_us``."""
    return "; ".join(
        f"{group} {alarm.state} {(alarm.first_us - since_us) // _SECOND} to {(alarm.last_us - since_us) // _SECOND} s"
        for group, one in sorted(watched.items())
        for alarm in one.alarms
    )


@dataclass(frozen=True)
class Beside:
    """A finding beside Burrow.

    Attributes:
        state: what Burrow says of its groups after the incident began; OK if it says nothing of it.
        polled_us: when a poll gives that, µs since the epoch; None: never.
        looked_us: when its notifier looks while it holds, µs since the epoch; None: never.
    """

    state: str
    polled_us: int | None = None
    looked_us: int | None = None


def beside(watched: Mapping[str, Watched], groups: Sequence[str], began_us: int) -> Beside | None:
    """What Burrow says first of any of these groups; None if none of them commits.

    An alarm that was there before says nothing new.
    """
    known = [watched[group] for group in groups if group in watched]
    if not known:
        return None
    news = [(alarm, one) for one in known if (alarm := one.alarm_after(began_us)) is not None]
    if not news:
        old = [alarm.state for one in known if (alarm := one.alarm_at(began_us)) is not None]
        return Beside(f"{old[0]}, as before" if old else "OK")
    alarm, group = min(news, key=lambda each: each[0].first_us)
    return Beside(alarm.state, alarm.first_us, group.look_after(alarm.first_us))
