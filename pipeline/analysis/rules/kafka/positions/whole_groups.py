"""A whole group that reads on and commits nothing, of which no commit is known that would show its rhythm.

Findings of ``stopped``. Evidence: an answer to OffsetFetch, fetches from where it says on, positions that continue for
``uncommitted_seconds``, heartbeats of the same client until the end, and no commit of the group at all. Left out is
who shows that it keeps its offsets elsewhere: by a seek, or by commits inside transactions.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from decoder.kafka.apis import ApiKey
from pipeline.analysis.rules.format import who
from pipeline.analysis.rules.kafka.positions import unread_texts as words
from pipeline.analysis.rules.kafka.positions.reports import Place, finding_of
from pipeline.analysis.rules.kafka.progress.track import STOPPED
from pipeline.analysis.rules.model import NAMELESS, Finding, Sources
from pipeline.analysis.tables import Row, Tables, numbers
from pipeline.humanize import some

if TYPE_CHECKING:
    from pipeline.analysis.rules.kafka.progress.thresholds import ProgressThresholds

_STEPS = 5
"""Positions that a client reaches, one after the other."""
_ALIVE_US = 60_000_000
"""Members heartbeat within this time."""
_LONG = 4
"""Times as long, until it is more than a rhythm that is not known: who writes files or checkpoints commits every ten
minutes, as a member of the group or not."""
_BEATS, _KNOWN_BEATS = 60, 10
"""Heartbeats that are waited for, and as many as show how far apart they are."""
_GENERATED = re.compile(
    r"console-consumer-\d+|anonymous\.|.*\d{10}|.*[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}", re.IGNORECASE
)
"""Names that a tool or an application makes for one run: no member comes back to such a group."""
_READ_ON = f"""
    WITH committing AS (
        SELECT DISTINCT cluster, group_id FROM timeline
        WHERE kind IN ('committed', 'commit_rejected', 'txn_committed', 'txn_commit_rejected', 'txn_applied',
            'txn_discarded')
    ), in_transactions AS (
        SELECT DISTINCT client_ip FROM exchanges
        WHERE api_key IN {numbers(ApiKey.ADD_OFFSETS_TO_TXN, ApiKey.TXN_OFFSET_COMMIT)}
    ), of_groups AS (
        SELECT cluster, topic, partition, group_id, client_id, kind, epoch_us(ts) AS us, exchange_id, error_name,
            event_offset, event_next_offset, log_start_offset, high_watermark
        FROM timeline ANTI JOIN committing USING (cluster, group_id)
        WHERE kind IN ('fetched', 'fetch_rejected', 'fetched_commit') AND group_id <> ''
            AND NOT starts_with(topic, '__')
    ), asked AS (
        SELECT cluster, topic, partition, group_id, client_id, min(us) AS asked_us, arg_min(event_offset, us) AS stated,
            arg_min(exchange_id, us) AS asked_by
        FROM of_groups WHERE kind = 'fetched_commit' AND error_name = 'NONE' GROUP BY ALL
    ), fetches AS (
        SELECT f.*, a.* EXCLUDE (cluster, topic, partition, group_id, client_id)
        FROM of_groups AS f LEFT JOIN asked AS a
            ON a.cluster = f.cluster AND a.topic = f.topic AND a.partition = f.partition AND a.group_id = f.group_id
            AND a.client_id IS NOT DISTINCT FROM f.client_id
        WHERE kind <> 'fetched_commit' AND us >= coalesce(asked_us, us)
    ), steps AS (
        SELECT cluster, topic, partition, group_id, client_id, event_next_offset AS position, min(us) AS us,
            arg_min(exchange_id, us) AS exchange_id
        FROM fetches WHERE kind = 'fetched' AND event_next_offset IS NOT NULL GROUP BY ALL
    ), read AS (
        SELECT cluster, topic, partition, group_id, client_id, count(*) AS steps, min(us) AS first_us,
            max(position) AS position, arg_max(us, position) AS last_us, arg_max(exchange_id, position) AS last_exchange
        FROM steps GROUP BY ALL HAVING count(*) >= {_STEPS} AND arg_max(us, position) - min(us) >= $patience
    ), begun AS (
        SELECT cluster, topic, partition, group_id, client_id, any_value(asked_us) AS asked_us,
            arg_min(event_offset, us) AS begun_at, arg_min(log_start_offset, us) AS log_start,
            arg_min(high_watermark, us) AS log_end, min(us) AS begun_us, any_value(stated) AS stated,
            any_value(asked_by) AS asked_by
        FROM fetches WHERE event_offset IS NOT NULL GROUP BY ALL
    ), members AS (
        SELECT cluster, group_id, client_id, max(epoch_us(ts)) AS alive_us, min(epoch_us(ts)) AS beats_from_us,
            count(*) AS beats,
            arg_max(host_of(client), ts) AS host FROM states
        WHERE kind = 'heartbeat' AND coalesce(error_code, 0) = 0 AND group_id <> '' AND member_id <> ''
        GROUP BY ALL
    )
    SELECT r.*, b.* EXCLUDE (cluster, topic, partition, group_id, client_id), m.alive_us, m.beats_from_us, m.beats,
        m.host, e.server_ip || ':' || e.server_port AS coordinator
    FROM read AS r
        JOIN begun AS b ON b.cluster = r.cluster AND b.topic = r.topic AND b.partition = r.partition
            AND b.group_id = r.group_id AND b.client_id IS NOT DISTINCT FROM r.client_id
        LEFT JOIN members AS m ON m.cluster = r.cluster AND m.group_id = r.group_id
            AND m.client_id IS NOT DISTINCT FROM r.client_id
        LEFT JOIN exchanges AS e ON e.exchange_id = b.asked_by
        JOIN exchanges AS f ON f.exchange_id = r.last_exchange
        ANTI JOIN in_transactions AS t ON t.client_ip = f.client_ip
    ORDER BY r.cluster, r.group_id, r.topic, r.position - b.begun_at DESC, r.partition, r.client_id
