"""Rules about groups that do not get on: they lag more and more, stop, stall, go back, or leave out a partition.

One query cuts ``gold.offset_timeline`` into short spans of time and hands each group's spans of one topic to
:func:`pipeline.analysis.rules.kafka.progress.judge`. Beside each finding stands what Burrow would report at its end.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import attrgetter
from typing import Any

from pipeline.analysis.rules.kafka import burrow, track
from pipeline.analysis.rules.kafka.progress import judge_lives
from pipeline.analysis.rules.kafka.track import SPAN_US, Fall, Point, Trouble
from pipeline.analysis.rules.model import Finding, Sources, clock, seconds
from pipeline.analysis.rules.rule import Rule, finds
from pipeline.analysis.tables import ADDRESS, Row, Tables
from pipeline.settings import FindingSettings

_of_group = attrgetter("cluster", "topic", "group_id")


@dataclass(frozen=True, slots=True)
class _Rule:
    severity: str
    advice: str
    summary: Callable[[_Found, str, Mapping[str, Any]], str]


@dataclass(frozen=True, slots=True)
class _Found:
    """A trouble of a group with one topic, and what Burrow would report at its end."""

    cluster: str
    topic: str
    group_id: str
    trouble: Trouble
    burrow: str

    @property
    def first_us(self) -> int:
        return self.trouble.first_us

    @property
    def last_us(self) -> int:
        return self.trouble.last_us

    @property
    def is_open(self) -> bool:
        return self.trouble.is_open

    @property
    def is_silence(self) -> bool:
        """Whether it may be that the group's commits were not seen."""
        return self.trouble.rule == track.STOPPED and self.is_open and bool(self.trouble.evidence)


RULES = (
    Rule(
        "lag_growing",
        "kafka",
        ("warning",),
        "A group works and commits, but more is written than it takes.",
        ("lag_growing_records", "lag_growing_work_seconds", "lag_growing_seconds"),
        reads=("timeline",),
    ),
    Rule(
        "stopped",
        "kafka",
        ("critical", "warning"),
        "A group no longer commits a topic at all, while records come to wait.",
        ("behind_records", "stopped_seconds"),
        reads=("timeline", "exchanges"),
    ),
    Rule(
        "stalled",
        "kafka",
        ("critical",),
        "A group commits one and the same offset of a partition, while records wait behind it.",
        ("behind_records", "stalled_commits", "stalled_seconds"),
        reads=("timeline",),
    ),
    Rule(
        "rewound",
        "kafka",
        ("warning",),
        "A group went back to an earlier offset and reads again from there.",
        ("behind_records",),
        reads=("timeline",),
    ),
    Rule(
        "commit_regressed",
        "kafka",
        ("warning",),
        "The broker accepted a commit that is older than the one before it.",
        (),
        reads=("timeline",),
    ),
    Rule(
        "partition_dropped_from_commits",
        "kafka",
        ("critical",),
        "A group goes on committing a topic, but not one of its partitions, which has records to read.",
        ("behind_records", "dropped_commits", "dropped_seconds"),
        reads=("timeline",),
    ),
)


@finds(*RULES)
def find(sources: Sources, settings: FindingSettings) -> list[Finding]:
    """Apply the rules."""
    found = []
    for (cluster, topic, group_id), rows in groupby(group_points(sources.tables), key=_of_group):
        partitions = points_of(rows)
        anew, end_us = sources.made_anew.get((cluster, topic), ()), sources.ends.get(cluster, 0)
        troubles = judge_lives(partitions, anew, settings, end_us)
        in_order = sorted(troubles, key=lambda t: (t.rule, -1 if t.partition is None else t.partition))
        found += [_Found(cluster, topic, group_id, one, _burrow_at(partitions, one)) for one in in_order]
    last_seen = _coordinators_seen(sources, [one for one in found if one.is_silence])
    return [_doubted(_finding(one), one, last_seen) if one.is_silence else _finding(one) for one in found]


def _coordinators_seen(sources: Sources, silences: Sequence[_Found]) -> dict[str, int]:
    """By the exchange of a group's last commit, when its coordinator was last seen, µs."""
    if not silences:
        return {}
    rows = sources.tables.rows(
        f"SELECT exchange_id, {ADDRESS['server']} AS server FROM exchanges WHERE list_contains($ids, exchange_id)",
        ids=[one.trouble.evidence[-1] for one in silences],
    )
    return {row.exchange_id: sources.server_ends.get(row.server, 0) for row in rows}


def _doubted(finding: Finding, silence: _Found, last_seen: Mapping[str, int]) -> Finding:
    """A silence, less severe if the group's coordinator was silent as well: then nobody knows what the group does."""
    last_us = last_seen.get(silence.trouble.evidence[-1], silence.last_us)
    if last_us >= silence.trouble.enough_us:
        return finding
    doubt = (
        f" Its coordinator was last heard at {clock(last_us)} UTC: that broker has ended, or the capture of it, and "
        "commits to another one were not seen."
    )
    return replace(finding, severity="warning", summary=finding.summary + doubt)


