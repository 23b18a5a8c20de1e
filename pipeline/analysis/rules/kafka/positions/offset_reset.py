"""Rule ``offset_reset``: a group reads on elsewhere than where it was, because its position is no longer there.

Meaning: retention has deleted what the group had not read, the log is shorter than its position, or its commit is gone;
``auto.offset.reset`` then decides, and records are skipped or read again without an error in the application. A commit
beyond the end of the log: see :mod:`pipeline.analysis.rules.kafka.positions.beyond_end`; commits that the coordinator
lost: see :mod:`pipeline.analysis.rules.kafka.positions.lost_commits`.
Evidence: a Fetch answered OFFSET_OUT_OF_RANGE and the next one of the same client and partition; or an OffsetFetch that
answers no commit, and a first Fetch at the end of a log that has records.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from pipeline.analysis.claims.kafka.commits import OFFSET_RESET
from pipeline.analysis.rules.case.case import Case
from pipeline.analysis.rules.case.entities import GROUP, PARTITION
from pipeline.analysis.rules.case.texts import LOSES
from pipeline.analysis.rules.kafka.links import BEHIND
from pipeline.analysis.rules.kafka.positions import beyond_end, lost_commits
from pipeline.analysis.rules.kafka.positions import reset_texts as words
from pipeline.analysis.rules.kafka.positions.resets import BEYOND, SHORTER, Reset, reset_of
from pipeline.analysis.rules.kafka.thresholds import RESET_RECORDS
from pipeline.analysis.rules.model import SEVERITIES, Finding, Sources, State
from pipeline.analysis.rules.recurrence import Span, apart, earlier
from pipeline.analysis.rules.rule import Link, Rule
from pipeline.analysis.rules.thresholds import Count, RuleThresholds
from pipeline.analysis.tables import Tables
from pipeline.humanize import clock, pluralize


class OffsetReset(Rule):
    """A group continues elsewhere than where it was, because its position is gone."""

    class Thresholds(RuleThresholds):
        """When it fires."""

        reset_records: Count = RESET_RECORDS

    name = "offset_reset"
    title = "Offset reset"
    protocol = "kafka"
    about = "progress"
    severities = ("critical", "warning", "info")
    reads = ("events", "timeline", "exchanges")
    advice = (
        beyond_end.NOW,
        beyond_end.HEALED,
        words.SKIPPED,
        words.SKIPPED_AND_LOST,
        words.LOST,
        words.AGAIN,
        words.GONE,
        words.NEVER_SEEN,
        lost_commits.NOW,
        lost_commits.HEALED,
        *words.FIX.values(),
        beyond_end.FIX,
        lost_commits.FIX,
    )
    urgency = LOSES
    effects = (Link(("rewound", "commit_regressed", *BEHIND), (GROUP, PARTITION), "the reader begins elsewhere"),)
    claims = OFFSET_RESET

    @classmethod
    def is_lasting(cls, case: Case) -> bool:
        """What was skipped or read twice stays so."""
        del case
        return True

    @classmethod
    def once_over(cls, case: Case, now: str) -> str:
        """Where the group has committed well again, its advice says already that no offset is to be set."""
        has_healed = case.details.get("cause") in _HEALED_BY_COMMITS and all(
            one.get("committed_us") is not None for one in case.details.get("partitions", ())
        )
        return now if has_healed else super().once_over(case, now)

    @classmethod
    def detect(cls, sources: Sources, settings: Thresholds) -> list[Finding]:
        """Apply the rule."""
        beyond = beyond_end.beyond_ends(sources)
        resets = _resets(sources, settings, {one.place for one in beyond})
        found = beyond_end.with_findings(resets, beyond, cls.name, sources, settings)
        known = {finding.subject for finding in found}
        return [*found, *lost_commits.findings(cls.name, known, sources, settings)]


_HEALED_BY_COMMITS = (beyond_end.COMMITTED_BEYOND, lost_commits.LOST_COMMITS)
"""Causes that are over once the group has committed well again."""
_PLACE = "cluster, topic, partition, coalesce(incarnation, 0) AS incarnation, group_id, coalesce(client_id, '') AS who"
_SAME = " AND ".join(f"m.{name} = f.{name}" for name in ("cluster", "topic", "partition", "incarnation", "group_id"))
_MARKED = f"{_PLACE}, client_id, epoch_us(ts) AS us, ordinal, exchange_id, committed_offset"
_MARKS = f"""
    WITH marks AS (
        SELECT {_MARKED}, true AS is_out_of_range, coalesce(event_offset, fetch_position) AS stood
        FROM timeline WHERE kind = 'fetch_rejected' AND error_name = 'OFFSET_OUT_OF_RANGE'
        UNION ALL
        SELECT {_MARKED}, false, NULL
        FROM timeline WHERE kind = 'fetched_commit' AND error_name = 'NONE' AND event_offset IS NULL
    )
    SELECT * FROM marks QUALIFY row_number() OVER (
        PARTITION BY cluster, topic, partition, incarnation, group_id, who, is_out_of_range
        ORDER BY us DESC, ordinal DESC
    ) <= 3
