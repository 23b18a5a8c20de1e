"""Rules about groups that do not get on: they lag more and more, stop, stall, go back, or leave out a partition.

One query cuts ``gold.offset_timeline`` into short spans of time and hands each group's spans of one topic to
:func:`pipeline.streaming.findings.progress.judge`. Beside each finding stands what Burrow would say at its end.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import orjson
from pyspark.sql import DataFrame, Row, Window
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from pipeline.settings import FindingSettings
from pipeline.streaming.findings import burrow, progress
from pipeline.streaming.findings.model import Finding, Sources, clock, seconds
from pipeline.streaming.findings.progress import SPAN_US, Fall, Point, Trouble, judge_lives
from pipeline.streaming.silver.offset_events import address
from pipeline.streaming.spark.in_groups import Values, map_groups

_GROUP = ("cluster", "topic", "group_id")
_FALL = tuple(part.name for part in fields(Fall))
_POINT = tuple(part.name for part in fields(Point))
_TROUBLE = (
    "cluster string, topic string, group_id string, rule string, partition int, first_us bigint, last_us bigint, "
    "enough_us bigint, is_open boolean, evidence array<string>, figures string, burrow string"
)


@dataclass(frozen=True, slots=True)
class _Rule:
    severity: str
    advice: str
    summary: Callable[[Row, str, Mapping[str, Any]], str]


def find(sources: Sources, settings: FindingSettings) -> list[Finding]:
    """Apply the rules."""
    points = group_points(sources.timeline)
    anew, ends = sources.made_anew, sources.ends

    def run(group: Values, rows: Iterator[Values]) -> Iterator[Values]:
        partitions = points_of(values[len(_GROUP) :] for values in rows)
        for t in judge_lives(partitions, anew.get(group[:2], ()), settings, ends.get(group[0], 0)):
            figures, burrow_says = orjson.dumps(t.figures).decode(), _burrow_at(partitions, t)
            times = (t.first_us, t.last_us, t.enough_us)
            yield (*group, t.rule, t.partition, *times, t.is_open, list(t.evidence), figures, burrow_says)

    # Of what came at once commits come first.
    in_time = ("partition", "ts_us", F.col("committed").isNull(), F.col("position").isNull())
    troubles = map_groups(points, _GROUP, in_time, run, _TROUBLE).orderBy(*_GROUP, "rule", "partition")
    found = troubles.collect()
    heard = _last_heard(sources, [row for row in found if _is_silence(row)])
    return [_doubted(_finding(row), row, heard) if _is_silence(row) else _finding(row) for row in found]


def _is_silence(row: Row) -> bool:
    return bool(row.rule == progress.STOPPED and row.is_open and row.evidence)


def _last_heard(sources: Sources, silences: Sequence[Row]) -> dict[str, int]:
    """By the exchange of a group's last commit, when its coordinator last said anything to anybody, µs."""
    if not silences:
        return {}
    last = F.broadcast(
        sources.exchanges.sparkSession.createDataFrame([(row.evidence[-1],) for row in silences], "exchange_id string")
    )
    server = address("server_ip", "server_port").alias("server")
    rows = sources.exchanges.join(last, "exchange_id").select("exchange_id", server).collect()
    return {row.exchange_id: sources.server_ends.get(row.server, 0) for row in rows}


def _doubted(finding: Finding, row: Row, heard: Mapping[str, int]) -> Finding:
    """A silence, less severe if the group's coordinator was silent as well: then nobody knows what the group does."""
    last_us = heard.get(row.evidence[-1], row.last_us)
    if last_us >= row.enough_us:
        return finding
    doubt = (
        f" Its coordinator was last heard at {clock(last_us)} UTC: that broker has ended, or the capture of it, and "
        "commits to another one were not seen."
    )
    return replace(finding, severity="warning", summary=finding.summary + doubt)


