"""Rule ``stalled`` by fetches: a group fetches from one offset of a partition again and again, and records wait.

Meaning: it is alive, polls, may commit, and gets nowhere: what comes back is of no use to it, or it seeks back.
Evidence: fetches of one client from the same offset, behind which the answers show records, for several times as long
as it usually stays at one, without a commit beyond it. What comes back names the cause: the same records, nothing,
batches without records, a part of a message. A reader of no known group that stays there on one connection, while the
log grows, is found with less severity: it may read them again on purpose. Who fetches further in between, and comes
back to an offset that it had come to by reading on, seeks back after each failure.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from shlex import quote
from typing import TYPE_CHECKING

import pyarrow as pa

from pipeline.analysis.rules.kafka.positions import loop_texts as words
from pipeline.analysis.rules.kafka.positions.fetches import (
    Commits,
    Entries,
    Fetch,
    Place,
    by_connection,
    by_host,
    place_of,
    stays_us,
)
from pipeline.analysis.rules.kafka.progress.points import markers_of
from pipeline.analysis.rules.kafka.progress.rhythm import KNOWN_RHYTHM, patience_us, usual_us
from pipeline.analysis.rules.kafka.progress.track import STALLED
from pipeline.analysis.rules.kafka.records_behind import Behind
from pipeline.analysis.rules.model import Finding, Sources, State
from pipeline.analysis.tables import Row, Tables

if TYPE_CHECKING:
    from pipeline.analysis.rules.kafka.progress.thresholds import ProgressThresholds

_REMEMBERED = 200
"""Stays at an offset that a rhythm is known by."""
_AHEAD = 2
"""Fetches that a library may send ahead before the application makes it go back."""
_OFFSETS = 8
"""Offsets of a client and partition that are looked at, the latest."""
_CANDIDATES = """
    WITH asked AS (
        SELECT cluster, topic, partition, group_id, client_id, epoch_us(ts) AS us, high_watermark,
            coalesce(last_value(event_offset IGNORE NULLS) OVER (
                PARTITION BY cluster, topic, partition, group_id, client_id ORDER BY ts, exchange_id
                ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
            ), event_next_offset - 1) AS stood
        FROM timeline WHERE kind = 'fetched' AND isolation_level IS NOT NULL
    ), often AS (
        SELECT cluster, topic, partition, group_id, client_id, stood, max(us) AS last_us FROM asked
        WHERE high_watermark > stood
        GROUP BY ALL HAVING count(*) >= $times AND max(us) - min(us) >= $span_us
            AND (group_id <> '' OR max(high_watermark) > min(high_watermark))
    )
    SELECT * EXCLUDE (last_us) FROM often QUALIFY row_number() OVER (
        PARTITION BY cluster, topic, partition, group_id, client_id ORDER BY last_us DESC, stood
    ) <= $most
    ORDER BY ALL
"""
"""From where some client fetched often, although the log went further; without a group, while it grew."""
_FETCHES = """
    WITH places AS (
        SELECT DISTINCT cluster, topic, partition, group_id, client_id FROM looping
    ), placed AS (
        SELECT DISTINCT t.cluster, t.topic, t.partition, t.group_id, t.client_id, t.exchange_id,
            epoch_us(t.ts) AS us
        FROM timeline AS t JOIN places AS p
            ON t.cluster = p.cluster AND t.topic = p.topic AND t.partition = p.partition AND t.group_id = p.group_id
            AND t.client_id IS NOT DISTINCT FROM p.client_id
        WHERE t.kind = 'fetched'
    )
    SELECT p.*, e.client, e."offset" AS asked, e.next_offset, e.records, e.high_watermark, e.last_stable_offset,
        e.isolation_level
    FROM placed AS p JOIN events AS e
        ON e.exchange_id = p.exchange_id AND e.topic = p.topic AND e.partition = p.partition AND e.kind = 'fetched'
    ORDER BY cluster, topic, partition, group_id, client_id, us, exchange_id
"""
_COMMITS = """
    SELECT cluster, topic, partition, group_id, epoch_us(ts) AS us, event_offset AS committed,
        kind <> 'fetched_commit' AS is_commit
    FROM timeline SEMI JOIN looping USING (cluster, topic, partition, group_id)
    WHERE kind IN ('committed', 'txn_applied', 'fetched_commit') AND event_offset IS NOT NULL
    ORDER BY cluster, topic, partition, group_id, us, committed