"""
"""When a position was found gone: of each client, partition and kind the last ones."""
_WENT_ON = f"""
    WITH fetches AS (
        SELECT {_PLACE}, epoch_us(ts) AS us, exchange_id, event_offset, log_start_offset, high_watermark
        FROM timeline WHERE kind = 'fetched' AND event_offset IS NOT NULL
    ), next AS (
        SELECT m.*, min(f.us) AS went_on_us, arg_min(f.exchange_id, (f.us, f.exchange_id)) AS went_on_by,
            arg_min(f.event_offset, (f.us, f.exchange_id)) AS went_on_at,
            arg_min(f.log_start_offset, (f.us, f.exchange_id)) AS log_start_offset,
            arg_min(f.high_watermark, (f.us, f.exchange_id)) AS high_watermark
        FROM marks AS m JOIN fetches AS f ON {_SAME} AND m.who = f.who AND f.us >= m.us GROUP BY ALL
    )
    SELECT * FROM next QUALIFY row_number() OVER (
        PARTITION BY cluster, topic, partition, group_id, who, went_on_by ORDER BY us DESC, ordinal DESC
    ) = 1
    ORDER BY cluster, group_id, topic, partition, went_on_us, who
"""
"""The next fetch of the same client and partition."""
_COMMITTED = f"""
    WITH commits AS (
        SELECT {_PLACE}, epoch_us(ts) AS us FROM timeline WHERE kind = 'committed'
        UNION ALL SELECT {_PLACE}, epoch_us(ts) AS us FROM timeline WHERE kind = 'txn_applied'
    )
    SELECT m.cluster, m.topic, m.partition, m.group_id, max(f.us) AS us
    FROM marks AS m JOIN commits AS f ON {_SAME} AND f.us >= m.us GROUP BY ALL
"""
"""When the group last committed there since."""

_ENDED = """
    SELECT t.cluster, t.topic, t.partition,
        max(greatest(coalesce(t.event_next_offset, 0), coalesce(t.high_watermark, 0))) AS ended_at
    FROM timeline AS t JOIN beyond AS b
        ON t.cluster = b.cluster AND t.topic = b.topic AND t.partition = b.partition AND epoch_us(t.ts) <= b.us
    WHERE t.kind IN ('produced', 'fetched') GROUP BY ALL