def group_points(timeline: DataFrame) -> DataFrame:
    """The points of every group that commits: cluster, topic, group, partition, and the values of a Point."""
    in_order = Window.partitionBy(*_GROUP, "partition").orderBy("ts", "exchange_id", "ordinal")
    micros = F.unix_micros("ts")
    span = F.floor(micros / SPAN_US).alias("span")
    order = F.struct("ts", "exchange_id", "ordinal")
    commits = (
        timeline.where("kind IN ('committed', 'txn_applied') AND group_id <> '' AND event_offset IS NOT NULL")
        .withColumn("before", F.lag("event_offset").over(in_order))
        .withColumn(
            "fall",
            F.when(
                F.col("before") > F.col("event_offset"),
                F.struct(
                    micros.alias("ts_us"), "before", F.col("event_offset").alias("after"), "client_id", "exchange_id"
                ),
            ),
        )
        .groupBy(*_GROUP, "partition", span)
        .agg(
            F.max(micros).alias("ts_us"),
            F.count("*").alias("commits"),
            F.max_by("event_offset", order).alias("committed"),
            F.max_by("lag", order).alias("lag"),
            F.max_by("exchange_id", order).alias("exchange_id"),
            F.max_by("fall", F.col("fall.before") - F.col("fall.after")).alias("fall"),
        )
    )
    positions = (
        timeline.where("kind = 'fetched' AND group_id <> '' AND fetch_position IS NOT NULL")
        .groupBy(*_GROUP, "partition", span)
        .agg(
            F.max(micros).alias("ts_us"),
            F.max("fetch_position").alias("position"),
            F.min("event_offset").alias("fetched_from"),
        )
    )
    ends = (
        timeline.where("high_watermark IS NOT NULL")
        .groupBy("cluster", "topic", "partition", span)
        .agg(F.max(micros).alias("ts_us"), F.max("high_watermark").alias("end"))
    )
    groups = commits.select(*_GROUP, "partition").distinct()
    return (
        commits.unionByName(positions.join(F.broadcast(groups), [*_GROUP, "partition"], "left_semi"), True)
        .unionByName(ends.join(F.broadcast(groups), ["cluster", "topic", "partition"]), True)
        .select(*_GROUP, "partition", *_POINT)
    )


def points_of(rows: Iterable[Values]) -> dict[int, list[Point]]:
    """Points by partition, in order of time, from rows of :func:`group_points` without the group."""
    partitions: defaultdict[int, list[Point]] = defaultdict(list)
    for partition, ts_us, commits, committed, lag, end, fetched_from, position, exchange_id, fall in rows:
        fell = None if fall is None else Fall(*(fall[name] for name in _FALL))
        point = Point(ts_us, commits or 0, committed, lag, end, fetched_from, position, exchange_id, fell)
        partitions[partition].append(point)
    return {partition: sorted(points, key=lambda p: p.ts_us) for partition, points in partitions.items()}


def burrow_state(points: Iterable[Point], until_us: int) -> burrow.BurrowState:
    """Burrow's state of a partition at a time, as it would have been told of commits and log ends until then."""
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


def _finding(row: Row) -> Finding:
    rule, figures = _RULES[row.rule], orjson.loads(row.figures)
    place = row.topic if row.partition is None else f"{row.topic}-{row.partition}"
    return Finding(
        rule=row.rule, severity=rule.severity, subject=f"{row.group_id}/{place}",
        state="open" if row.is_open else "closed", cluster=row.cluster, topic=row.topic, partition=row.partition,
        group_id=row.group_id, first_us=row.first_us, last_us=row.last_us, summary=rule.summary(row, place, figures),
        advice=rule.advice, evidence=list(row.evidence),
        details={**figures, "enough_us": row.enough_us, "burrow_state": row.burrow},
    )  # fmt: skip


def _span(row: Row) -> str:
    return f"from {clock(row.first_us)} to {clock(row.last_us)} UTC"