"""
_ENDS = """
    SELECT cluster, topic, partition, arg_max(high_watermark, (ts, exchange_id, ordinal)) AS "end"
    FROM timeline SEMI JOIN looping USING (cluster, topic, partition)
    WHERE high_watermark IS NOT NULL GROUP BY ALL
"""
"""The end of each log as anybody saw it last."""
_BATCHES = """
    SELECT ordinal, base_offset, last_offset, records, size, compression, coalesce(is_control, false) AS is_control,
        crc_valid
    FROM batches WHERE source = 'fetch' AND exchange_id = $exchange_id AND partition = $partition
        AND topic = $topic
"""


@dataclass(frozen=True, slots=True)
class Loop:
    """Fetches of one client from one offset.

    Attributes:
        hits: the fetches from it.
        beyond: how often it fetched further in between.
        healed_us: when it was over: the group committed beyond, or it fetched further where nothing shows that the
            group is still there by its commits; None: it is not.
        stays: how long it usually stays at an offset, µs, the latest.
        seen_end: the end of the log, if somebody saw it after the last of them.
        read_on: when it fetched beyond first and last since, while the group is there by its commits; None: never.
        is_left: whether it fetched below the offset at last.
        has_moved: whether it had fetched below it before, and so come there by reading on.
    """

    place: Place
    client_id: str | None
    host: str
    offset: int
    hits: Sequence[Fetch]
    beyond: int
    healed_us: int | None
    stays: Sequence[int]
    seen_end: int | None = None
    read_on: tuple[int, int] | None = None
    is_left: bool = False
    has_moved: bool = False

    @property
    def first_us(self) -> int:
        """When it fetched from there first."""
        return self.hits[0].us

    @property
    def last_us(self) -> int:
        """When it was over, or seen last."""
        if self.healed_us is not None:
            return self.healed_us
        return self.read_on[1] if self.read_on else self.hits[-1].us

    @property
    def end(self) -> int:
        """The end of what it may read, as seen last."""
        last = self.hits[-1]
        return self.seen_end if self.seen_end is not None and last.readable == last.end else last.readable or 0


def find(sources: Sources, settings: ProgressThresholds) -> list[Finding]:
    """Apply the rule."""
    span_us = int(settings.fetched_again_seconds * 1_000_000)
    tables = sources.tables
    candidates = tables.table(_CANDIDATES, times=settings.stalled_commits, span_us=span_us, most=_OFFSETS)
    if not candidates.num_rows:
        return []
    tables.add("looping", candidates)
    offsets = _offsets(candidates)
    commits, markers = _commits(tables), markers_of(tables)
    entries = Entries(sources.steps)
    found: dict[tuple[Place, str | None], Loop] = {}
    by_client = groupby(tables.each(_FETCHES), key=lambda row: (place_of(row), row.client_id))
    for (place, client_id), rows in by_client:
        by_whom = by_host(rows) if place[-1] else by_connection(rows)
        for host, fetches in by_whom:
            ill: list[int] = []
            for offset in sorted(offsets[place, client_id]):
                before = ill if len(ill) < KNOWN_RHYTHM else ()  # what comes often is usual after all
                for loop in _loops(place, client_id, host, offset, fetches, commits.get(place, ()), entries, before):
                    numbers = markers.get(place[:2], {}).get(place[2], ())
                    if not _lasts(loop, _behind(loop, numbers), settings) or _is_sought(loop):
                        continue
                    ill = [*ill, offset] if offset not in ill else ill
                    whose = (place, None if place[-1] else f"{client_id or ''} {host}")
                    if _is_later(loop, found.get(whose)):
                        found[whose] = loop
    ends = {(row.cluster, row.topic, row.partition): row.end for row in tables.rows(_ENDS)}
    known = [
        replace(loop, seen_end=None if loop.healed_us else ends.get(place[:3])) for (place, _), loop in found.items()
    ]
    last = [
        {"exchange_id": loop.hits[-1].exchange_id, "topic": loop.place[1], "partition": loop.place[2]} for loop in known
    ]
    batches = tables.of_each(_BATCHES, last)
    return [
        _finding(loop, some, commits, markers, sources, settings) for loop, some in zip(known, batches, strict=True)
    ]


def _is_sought(loop: Loop) -> bool:
    """Whether a reader of no known group goes where it likes: away to what was before, or back to where it began.

    Back to an offset that it came to by reading on goes who fails there: its library has fetched ahead by then.
    """
    returns = loop.has_moved and _is_each_time(loop.hits, loop.beyond)
    return not loop.place[-1] and (loop.is_left or (loop.beyond > 0 and not returns))


def _is_each_time(hits: Sequence[Fetch], beyond: int) -> bool:
    """Whether it fetched further after most fetches from the offset, and came back."""
    return 2 * beyond >= len(hits)


def _is_later(one: Loop, other: Loop | None) -> bool:
    return other is None or (one.healed_us is None, one.last_us) > (other.healed_us is None, other.last_us)


def _offsets(candidates: pa.Table) -> Mapping[tuple[Place, str | None], list[int]]:
    found: defaultdict[tuple[Place, str | None], list[int]] = defaultdict(list)
    for row in candidates.to_pylist():
        place = row["cluster"], row["topic"], row["partition"], row["group_id"]
        found[place, row["client_id"]].append(row["stood"])
    return found


def _commits(tables: Tables) -> Commits:
    rows = tables.rows(_COMMITS)
    return {
        place: [(row.us, row.committed, row.is_commit) for row in some] for place, some in groupby(rows, key=place_of)
    }


def _behind(loop: Loop, markers: Sequence[int]) -> Behind:
    between = max(bisect_left(markers, loop.end) - bisect_left(markers, loop.offset), 0)
    return Behind(max(loop.end - loop.offset - between, 0), between)


def _loops(
    place: Place, client_id: str | None, host: str, offset: int, fetches: Sequence[Fetch],
    commits: Sequence[tuple[int, int, bool]], entries: Entries, ill: Sequence[int],
) -> Iterator[Loop]:  # fmt: skip
    """Of the runs of fetches from an offset the longest and the last.

    In a run nothing is fetched below the offset or committed beyond it, and no new process begins.
    """
    runs = list(_runs((place[0], place[3], host, client_id), offset, fetches, commits, entries))
    if not runs:
        return
    longest = max(runs, key=lambda run: run[0][-1].us - run[0][0].us)
    for hits, beyond, is_below in (longest, runs[-1])[: len(runs)]:
        read_on = None if is_below else _next(fetches, hits[-1].us, offset)
        if beyond and _is_each_time(hits, beyond) and _fetches_after(fetches, hits[-1].us) <= _AHEAD:
            read_on = None  # so far it did each time, and came back
        healed = _healed_us(commits, hits[-1].us, offset, read_on)
        stays = stays_us(fetches, hits[0].us, ill)
        on = None if healed or read_on is None else (read_on, fetches[-1].us)
        moved = any(one.at is not None and one.at < offset for one in fetches)
        yield Loop(
            place, client_id, host, offset, hits, beyond, healed, stays, read_on=on, is_left=is_below, has_moved=moved
        )


def _runs(
    client: tuple[str, str, str, str | None], offset: int, fetches: Sequence[Fetch],
    commits: Sequence[tuple[int, int, bool]], entries: Entries,
) -> Iterator[tuple[list[Fetch], int, bool]]:  # fmt: skip
    """With how often it fetched further in between, and whether it went below at last."""
    further = [us for us, committed, is_commit in commits if is_commit and committed > offset]
    hits: list[Fetch] = []
    beyond = since = 0
    for one in (fetch for fetch in fetches if fetch.at is not None):
        is_below = (one.at or 0) < offset
        if hits and (is_below or _is_over(hits[-1], one, further, client, entries)):
            yield hits, beyond, is_below
            hits, beyond, since = [], 0, 0
        if one.at == offset and one.waits_at(offset):
            beyond, since = beyond + since, 0
            hits.append(one)
        elif hits and not is_below:
            since = 1
    if hits:
        yield hits, beyond, False


def _is_over(
    before: Fetch, after: Fetch, further: Sequence[int], client: tuple[str, str, str, str | None], entries: Entries
) -> bool:
    if bisect_right(further, after.us) > bisect_right(further, before.us):
        return True
    return before.client != after.client and entries.between(client, before.us, after.us)


def _next(fetches: Sequence[Fetch], after_us: int, offset: int) -> int | None:
    """When it fetched beyond an offset after a time; None: it did not."""
    return next((one.us for one in fetches if one.us > after_us and (one.at or 0) > offset), None)


def _fetches_after(fetches: Sequence[Fetch], after_us: int) -> int:
    return sum(one.us > after_us and one.at is not None for one in fetches)


def _healed_us(commits: Sequence[tuple[int, int, bool]], after_us: int, offset: int, read_on: int | None) -> int | None:
    """When a loop that ended at a time was over; None: it is not.

    A group whose last commit is not beyond the offset begins there again when it restarts, however far it has read.
    """
    beyond = next((us for us, committed, _ in commits if us > after_us and committed > offset), None)
    if beyond is None and commits and commits[-1][1] <= offset:
        return None
    return min((us for us in (beyond, read_on) if us is not None), default=None)


def _lasts(loop: Loop, behind: Behind, settings: ProgressThresholds) -> bool:
    if len(loop.hits) < settings.stalled_commits or behind.records < settings.behind_records:
        return False
    return loop.hits[-1].us - loop.first_us >= _patience_us(loop, settings)


def _patience_us(loop: Loop, settings: ProgressThresholds) -> int:
    stays = loop.stays[-_REMEMBERED:]
    periods = settings.silence_periods
    if len(stays) < KNOWN_RHYTHM:
        return int(2 * settings.fetched_again_seconds * 1_000_000)
    return patience_us(settings.fetched_again_seconds, periods, usual_us(stays))


def _shape(loop: Loop, batches: Sequence[Row]) -> str:
    """What comes back, by most of the answers."""
    answered = [one for one in loop.hits if one.records is not None or one.next_offset is not None]
    useful = [one for one in answered if one.records and (one.next_offset or 0) > loop.offset]
    if 2 * len(useful) > len(answered):
        return words.SEEKS_BACK if _is_each_time(loop.hits, loop.beyond) else words.SAME
    empty = [one for one in answered if one.next_offset is None]
    if 2 * len(empty) > len(answered):
        return words.CUT if any(row.size and row.last_offset is None for row in batches) else words.NOTHING
    if any((one.next_offset or 0) > loop.offset for one in answered):
        return words.MARKERS if batches and all(row.is_control for row in batches) else words.EMPTY
    return words.BELOW


def _finding(
    loop: Loop, batches: Sequence[Row], commits: Commits,
    markers: Mapping[tuple[str, str], Mapping[int, Sequence[int]]], sources: Sources, settings: ProgressThresholds,
) -> Finding:  # fmt: skip
    cluster, topic, partition, group = loop.place
    behind = _behind(loop, markers.get((cluster, topic), {}).get(partition, ()))
    times = [us for us, committed, is_commit in commits.get(loop.place, ()) if is_commit and committed == loop.offset]
    again = sum(loop.first_us <= us and (loop.healed_us is None or us <= loop.healed_us) for us in times)
    hit = loop.hits[-1]
    shape = _shape(loop, batches)
    state: State = "resolved"
    if loop.healed_us is None:
        state = sources.state_unhealed(cluster, loop.first_us, loop.last_us, len(loop.hits))
    enough = next(one.us for one in loop.hits if one.us - loop.first_us >= _patience_us(loop, settings))
    details = {
        "offset": loop.offset, "fetches": len(loop.hits), "again": shape, "commits": again, **behind.figures,
        "client_id": loop.client_id, "clients": f"{loop.client_id or '?'} at {loop.host}",
        "next_offset": hit.next_offset, "records": hit.records,
        "size": max((row.size or 0 for row in batches), default=0),
        "compression": next((row.compression for row in batches if row.compression not in (None, "none")), None),
        "moved_us": loop.healed_us, "enough_us": max(enough, loop.hits[settings.stalled_commits - 1].us),
        **({"read_on_us": loop.read_on[0]} if loop.read_on else {}),
        **({"known_until_us": loop.last_us} if state == "unknown" else {}),
    }  # fmt: skip
    advice, whose = (words.ADVICE, group) if group else (words.ALONE, details["clients"])
    severity = "warning" if state == "resolved" or not group else "critical"
    return Finding(
        rule=STALLED, severity=severity if group or loop.has_moved else "info",
        subject=f"{whose}/{topic}-{partition}", state=state, cluster=cluster, topic=topic, partition=partition,
        group_id=group or None, first_us=loop.first_us, last_us=loop.last_us,
        summary=words.summary(
            group, f"{topic}-{partition}", loop.first_us, loop.read_on[0] if loop.read_on else loop.last_us, details
        ),
        advice=advice[shape].format(
            group=quote(group), topic=quote(topic), partition=partition, offset=loop.offset, after=loop.offset + 1,
            next=hit.next_offset if (hit.next_offset or 0) > loop.offset else loop.offset + 1,
            place=quote(f"{topic}:{partition}"), who=details["clients"],
        ),
        evidence=_evidence(loop.hits, settings.max_evidence), details=details,
    )  # fmt: skip


def _evidence(hits: Sequence[Fetch], most: int) -> list[str]:
    """The first of them, and the latest."""
    ids = [one.exchange_id for one in hits]
    return list(dict.fromkeys([ids[0], *ids[-(most - 1) :]])) if most > 1 else ids[:most]