"""
"""How far a log was seen to reach before a position was beyond its end."""

Place = tuple[str, str, int, str]


def _resets(sources: Sources, settings: OffsetReset.Thresholds, known: Container[Place]) -> list[Finding]:
    """Positions that were gone; but for those that are known to have been committed beyond the end."""
    tables = sources.tables
    if not tables.keep("marks", _MARKS):
        return []
    latest: dict[Place, Reset] = {}
    before: defaultdict[tuple[str, str, str], list[Span]] = defaultdict(list)
    for row in tables.rows(_WENT_ON):
        one = reset_of(row)
        # A topic that was deleted and recreated has a rule of its own.
        is_anew = any(us <= row.went_on_us for us in sources.made_anew.get((row.cluster, row.topic), ()))
        if one is not None and not is_anew and one.lost + one.skipped + one.again >= settings.reset_records:
            latest[row.cluster, row.topic, row.partition, row.group_id] = one
            before[row.cluster, row.topic, row.group_id].append((one.us, one.us))
    by_group: defaultdict[tuple[str, str, str], list[Reset]] = defaultdict(list)
    for place, one in _with_commits(_with_ends(latest, tables), tables).items():
        if one.cause == BEYOND and place in known:
            continue
        cluster, topic, _, group = place
        by_group[cluster, topic, group].append(one)
    pause_us = int(settings.resolved_after_seconds * 1_000_000)
    return [
        _finding(*group, some, [(few[0][0], few[-1][1]) for few in apart(before[group], pause_us)], sources, settings)
        for group, some in by_group.items()
    ]


def _with_ends(latest: Mapping[Place, Reset], tables: Tables) -> dict[Place, Reset]:
    """The same resets; those beyond the end of the log are distinguished by where the log ended before."""
    since: dict[tuple[str, str, int], int] = {}
    for (cluster, topic, partition, _), one in latest.items():
        if one.cause == BEYOND:
            since[cluster, topic, partition] = min(one.us, since.get((cluster, topic, partition), one.us))
    if not since:
        return dict(latest)
    columns = zip(*((*place, us) for place, us in since.items()), strict=True)
    names = ("cluster", "topic", "partition", "us")
    tables.add("beyond", pa.table({name: list(column) for name, column in zip(names, columns, strict=True)}))
    ends = {(row.cluster, row.topic, row.partition): row.ended_at for row in tables.rows(_ENDED)}
    return {place: _distinguished(one, ends.get(place[:3])) for place, one in latest.items()}


def _distinguished(one: Reset, ended_at: int | None) -> Reset:
    if one.cause != BEYOND or ended_at is None or ended_at <= (one.log_end or 0):
        return one
    return replace(one, cause=SHORTER, ended_at=ended_at)


def _with_commits(latest: Mapping[Place, Reset], tables: Tables) -> dict[Place, Reset]:
    if not latest:
        return {}
    commits = {(row.cluster, row.topic, row.partition, row.group_id): row.us for row in tables.rows(_COMMITTED)}
    return {
        place: replace(one, committed_us=us) if (us := commits.get(place, 0)) >= one.us else one
        for place, one in latest.items()
    }


def _finding(
    cluster: str,
    topic: str,
    group: str,
    some_resets: Sequence[Reset],
    all_of_them: Sequence[Span],
    sources: Sources,
    settings: OffsetReset.Thresholds,
) -> Finding:
    worst = min(some_resets, key=lambda one: (SEVERITIES.index(one.severity), -one.us, one.partition))
    alike = [one for one in some_resets if one.cause == worst.cause]
    first_us, last_us = min(one.us for one in alike), max(one.us for one in alike)
    clients = sorted({one.client_id or "?" for one in alike})
    reader = f"Group {group}" if group else f"Client {', '.join(clients)}"
    places = ", ".join(f"{topic}-{one.partition}" for one in alike[:3])
    places += f" and {pluralize(len(alike) - 3, 'more partition')}" if len(alike) > 3 else ""
    return Finding(
        rule=OffsetReset.name, severity=worst.severity, subject=f"{group or clients[0]}/{topic}",
        state=_state(alike, sources, cluster, last_us), cluster=cluster, topic=topic,
        partition=alike[0].partition if len(alike) == 1 else None, group_id=group or None, first_us=first_us,
        last_us=last_us,
        summary=f"{reader} {words.how(worst, places)}, at {clock(last_us)} UTC: {words.records_of(alike)}.",
        advice=f"{words.now(alike, group, topic)} {words.FIX[worst.cause]}",
        evidence=[exchange_id for one in alike for exchange_id in one.evidence][: settings.max_evidence],
        details={
            "cause": worst.cause, "clients": clients, "lost": sum(one.lost for one in alike),
            "skipped": sum(one.skipped for one in alike), "read_again": sum(one.again for one in alike),
            "partitions": [
                {"partition": one.partition, "before": one.before, "after": one.after, "log_start": one.log_start,
                 "log_end": one.log_end, "committed_us": one.committed_us} for one in alike
            ],
            **({"gone": sum(one.cut for one in alike)} if worst.cause == SHORTER else {}),
            "enough_us": first_us, **earlier(all_of_them),
        },
    )  # fmt: skip


def _state(alike: Sequence[Reset], sources: Sources, cluster: str, last_us: int) -> State:
    """It is over once the group has committed what it reads now: nothing will bring it back by itself."""
    if all(one.committed_us is not None for one in alike):
        return "resolved"
    return sources.state(cluster, last_us, last_us, 1)