def _growing(row: Row, place: str, figures: Mapping[str, Any]) -> str:
    return (
        f"Group {row.group_id} falls further behind on {place}: its lag grew from {figures['lag_before']} to "
        f"{figures['lag_after']} records {_span(row)}, although it commits and gets on."
    )


def _stopped(row: Row, place: str, figures: Mapping[str, Any]) -> str:
    since = "has committed nothing" if row.is_open else "committed nothing"
    return (
        f"Group {row.group_id} {since} on {place} {_span(row)} ({seconds(row.last_us - row.first_us)}), while "
        f"{figures['records_behind']} records came to wait in {figures['partitions']} of its partitions."
    )


def _stalled(row: Row, place: str, figures: Mapping[str, Any]) -> str:
    return (
        f"Group {row.group_id} stands still on {place}: it committed offset {figures['offset']} {figures['commits']} "
        f"times {_span(row)} and fetched nothing beyond it, while {figures['records_behind']} records wait."
    )


def _dropped(row: Row, place: str, figures: Mapping[str, Any]) -> str:
    return (
        f"Group {row.group_id} left {place} out of its commits {_span(row)}: it stands at offset "
        f"{figures['committed']}, {figures['records_behind']} records behind, while other partitions of the topic were "
        f"committed {figures['other_commits']} times."
    )


def _regressed(row: Row, place: str, figures: Mapping[str, Any]) -> str:
    times = "once" if figures["falls"] == 1 else f"{figures['falls']} times {_span(row)}"
    return (
        f"The committed offset of group {row.group_id} on {place} went back {times}; most at "
        f"{clock(figures['at_us'])} UTC, when {figures['client_id'] or 'a client without client_id'} committed "
        f"{figures['after']} after {figures['before']}."
    )


def _rewound(row: Row, place: str, figures: Mapping[str, Any]) -> str:
    reached = figures["reached_us"]
    again = f"and was back there at {clock(reached)} UTC" if reached else "and is not back there yet"
    return (
        f"Group {row.group_id} went back on {place} at {clock(row.first_us)} UTC from offset {figures['before']} to "
        f"{figures['after']} (committed by {figures['client_id'] or 'a client without client_id'}) {again}: "
        f"{figures['before'] - figures['after']} records are processed again."
    )


_RULES = {
    progress.LAG_GROWING: _Rule(
        "warning",
        "Give the group more consumers (up to the number of partitions), or make the work per record cheaper: its "
        "members work, but more is written than they take. Look at what they wait for (database, remote calls), and at "
        "skewed keys if only some partitions lag.",
        _growing,
    ),
    progress.STOPPED: _Rule(
        "critical",
        "Look at the group's members: a process that ended, hangs in one record, or is blocked by what it writes to. "
        "`kafka-consumer-groups.sh --describe --group G --members` tells who is still there. If the group was shut "
        "down for good, delete it.",
        _stopped,
    ),
    progress.STALLED: _Rule(
        "critical",
        "The member is alive and commits, but does not get past this offset. Look for a record that it cannot process "
        "(it seeks back or retries for ever), or for partitions that it has paused and never resumes.",
        _stalled,
    ),
    progress.REWOUND: _Rule(
        "warning",
        "If nobody set the offsets back on purpose (`kafka-consumer-groups.sh --reset-offsets`, seek), look at the "
        "client named here. What these records cause downstream happens a second time.",
        _rewound,
    ),
    progress.COMMIT_REGRESSED: _Rule(
        "warning",
        "Commit offsets of a partition in order, from one place. Usual causes: a retried asynchronous commit that "
        "overtakes a newer one, worker threads that commit what each of them has finished, two owners of a partition.",
        _regressed,
    ),
    progress.DROPPED: _Rule(
        "critical",
        "Find the member that owns the partition and the worker in it that handles the partition: it died, or its "
        "offsets are no longer stored. If nobody owns the partition, look at how the group assigns partitions.",
        _dropped,
    ),
}

NAMES = tuple(_RULES)