def group_points(tables: Tables) -> Iterator[Row]:
    """The points of every group that commits: cluster, topic, group, partition, and the values of a Point.

    Those of one group stand together, in order of time; of what came at once commits come first.
    """
    return tables.each(_POINTS)


_POINTS = f"""
    WITH stated AS (
        SELECT cluster, topic, group_id, partition, epoch_us(ts) AS us, ts, exchange_id, ordinal, event_offset, lag,
            client_id, lag(event_offset) OVER (
                PARTITION BY cluster, topic, group_id, partition ORDER BY ts, exchange_id, ordinal
            ) AS before
        FROM timeline
        WHERE kind IN ('committed', 'txn_applied') AND group_id <> '' AND event_offset IS NOT NULL
    ), commits AS (
        SELECT cluster, topic, group_id, partition, us // {SPAN_US} AS span,
            max(us) AS ts_us, count(*) AS commits,
            arg_max(event_offset, (ts, exchange_id, ordinal)) AS committed,
            arg_max({{'lag': lag}}, (ts, exchange_id, ordinal)).lag AS lag,
            arg_max(exchange_id, (ts, exchange_id, ordinal)) AS exchange_id,
            arg_max(
                {{'ts_us': us, 'before': before, 'after': event_offset, 'client_id': client_id,
                  'exchange_id': exchange_id}},
                before::HUGEINT - event_offset
            ) FILTER (before > event_offset) AS fall
        FROM stated GROUP BY ALL
    ), positions AS (
        SELECT cluster, topic, group_id, partition, epoch_us(ts) // {SPAN_US} AS span, max(epoch_us(ts)) AS ts_us,
            max(fetch_position) AS position, min(event_offset) AS fetched_from
        FROM timeline WHERE kind = 'fetched' AND group_id <> '' AND fetch_position IS NOT NULL
        GROUP BY ALL
    ), ends AS (
        SELECT cluster, topic, partition, epoch_us(ts) // {SPAN_US} AS span, max(epoch_us(ts)) AS ts_us,
            max(high_watermark) AS "end"
        FROM timeline WHERE high_watermark IS NOT NULL GROUP BY ALL
    ), groups AS (
        SELECT DISTINCT cluster, topic, group_id, partition FROM commits
    )
    SELECT cluster, topic, group_id, partition, ts_us, commits, committed, lag, NULL::BIGINT AS "end",
        NULL::BIGINT AS fetched_from, NULL::BIGINT AS position, exchange_id, fall
    FROM commits
    UNION ALL BY NAME
    SELECT cluster, topic, group_id, partition, ts_us, position, fetched_from
    FROM positions SEMI JOIN groups USING (cluster, topic, group_id, partition)
    UNION ALL BY NAME
    SELECT cluster, topic, group_id, partition, ts_us, "end"
    FROM ends JOIN groups USING (cluster, topic, partition)
    ORDER BY cluster, topic, group_id, partition, ts_us, committed IS NULL, position IS NULL
"""


def points_of(rows: Iterable[Row]) -> dict[int, list[Point]]:
    """Points by partition, in order of time, from rows of :func:`group_points` of one group."""
    partitions: defaultdict[int, list[Point]] = defaultdict(list)
    for row in rows:
        fall = None if row.fall is None else Fall(**row.fall)
        point = Point(
            row.ts_us, row.commits or 0, row.committed, row.lag, row.end, row.fetched_from, row.position,
            row.exchange_id, fall,
        )  # fmt: skip
        partitions[row.partition].append(point)
    return {partition: sorted(points, key=lambda p: p.ts_us) for partition, points in partitions.items()}


def burrow_state(points: Iterable[Point], until_us: int) -> burrow.BurrowState:
    """Burrow's state of a partition at a time, as it would be from commits and log ends until then."""
    commits, ends = [], []
    for point in points:
        if point.ts_us > until_us:
            break
        if point.end is not None:
            ends.append(point.end)
        if point.committed is not None:
            lag = max(ends[-1] - point.committed, 0) if ends else None
            commits.append(burrow.Commit(point.ts_us, point.committed, lag))
    return burrow.evaluate_partition(commits, ends[-burrow.INTERVALS :], until_us)


def _burrow_at(partitions: Mapping[int, list[Point]], trouble: Trouble) -> str:
    if trouble.partition is not None:
        return burrow_state(partitions[trouble.partition], trouble.last_us).name
    return burrow.evaluate_group(burrow_state(points, trouble.last_us) for points in partitions.values()).name


