"""The points that rules about progress judge: short spans of ``gold.offset_timeline``, and what the members did."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from operator import attrgetter

from pipeline.analysis.cluster_catalog import ClusterCatalog
from pipeline.analysis.ownership.tasks import WITH_TOPICS
from pipeline.analysis.rules.kafka.groups.coming_and_going import ENTERS, LEAVES, Step
from pipeline.analysis.rules.kafka.progress.member_history import Given, Life
from pipeline.analysis.rules.kafka.progress.track import SPAN_US, Fall, Point
from pipeline.analysis.rules.kinds import kinds
from pipeline.analysis.rules.model import Sources
from pipeline.analysis.tables import Row, Tables

_LEAST_AWAY_US = 2_000_000
"""A group that is seen again so soon after its last LeaveGroup had not ended."""

_MOST_ENDS = 500_000
"""Points about the end of a partition, of which each group that reads it gets all."""
_MOST_ENDS_OF_ALL, _LEAST_ENDS = 8_000, 16
"""Where they are more, all groups of a partition together get this many, and each this many: the newest."""

_POINTS = f"""
    WITH stated AS (
        SELECT cluster, topic, group_id, partition, epoch_us(ts) AS us, ts, exchange_id, ordinal, event_offset, lag,
            client_id, member_id, lag({{'offset': event_offset, 'client': client_id, 'member': member_id}}) OVER (
                PARTITION BY cluster, topic, group_id, partition ORDER BY ts, exchange_id, ordinal
            ) AS before
        FROM timeline
        WHERE kind IN ('committed', 'txn_applied') AND group_id <> '' AND event_offset IS NOT NULL
    ), commits AS (
        SELECT cluster, topic, group_id, partition, us // {SPAN_US} AS span,
            max(us) AS ts_us, count(*) AS commits,
            arg_max(
                {{'committed': event_offset, 'lag': lag, 'exchange_id': exchange_id, 'member_id': member_id,
                  'client_id': client_id}},
                (ts, exchange_id, ordinal)
            ) AS latest,
            arg_max(
                {{'ts_us': us, 'before': before.offset, 'after': event_offset, 'client_id': client_id,
                  'exchange_id': exchange_id, 'member_id': member_id, 'other_client': before.client,
                  'other_member': before.member}},
                before.offset::HUGEINT - event_offset
            ) FILTER (before.offset > event_offset) AS fall
        FROM stated GROUP BY ALL
    ), positions AS (
        SELECT cluster, topic, group_id, partition, epoch_us(ts) // {SPAN_US} AS span, max(epoch_us(ts)) AS ts_us,
            max(fetch_position) AS position, min(event_offset) AS fetched_from,
            bool_and(isolation_level = 'read_committed') AS is_committed_only
        FROM timeline WHERE kind = 'fetched' AND group_id <> '' AND fetch_position IS NOT NULL
        GROUP BY ALL
    ), ends AS (
        SELECT cluster, topic, partition, epoch_us(ts) // {SPAN_US} AS span, max(epoch_us(ts)) AS ts_us,
            max(high_watermark) AS "end", max(log_start_offset) AS start,
            arg_max(
                {{'stable': last_stable_offset, 'end': last_stable_high_watermark}}, (ts, exchange_id, ordinal)
            ) FILTER (last_stable_ts = ts AND last_stable_high_watermark IS NOT NULL) AS stated
        FROM timeline WHERE high_watermark IS NOT NULL GROUP BY ALL
    ), groups AS (
        SELECT DISTINCT cluster, topic, group_id, partition FROM commits
    ), readers AS (
        SELECT cluster, topic, partition, count(*) AS groups FROM groups GROUP BY ALL
    ), ranked AS (
        SELECT ends.*, groups, row_number() OVER (
            PARTITION BY cluster, topic, partition ORDER BY span DESC
        ) AS age FROM ends JOIN readers USING (cluster, topic, partition)
    ), known_ends AS (
        SELECT * EXCLUDE (groups, age) FROM ranked
        WHERE age <= greatest({_LEAST_ENDS}, {_MOST_ENDS_OF_ALL} // groups)
            OR (SELECT sum(groups) FROM ranked) <= {_MOST_ENDS}
    )
    FROM (
        SELECT cluster, topic, group_id, partition, ts_us, commits, latest, NULL::BIGINT AS "end",
            NULL::BIGINT AS start, NULL::BIGINT AS stable, NULL::BIGINT AS stable_end,
            NULL::BIGINT AS fetched_from, NULL::BIGINT AS position, NULL::BOOLEAN AS is_committed_only, fall
        FROM commits
        UNION ALL BY NAME
        SELECT cluster, topic, group_id, partition, ts_us, position, fetched_from, is_committed_only
        FROM positions SEMI JOIN groups USING (cluster, topic, group_id, partition)
        UNION ALL BY NAME
        SELECT cluster, topic, group_id, partition, ts_us, "end", start, stated.stable AS stable,
            stated.end AS stable_end
        FROM known_ends JOIN groups USING (cluster, topic, partition)
    )
    ORDER BY cluster, topic, group_id, partition, ts_us, latest IS NULL, position IS NULL
"""


def group_points(tables: Tables) -> Iterator[Row]:
    """The points of every group that commits: cluster, topic, group, partition, and the values of a Point.

    Those of one group are together, in order of time; of what came at once commits come first.
    """
    return tables.each(_POINTS)


def points_of(rows: Iterable[Row]) -> dict[int, list[Point]]:
    """Points by partition, in order of time, from rows of :func:`group_points` of one group."""
    partitions: defaultdict[int, list[Point]] = defaultdict(list)
    for row in rows:
        fall = None if row.fall is None else Fall(**row.fall)
        point = Point(
            row.ts_us, row.commits or 0, end=row.end, fetched_from=row.fetched_from, position=row.position, fall=fall,
            start=row.start, stable=row.stable, stable_end=row.stable_end, is_committed_only=row.is_committed_only,
            **(row.latest or {}),
        )  # fmt: skip
        partitions[row.partition].append(point)
    return {partition: sorted(points, key=lambda p: p.ts_us) for partition, points in partitions.items()}


def without_falls(points: Sequence[Point], before: int, since_us: int) -> list[Point]:
    """Points in which no one went back from an offset by a commit after the coordinator had lost it."""
    return [
        replace(p, fall=None) if p.fall is not None and p.fall.ts_us > since_us and p.fall.before == before else p
        for p in points
    ]


def markers_of(tables: Tables) -> dict[tuple[str, str], dict[int, list[int]]]:
    """By cluster and topic the offsets of known transaction markers of each partition, ascending."""
    rows = tables.rows(
        """
        SELECT cluster, topic, partition, list(DISTINCT base_offset ORDER BY base_offset) AS offsets FROM batches
        WHERE is_control AND source = 'fetch' AND base_offset IS NOT NULL AND topic IS NOT NULL
        GROUP BY ALL
        """
    )
    found: defaultdict[tuple[str, str], dict[int, list[int]]] = defaultdict(dict)
    for row in rows:
        found[row.cluster, row.topic][row.partition] = row.offsets
    return found


def lives_of(sources: Sources) -> dict[tuple[str, str], Life]:
    """:func:`lives` of what rules look at, which several of them ask for."""
    return sources.once("lives of groups", lambda: lives(sources))


def lives(sources: Sources) -> dict[tuple[str, str], Life]:
    """What is known of the members of each group, by cluster and group.

    Of what members were given only partitions count that were written to, read or committed: others may be many.
    """
    tables, steps, came = sources.tables, sources.steps, kinds(sources)
    given, changes = _given(tables, sources.catalog)
    ended = _ended(tables) if came.has_state("leave") else {}
    unasked = _unasked(tables) if "consumer" in came.protocols else set()
    begun, alive, last_seen = _begun(tables)
    newcomers = _newcomers(steps, alive)
    for cluster, group, member in alive:
        if (cluster, group) in newcomers:  # a rollout may have begun before the capture
            newcomers[cluster, group].add(member)
    limits: defaultdict[tuple[str, str], dict[str, int]] = defaultdict(dict)
    goodbyes: defaultdict[tuple[str, str], defaultdict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for step in steps:
        if step.what == LEAVES:
            goodbyes[step.cluster, step.group][step.member].append(step.us)
        elif step.limit_us:
            limits[step.cluster, step.group][step.member] = step.limit_us
    return {
        group: Life(
            sorted(changes.get(group, ())), ended.get(group, ()), given.get(group, ()), group in unasked,
            limits.get(group, {}), goodbyes.get(group, {}), begun.get(group), frozenset(newcomers.get(group, ())),
            last_seen.get(group, {}),
        )
        for group in {*given, *changes, *ended, *unasked, *limits, *goodbyes, *begun}
    }  # fmt: skip


_of_group = attrgetter("cluster", "group_id")


def _given(
    tables: Tables, catalog: ClusterCatalog
) -> tuple[dict[tuple[str, str], list[Given]], dict[tuple[str, str], set[int]]]:
    rows = tables.rows(
        """
        WITH TASKS, seen AS (
            SELECT cluster, topic, partition FROM events UNION SELECT cluster, topic, partition FROM timeline
        ), numbers AS (
            SELECT DISTINCT cluster, partition FROM seen
        ), stated AS (
            SELECT DISTINCT cluster, group_id, member_id, kind, ts, exchange_id FROM states
            WHERE kind IN ('assignment', 'join') AND error_code = 0 AND group_id <> '' AND member_id <> ''
        ), given AS (
            SELECT cluster, group_id, member_id, kind, ts, exchange_id,
                list(DISTINCT row(topic, topic_id, partition)) AS parts
            FROM (SELECT * EXCLUDE (partitions), unnest(partitions) AS partition FROM placed WHERE kind = 'assignment')
            WHERE error_code = 0 AND group_id <> '' AND member_id <> '' AND CASE
                WHEN topic IS NULL THEN (cluster, partition) IN (FROM numbers)
                ELSE (cluster, topic, partition) IN (FROM seen)
            END
            GROUP BY ALL
        )
        SELECT cluster, group_id, member_id, kind, epoch_us(ts) AS us, parts
        FROM stated LEFT JOIN given USING (cluster, group_id, member_id, kind, ts, exchange_id)
        ORDER BY cluster, group_id, us, exchange_id, member_id
        """.replace("TASKS", WITH_TOPICS)
    )
    given: defaultdict[tuple[str, str], list[Given]] = defaultdict(list)
    changes: defaultdict[tuple[str, str], set[int]] = defaultdict(set)
    for row in rows:
        group = _of_group(row)
        changes[group].add(row.us)
        if row.kind == "assignment":
            parts = frozenset(
                (_named(row.cluster, topic, topic_id, catalog), partition)
                for topic, topic_id, partition in row.parts or ()
                if partition is not None
            )
            given[group].append(Given(row.us, row.member_id, parts))
    return given, changes


def _named(cluster: str, topic: str | None, topic_id: str | None, catalog: ClusterCatalog) -> str:
    if topic is None and topic_id and (known := catalog.topics.get((cluster, topic_id))) is not None:
        topic = known.value
    return topic or topic_id or ""


def _ended(tables: Tables) -> dict[tuple[str, str], list[tuple[int, int | None]]]:
    rows = tables.rows(
        """
        SELECT cluster, group_id, us, next_us FROM (
            SELECT cluster, group_id, kind, epoch_us(ts) AS us, lead(epoch_us(ts)) OVER (
                PARTITION BY cluster, group_id ORDER BY ts, exchange_id, ordinal
            ) AS next_us
            FROM (
                SELECT cluster, group_id, kind, ts, exchange_id, max(ordinal) AS ordinal FROM states
                WHERE kind IN ('join', 'assignment', 'heartbeat', 'leave') AND group_id <> '' GROUP BY ALL
            )
        )
        WHERE kind = 'leave' AND (next_us IS NULL OR next_us - us >= $away)
        ORDER BY cluster, group_id, us
        """,
        away=_LEAST_AWAY_US,
    )
    return {group: [(r.us, r.next_us) for r in some] for group, some in groupby(rows, key=_of_group)}


def _unasked(tables: Tables) -> set[tuple[str, str]]:
    rows = tables.rows(
        "SELECT DISTINCT cluster, group_id FROM states WHERE group_protocol = 'consumer' AND group_id <> ''"
    )
    return {_of_group(row) for row in rows}


def _begun(
    tables: Tables,
) -> tuple[dict[tuple[str, str], int], dict[tuple[str, str, str], int], dict[tuple[str, str], dict[str, int]]]:
    """See Life.begun_us; the first heartbeat of each member (cluster, group, member); and Life.last_seen by group."""
    rows = tables.rows("""
        SELECT cluster, group_id, member_id, epoch_us(min(ts) FILTER (kind = 'heartbeat' AND error_code = 0)) AS us,
            epoch_us(min(ts) FILTER (kind <> 'heartbeat')) AS given_us,
            epoch_us(max(ts) FILTER (kind <> 'assignment' AND error_code = 0)) AS seen_us
        FROM states WHERE kind IN ('join', 'assignment', 'heartbeat') AND group_id <> ''
        GROUP BY cluster, group_id, member_id
    """)
    first: dict[tuple[str, str], int] = {}
    last_seen: defaultdict[tuple[str, str], dict[str, int]] = defaultdict(dict)
    given: dict[tuple[str, str], int] = {}
    for row in rows:
        if row.seen_us is not None:
            last_seen[_of_group(row)][row.member_id] = row.seen_us
        for times, us in ((first, row.us), (given, row.given_us)):
            if us is not None:
                times[_of_group(row)] = min(us, times.get(_of_group(row), us))
    begun = {group: us for group, us in first.items() if group not in given or us < given[group]}
    alive = {(row.cluster, row.group_id, row.member_id): row.us for row in rows if row.us is not None}
    return begun, alive, last_seen


def _newcomers(steps: Iterable[Step], alive: Mapping[tuple[str, str, str], int]) -> dict[tuple[str, str], set[str]]:
    """See Life.newcomers: no member entered by its connection before, and it sent no heartbeat before it entered."""
    processes: dict[tuple[str, str, str], str] = {}
    entered: dict[tuple[str, str, str], int] = {}
    found: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for step in steps:
        member = step.cluster, step.group, step.member
        if step.what != ENTERS or member in entered:
            continue
        entered[member] = step.us
        first = processes.setdefault((step.cluster, step.group, step.connection_id), step.member)
        if first == step.member and step.us <= alive.get(member, step.us):
            found[step.cluster, step.group].add(step.member)
    return found