"""
"""What clients of groups that commit nothing read, in steps, and where each began. Of who is no member the connection
to the coordinator shows whether commits would have been captured."""

_ENDED_THERE = """
    SELECT count(*) AS times FROM timeline
    WHERE cluster = $cluster AND topic = $topic AND partition = $partition AND epoch_us(ts) < $us
        AND (high_watermark = $offset OR (kind = 'listed' AND event_offset = $offset))
"""
"""Whether the log was seen to end at an offset before a time."""


def of_whole_groups(sources: Sources, settings: ProgressThresholds, known: Container[str]) -> Iterator[Finding]:
    """Findings of groups that read on and never commit.

    Args:
        sources, settings: see rules.
        known: subjects that are reported for starting over at each start.
    """
    patience = int(settings.uncommitted_seconds * 1_000_000)
    by_topic: defaultdict[tuple[str, str, str], list[Row]] = defaultdict(list)
    for row in sources.tables.rows(_READ_ON, patience=patience):
        by_topic[row.cluster, row.group_id, row.topic].append(row)
    began = _began([row for rows in by_topic.values() for row in rows], sources.tables)
    for (_, group, topic), rows in by_topic.items():
        severity = None if f"{group}/{topic}" in known else _severity(rows, began, patience, sources, settings)
        if severity is not None:
            yield _finding(rows, severity, began[_question(rows[0])], patience, sources, settings)


def _severity(
    rows: Sequence[Row], began: Mapping[_Question, str], patience: int, sources: Sources, settings: ProgressThresholds
) -> str | None:
    """None where nothing is wrong or known."""
    if any(_sought(row) for row in rows) or sum(map(_records, rows)) < settings.behind_records:
        return None
    each = [_severity_of(row, began[_question(row)], patience, sources) for row in rows]
    return "warning" if "warning" in each else next((one for one in each if one), None)


def _severity_of(row: Row, began: str, patience: int, sources: Sources) -> str | None:
    if row.asked_us is None:
        return "info" if _is_member(row) else None
    if _GENERATED.match(row.group_id) or began == words.BETWEEN:
        return "info"
    is_long = row.last_us - row.first_us >= _LONG * _patience_of(row, patience)
    if _is_member(row):
        return "warning" if is_long else "info"
    is_seen = sources.server_ends.get(row.coordinator, 0) >= row.last_us - _ALIVE_US
    return ("warning" if is_long and row.stated is not None else "info") if is_seen else None


def _patience_of(row: Row, patience: int) -> int:
    """How long it is waited for, µs: for this many heartbeats at least, for who sends them seldom commits seldom."""
    if row.beats is None or row.beats < _KNOWN_BEATS:
        return patience
    beating_us, beats = int(row.alive_us - row.beats_from_us), int(row.beats)
    return max(patience, _BEATS * beating_us // (beats - 1))


def _is_member(row: Row) -> bool:
    """Whether its heartbeats are seen until the end: then commits to the coordinator would be seen as well."""
    return row.alive_us is not None and row.alive_us >= row.last_us - _ALIVE_US


def _sought(row: Row) -> bool:
    """Whether it begins elsewhere than at the offset that was stated: it knows better where."""
    return row.stated is not None and row.begun_at != row.stated


_Question = tuple[str, str, int, int, int]
"""Cluster, topic, partition, when reading began (µs), and at which offset."""


def _question(row: Row) -> _Question:
    return row.cluster, row.topic, row.partition, row.begun_us, row.begun_at


def _began(rows: Iterable[Row], tables: Tables) -> dict[_Question, str]:
    """Where each began to read."""
    found, open_ones = {}, {}
    for row in rows:
        if row.stated is not None:
            found[_question(row)] = words.STATED
        elif row.begun_at <= (row.log_start or 0):
            found[_question(row)] = words.START
        else:
            open_ones[_question(row)] = row
    asked = [dict(zip(("cluster", "topic", "partition", "us", "offset"), each, strict=True)) for each in open_ones]
    for (question, row), (ended,) in zip(open_ones.items(), tables.of_each(_ENDED_THERE, asked), strict=True):
        is_end = ended.times > 0 or row.log_end is None or row.begun_at >= row.log_end
        found[question] = words.END if is_end else words.BETWEEN
    return found


def _records(row: Row) -> int:
    return int(row.position - row.begun_at)


def _finding(
    rows: Sequence[Row], severity: str, began: str, patience: int, sources: Sources, settings: ProgressThresholds
) -> Finding:
    most = rows[0]
    first_us, last_us = min(row.first_us for row in rows), max(row.last_us for row in rows)
    read = sum(map(_records, rows))
    again = {"read_again": read} if began in (words.STATED, words.START) else {}
    details = {
        "shape": words.GROUP_UNCOMMITTED, "read": read, **again, "partitions": len(rows),
        "place": f"{most.topic}-{most.partition}", "begun_at": most.begun_at, "began": began,
        "committed": most.stated, "position": most.position, "is_asked": most.asked_us is not None,
        "is_member": _is_member(most), "since_us": first_us, "read_us": last_us - first_us,
        "client_id": most.client_id,
        "clients": some(who(row.client_id, row.host) if row.host else row.client_id or NAMELESS for row in rows),
        "enough_us": first_us + (patience if severity == "info" else _LONG * _patience_of(most, patience)),
    }  # fmt: skip
    place = Place(most.cluster, most.topic, most.partition, most.group_id, most.asked_by or most.last_exchange)
    place.last_exchange = most.last_exchange
    return finding_of(STOPPED, severity, place, (first_us, last_us), details, sources, settings)