def _finding(row: _Found) -> Finding:
    trouble = row.trouble
    rule, figures, partition = _RULES[trouble.rule], trouble.figures, trouble.partition
    place = row.topic if partition is None else f"{row.topic}-{partition}"
    return Finding(
        rule=trouble.rule, severity=rule.severity, subject=f"{row.group_id}/{place}",
        state="open" if row.is_open else "closed", cluster=row.cluster, topic=row.topic, partition=partition,
        group_id=row.group_id, first_us=row.first_us, last_us=row.last_us, summary=rule.summary(row, place, figures),
        advice=rule.advice, evidence=list(trouble.evidence),
        details={**figures, "enough_us": trouble.enough_us, "burrow_state": row.burrow},
    )  # fmt: skip


def _span(row: _Found) -> str:
    return f"from {clock(row.first_us)} to {clock(row.last_us)} UTC"


def _growing(row: _Found, place: str, figures: Mapping[str, Any]) -> str:
    return (
        f"Group {row.group_id} falls further behind on {place}: its lag grew from {figures['lag_before']} to "
        f"{figures['lag_after']} records {_span(row)}, although it commits and gets on."
    )


def _stopped(row: _Found, place: str, figures: Mapping[str, Any]) -> str:
    since = "has committed nothing" if row.is_open else "committed nothing"
    return (
        f"Group {row.group_id} {since} on {place} {_span(row)} ({seconds(row.last_us - row.first_us)}), while "
        f"{figures['records_behind']} records came to wait in {figures['partitions']} of its partitions."
    )


def _stalled(row: _Found, place: str, figures: Mapping[str, Any]) -> str:
    return (
        f"Group {row.group_id} stands still on {place}: it committed offset {figures['offset']} {figures['commits']} "
        f"times {_span(row)} and fetched nothing beyond it, while {figures['records_behind']} records wait."
    )


def _dropped(row: _Found, place: str, figures: Mapping[str, Any]) -> str:
    return (
        f"Group {row.group_id} left {place} out of its commits {_span(row)}: it stands at offset "
        f"{figures['committed']}, {figures['records_behind']} records behind, while other partitions of the topic were "
        f"committed {figures['other_commits']} times."
    )


def _regressed(row: _Found, place: str, figures: Mapping[str, Any]) -> str:
    times = "once" if figures["falls"] == 1 else f"{figures['falls']} times {_span(row)}"
    return (
        f"The committed offset of group {row.group_id} on {place} went back {times}; most at "
        f"{clock(figures['at_us'])} UTC, when {figures['client_id'] or 'a client without client_id'} committed "
        f"{figures['after']} after {figures['before']}."
    )


def _rewound(row: _Found, place: str, figures: Mapping[str, Any]) -> str:
    reached = figures["reached_us"]
    again = f"and was back there at {clock(reached)} UTC" if reached else "and is not back there yet"
    return (
        f"Group {row.group_id} went back on {place} at {clock(row.first_us)} UTC from offset {figures['before']} to "
        f"{figures['after']} (committed by {figures['client_id'] or 'a client without client_id'}) {again}: "
        f"{figures['before'] - figures['after']} records are processed again."
    )


_RULES = {
    track.LAG_GROWING: _Rule(
        "warning",
        "Give the group more consumers (up to the number of partitions), or make the work per record cheaper: its "
        "members work, but more is written than they take. Look at what they wait for (database, remote calls), and at "
        "skewed keys if only some partitions lag.",
        _growing,
    ),
    track.STOPPED: _Rule(
        "critical",
        "Look at the group's members: a process that ended, hangs in one record, or is blocked by what it writes to. "
        "`kafka-consumer-groups.sh --describe --group G --members` tells who is still there. If the group was shut "
        "down for good, delete it.",
        _stopped,
    ),
    track.STALLED: _Rule(
        "critical",
        "The member is alive and commits, but does not get past this offset. Look for a record that it cannot process "
        "(it seeks back or retries for ever), or for partitions that it has paused and never resumes.",
        _stalled,
    ),
    track.REWOUND: _Rule(
        "warning",
        "If nobody set the offsets back on purpose (`kafka-consumer-groups.sh --reset-offsets`, seek), look at the "
        "client named here. What these records cause downstream happens a second time.",
        _rewound,
    ),
    track.COMMIT_REGRESSED: _Rule(
        "warning",
        "Commit offsets of a partition in order, from one place. Usual causes: a retried asynchronous commit that "
        "overtakes a newer one, worker threads that commit what each of them has finished, two owners of a partition.",
        _regressed,
    ),
    track.DROPPED: _Rule(
        "critical",
        "Find the member that owns the partition and the worker in it that handles the partition: it died, or its "
        "offsets are no longer stored. If nobody owns the partition, look at how the group assigns partitions.",
        _dropped,
    ),
}
