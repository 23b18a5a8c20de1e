"""Rule ``offset_reset``: a group reads on elsewhere than where it stood, because its position is no longer there.

Meaning: retention has deleted what the group had not read, the log is shorter than its position, or its commit is gone;
``auto.offset.reset`` then decides, and records are skipped or read again without an error in the application. A commit
beyond the end of the log: see :mod:`pipeline.analysis.rules.kafka.positions.beyond_end`.
Evidence: a Fetch answered OFFSET_OUT_OF_RANGE and the next one of the same client and partition; or an OffsetFetch that
answers no commit, and a first Fetch at the end of a log that has records.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from shlex import quote

import pyarrow as pa

from pipeline.analysis.rules.coming_again import Span, apart, earlier
from pipeline.analysis.rules.kafka.positions import beyond_end
from pipeline.analysis.rules.model import SEVERITIES, Finding, Sources, State, clock
from pipeline.analysis.rules.people import count
from pipeline.analysis.rules.rule import Rule, finds
from pipeline.analysis.tables import Row, Tables
from pipeline.finding_settings import FindingSettings

OUT_OF_RANGE, NO_COMMIT, COMMIT_GONE = "out of range", "no commit", "commit gone"
SHORTER, BEYOND = "log shorter", "beyond the end"
"""The position lies beyond the end of the log: the log ended later before, or was never seen to."""
_FROM_SOURCE = "what retention deleted comes from its source only"
_SET_BACK = "Now: if the skipped records are needed, stop the group and set it back ({command})"
_SKIPPED, _SKIPPED_AND_LOST = f"{_SET_BACK}.", f"{_SET_BACK}; {_FROM_SOURCE}."
_LOST = f"Now: {_FROM_SOURCE}; all that is left the group reads by itself."
_AGAIN = (
    "Now: the group reads these records again by itself; if it does harm to process them twice, stop the group and set "
    "it to where it should continue (`{command}`)."
)
_GONE = (
    "Now: unless somebody deleted the topic and created it again, records that were in the log from offset {end} on "
    "are lost: write them again from their source if they are needed, and find the replica that led before "
    "(`kafka-topics.sh --bootstrap-server BROKER --describe --topic {topic}`), whose disk may still hold them."
)
_NEVER_SEEN = (
    "Now: find out why the position lies beyond the end of the log: the log lost records (an unclean election, a disk "
    "that was replaced), or the offset was never in it (a commit by mistake, an offset of another topic or cluster). "
    "Until that is known, do not rely on what was written there before."
)
_FIX = {
    OUT_OF_RANGE: "Fix: retention.ms and retention.bytes of the topic longer than the longest halt of the group, an "
    "alarm on lag in seconds, and auto.offset.reset=none where neither skipping nor reading again is right.",
    COMMIT_GONE: "Fix: offsets.retention.minutes of the brokers longer than the longest halt of the group, and "
    "auto.offset.reset=none where neither skipping nor reading again is right.",
    SHORTER: "Fix: unclean.leader.election.enable=false, three replicas, min.insync.replicas=2 and acks=all, so that "
    "no broker leads that lacks acknowledged records; and auto.offset.reset=none where a reader must not continue.",
    BEYOND: "Fix: unclean.leader.election.enable=false; commit only offsets of records that were read; and "
    "auto.offset.reset=none where neither skipping nor reading again is right.",
    NO_COMMIT: "Fix: auto.offset.reset=earliest; and see that group.id is not a new one with each start.",
}
RULE = Rule(
    "offset_reset",
    "kafka",
    ("critical", "warning", "info"),
    "A group goes on elsewhere than where it stood, because its position is gone.",
    ("reset_records",),
    ("events", "timeline"),
    advice=(
        beyond_end.NOW, _SKIPPED, _SKIPPED_AND_LOST, _LOST, _AGAIN, _GONE, _NEVER_SEEN, *_FIX.values(), beyond_end.FIX,
    ),
)  # fmt: skip
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Reset:
    """One partition in which a client went on elsewhere. Offsets are those of the log; times µs since the epoch.

    Attributes:
        before: where the group stood; None: nowhere.
        after: where it went on.
        log_start, log_end: first offset of the log and high watermark then; None: not known.
        committed_us: when the group last committed there afterwards; None: it did not.
        ended_at: how far the log was seen to reach before; None: not known.
        evidence: the exchange that shows the old position to be gone, and the first fetch at the new one.
    """

    cause: str
    partition: int
    client_id: str | None
    us: int
    before: int | None
    after: int
    log_start: int | None
    log_end: int | None
    evidence: tuple[str, ...]
    committed_us: int | None = None
    ended_at: int | None = None

    @property
    def cut(self) -> int:
        """Offsets that the log lost at its end, at least."""
        return (self.ended_at or 0) - (self.log_end or 0) if self.cause == SHORTER else 0

    @property
    def lost(self) -> int:
        """Records that retention (or DeleteRecords) took before they were read."""
        if self.before is None or self.log_start is None:
            return 0
        return max(min(self.log_start, self.after) - self.before, 0)

    @property
    def skipped(self) -> int:
        """Records that are there and were passed over."""
        begin = max(self.before or 0, self.log_start or 0)
        if self.before is None and self.log_start is None:
            return 0
        return max(self.after - begin, 0)

    @property
    def again(self) -> int:
        """Records that are read a second time; where the log is shorter than the position, at most those it has."""
        if self.before is None:
            return 0
        return max(min(self.before, self.log_end if self.log_end is not None else self.before) - self.after, 0)

    @property
    def severity(self) -> str:
        """By what it does to the records."""
        if self.cause == NO_COMMIT:
            return "info"
        return "critical" if self.lost or self.skipped else "warning"


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


@finds(RULE)
def find(sources: Sources, settings: FindingSettings) -> list[Finding]:
    """Apply the rule."""
    beyond = list(beyond_end.beyond_ends(sources))
    resets = _resets(sources, settings, {one.place for one in beyond})
    return beyond_end.with_findings(resets, beyond, RULE.name, sources, settings)


def _resets(sources: Sources, settings: FindingSettings, known: Container[Place]) -> list[Finding]:
    """Positions that were gone; but for those that are known to have been committed beyond the end."""
    tables = sources.tables
    marks = tables.table(_MARKS)
    if not marks.num_rows:
        return []
    tables.add("marks", marks)
    latest: dict[Place, Reset] = {}
    before: defaultdict[tuple[str, str, str], list[Span]] = defaultdict(list)
    for row in tables.rows(_WENT_ON):
        one = reset_of(row)
        # A topic that was deleted and made anew has a rule of its own.
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
    pause_us = int(settings.still_open_seconds * 1_000_000)
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


def reset_of(row: Row) -> Reset | None:
    """What became of a position that was found gone; None if it is not known where it was.

    Args:
        row: when, where and by whom it was found gone (``us``, ``partition``, ``client_id``, ``exchange_id``), whether
            by a Fetch that was out of range (``is_out_of_range``, ``stood``); what the group had committed before
            (``committed_offset``); the next fetch (``went_on_us``, ``went_on_by``, ``went_on_at``), and the log as it
            shows (``log_start_offset``, ``high_watermark``).
    """
    before = row.committed_offset
    if row.is_out_of_range:
        cause = OUT_OF_RANGE
        before = row.stood if row.stood is not None else before
        if before is None:
            return None
        if row.high_watermark is not None and before > row.high_watermark:
            cause = BEYOND
    else:
        cause = COMMIT_GONE if before is not None else NO_COMMIT
    is_at_end = row.high_watermark is not None and row.went_on_at >= row.high_watermark
    # Whoever has no commit and begins elsewhere than at the end was given the place.
    log_start = row.log_start_offset if cause != NO_COMMIT or is_at_end else row.went_on_at
    return Reset(
        cause, row.partition, row.client_id, row.went_on_us, before, row.went_on_at, log_start, row.high_watermark,
        (row.exchange_id, row.went_on_by),
    )  # fmt: skip


def _finding(
    cluster: str,
    topic: str,
    group: str,
    some_resets: Sequence[Reset],
    all_of_them: Sequence[Span],
    sources: Sources,
    settings: FindingSettings,
) -> Finding:
    worst = min(some_resets, key=lambda one: (SEVERITIES.index(one.severity), -one.us, one.partition))
    alike = [one for one in some_resets if one.cause == worst.cause]
    first_us, last_us = min(one.us for one in alike), max(one.us for one in alike)
    clients = sorted({one.client_id or "?" for one in alike})
    reader = f"Group {group}" if group else f"Client {', '.join(clients)}"
    places = ", ".join(f"{topic}-{one.partition}" for one in alike[:3])
    places += f" and {count(len(alike) - 3, 'more partition')}" if len(alike) > 3 else ""
    return Finding(
        rule=RULE.name, severity=worst.severity, subject=f"{group or clients[0]}/{topic}",
        state=_state(alike, sources, cluster, last_us), cluster=cluster, topic=topic,
        partition=alike[0].partition if len(alike) == 1 else None, group_id=group or None, first_us=first_us,
        last_us=last_us, summary=f"{reader} {_how(worst, places)}, at {clock(last_us)} UTC: {_records(alike)}.",
        advice=f"{_now(alike, group, topic)} {_FIX[worst.cause]}",
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
        return "closed"
    return sources.state(cluster, last_us, last_us, 1)


def _how(worst: Reset, places: str) -> str:
    if worst.cause == NO_COMMIT:
        return f"had no commit on {places} and began at the end of the log, offset {worst.after}"
    if worst.cause == COMMIT_GONE:
        return f"found its commit {worst.before} on {places} gone and went on at offset {worst.after}"
    if worst.cause == SHORTER:
        return (
            f"stood at offset {worst.before} of {places}, and the log now ends at {worst.log_end}: it reached "
            f"{worst.ended_at} before, so that {count(worst.cut, 'record')} or more are gone from it; the reader went "
            f"on at {worst.after}"
        )
    is_short = worst.cause == BEYOND
    why = f"the log ends at {worst.log_end}" if is_short else f"the log begins at {worst.log_start}"
    known = is_short or worst.log_start is not None
    return (
        f"stood at offset {worst.before} of {places}, which is not there any more"
        f"{f' ({why})' if known else ''}, and went on at {worst.after}"
    )


def _now(alike: Sequence[Reset], group: str, topic: str) -> str:
    """What can be had back, and how."""
    back = [one for one in alike if one.skipped]
    is_lost = any(one.lost for one in alike)
    if alike[0].cause == SHORTER:
        return _GONE.format(end=min(one.log_end or 0 for one in alike), topic=quote(topic))
    if alike[0].cause == BEYOND:
        return _NEVER_SEEN
    if not back:
        return (
            _LOST
            if is_lost
            else _AGAIN.format(command=f"{_tool(group, _places(topic, alike))} --to-offset OFFSET --execute")
        )
    offsets = {one.partition: max(one.before or 0, one.log_start or 0) for one in back}
    if all(one.before is None or one.before <= (one.log_start or 0) for one in back):
        command = f"`{_tool(group, _places(topic, back))} --to-earliest --execute`"
    elif len(back) == 1:
        command = f"`{_tool(group, _places(topic, back))} --to-offset {offsets[back[0].partition]} --execute`"
    else:
        shown = ", ".join(f"{partition}: {offset}" for partition, offset in list(offsets.items())[:_SHOWN])
        more = ", … (details)" if len(offsets) > _SHOWN else ""
        command = (
            f"`{_tool(group, f'{topic}:PARTITION')} --to-offset OFFSET --execute` for each at its offset: {shown}{more}"
        )
    return (_SKIPPED_AND_LOST if is_lost else _SKIPPED).format(command=command)


def _places(topic: str, some: Iterable[Reset]) -> str:
    """Topic and partitions as ``--topic`` takes them."""
    return f"{topic}:{','.join(str(partition) for partition in sorted({one.partition for one in some}))}"


def _tool(group: str, topic: str) -> str:
    of_group = f"--group {quote(group or 'GROUP')} --topic {quote(topic)}"
    return f"kafka-consumer-groups.sh --bootstrap-server BROKER --reset-offsets {of_group}"


def _records(alike: Iterable[Reset]) -> str:
    """What became of the records."""
    some_resets = list(alike)
    lost, skipped, again = (sum(getattr(one, name) for one in some_resets) for name in ("lost", "skipped", "again"))
    parts = []
    if lost:
        parts.append(f"{count(lost, 'record')} deleted before the group read them")
    if skipped:
        parts.append(f"{count(skipped, 'record')} skipped that are still there")
    if again:
        parts.append(f"up to {count(again, 'record')} read again")
    return ", ".join(parts)
