"""Groups that read on without a commit, start over each time, or do not read what they hold.

Findings of ``partition_dropped_from_commits``, ``stopped`` and ``rewound`` whose commits the capture does not hold:
the last one is known from OffsetFetch, or there never was one. Evidence: fetches whose positions continue, while
commits of other partitions are accepted and none of this one is sent; a Fetch answered OFFSET_OUT_OF_RANGE after which
the partition is not fetched; a refused OffsetFetch after which nothing is fetched; starts that find no commit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

from decoder.fields import integers, items, parsed, text
from decoder.kafka.apis import ApiKey
from decoder.kafka.errors import error_name
from pipeline.analysis.rules.format import who
from pipeline.analysis.rules.kafka.positions import unread_texts as words
from pipeline.analysis.rules.kafka.positions.reports import Place, finding_of
from pipeline.analysis.rules.kafka.positions.shown import COMMITS_OF_ANY, shown
from pipeline.analysis.rules.kafka.positions.whole_groups import of_whole_groups
from pipeline.analysis.rules.kafka.progress.points import lives_of
from pipeline.analysis.rules.kafka.progress.rhythm import gaps_us, usual_us
from pipeline.analysis.rules.kafka.progress.track import DROPPED, REWOUND, STOPPED
from pipeline.analysis.rules.kafka.refused_apis import refused_apis
from pipeline.analysis.rules.model import NAMELESS, Finding, Sources
from pipeline.analysis.tables import Row, Tables, numbers

if TYPE_CHECKING:
    from pipeline.analysis.rules.kafka.progress.thresholds import UnreadThresholds

_READING = numbers(ApiKey.FETCH, ApiKey.OFFSET_COMMIT)
_BEATING = numbers(ApiKey.HEARTBEAT, ApiKey.CONSUMER_GROUP_HEARTBEAT)
_STARTS = 3
"""Starts that find no commit and read again."""
_UNCOMMITTED = f"""
    WITH commits AS (
        SELECT cluster, topic, partition, group_id FROM timeline
        WHERE kind IN {COMMITS_OF_ANY} AND group_id <> '' GROUP BY ALL
    ), of_groups AS (SELECT DISTINCT cluster, group_id FROM commits),
    of_topics AS (SELECT DISTINCT cluster, topic, group_id FROM commits), asked AS (
        SELECT cluster, topic, partition, group_id, arg_max(event_offset, ts) AS committed, true AS is_asked
        FROM timeline WHERE kind = 'fetched_commit' AND error_name = 'NONE' AND group_id <> '' GROUP BY ALL
    ), fetched AS (
        SELECT DISTINCT cluster, topic, partition, group_id, NULL::BIGINT AS committed, false AS is_asked FROM timeline
            SEMI JOIN of_topics USING (cluster, topic, group_id)
            ANTI JOIN asked USING (cluster, topic, partition, group_id)
        WHERE kind = 'fetched' AND isolation_level IS NOT NULL
    )
    SELECT * FROM (FROM asked SEMI JOIN of_groups USING (cluster, group_id) UNION ALL BY NAME FROM fetched)
        ANTI JOIN commits USING (cluster, topic, partition, group_id)
"""
"""Partitions that a group does not commit although it commits others; that it asked its commits of, or where the
capture begins later fetches beside others of the topic."""
_READS = """
    WITH found AS (
        SELECT cluster, topic, partition, group_id, t.client_id, committed, is_asked, min(event_offset) AS begun_at,
            max(event_next_offset) AS position, count(DISTINCT event_next_offset) AS steps,
            min(epoch_us(ts)) FILTER (event_next_offset IS NOT NULL) AS first_us,
            max(epoch_us(ts)) FILTER (event_next_offset IS NOT NULL) AS last_us,
            arg_min(exchange_id, ts) AS first_exchange, arg_max(exchange_id, ts) AS last_exchange
        FROM timeline AS t JOIN uncommitted USING (cluster, topic, partition, group_id)
        WHERE kind = 'fetched' AND group_id <> '' AND isolation_level IS NOT NULL
        GROUP BY ALL HAVING steps >= $steps
    )
    SELECT f.*, x.client_ip AS host FROM found AS f LEFT JOIN exchanges AS x ON x.exchange_id = f.last_exchange
    ORDER BY f.cluster, f.group_id, f.topic, f.partition, f.client_id
"""
"""Of these, what is read, and from which host the last time."""
_COMMITS = """
    SELECT DISTINCT epoch_us(ts) AS us FROM timeline
    WHERE kind IN ('committed', 'txn_applied') AND cluster = $cluster AND group_id = $group
        AND ($client IS NULL OR client_id = $client)
"""
_OUT_OF_RANGE = f"""
    WITH refused AS (
        SELECT t.cluster, t.topic, t.partition, t.group_id, t.client_id, x.client_ip AS host, epoch_us(t.ts) AS us,
            t.exchange_id, t.event_offset
        FROM timeline AS t JOIN exchanges AS x USING (exchange_id)
        WHERE t.kind = 'fetch_rejected' AND t.error_name = 'OFFSET_OUT_OF_RANGE' AND t.group_id <> ''
    ), read AS (
        SELECT cluster, topic, partition, group_id, max(epoch_us(ts)) AS us FROM timeline
            SEMI JOIN refused USING (cluster, topic, partition, group_id)
        WHERE kind IN ('fetched', 'committed') GROUP BY ALL
    ), alive AS (
        SELECT client_id, client_ip AS host,
            max(epoch_us(ts)) FILTER (api_key IN {_READING}) AS us,
            max(epoch_us(ts)) FILTER (api_key IN {_BEATING} AND coalesce(len(error_codes), 0) = 0) AS beats_us
        FROM exchanges WHERE api_key IN {(*_READING, *_BEATING)} GROUP BY ALL
    ), ends AS (
        SELECT cluster, topic, partition, arg_max(high_watermark, ts) AS "end" FROM timeline
            SEMI JOIN refused USING (cluster, topic, partition)
        WHERE high_watermark IS NOT NULL GROUP BY ALL
    )
    SELECT r.cluster, r.topic, r.partition, r.group_id, r.client_id, r.host, min(r.us) AS refused_us,
        count(*) AS refusals, max(r.us) AS last_us, arg_max(r.event_offset, r.us) AS stood,
        arg_min(r.exchange_id, r.us) AS first_exchange, arg_max(r.exchange_id, r.us) AS last_exchange,
        any_value(a.us) AS alive_us, any_value(a.beats_us) AS beats_us, any_value(e."end") AS "end"
    FROM refused AS r
        LEFT JOIN read AS f ON f.cluster = r.cluster AND f.topic = r.topic AND f.partition = r.partition
            AND f.group_id = r.group_id
        LEFT JOIN ends AS e ON e.cluster = r.cluster AND e.topic = r.topic AND e.partition = r.partition
        JOIN alive AS a ON a.host = r.host AND a.client_id IS NOT DISTINCT FROM r.client_id
    WHERE f.us IS NULL OR r.us > f.us
    GROUP BY r.cluster, r.topic, r.partition, r.group_id, r.client_id, r.host
    ORDER BY ALL
"""
"""Partitions that were refused and not read since by any client of the group."""
_REFUSED = f"""
    SELECT client_id, client_ip, max(epoch_us(ts)) AS us, count(*) AS refusals,
        arg_max(exchange_id, ts) AS exchange_id, arg_max(request_body, ts) AS request_body,
        arg_max(error_codes, ts) AS error_codes, arg_max(server_ip || ':' || server_port, ts) AS server
    FROM exchanges WHERE api_key = {int(ApiKey.OFFSET_FETCH)} AND coalesce(len(error_codes), 0) > 0
    GROUP BY client_id, client_ip ORDER BY us DESC, client_id, client_ip LIMIT 100
"""
_SINCE = f"""
    SELECT max(epoch_us(ts)) AS alive_us, count(*) FILTER (
        api_key IN ({int(ApiKey.FETCH)}, {int(ApiKey.OFFSET_FETCH)}, {int(ApiKey.JOIN_GROUP)})) AS others
    FROM exchanges WHERE protocol = 'kafka' AND epoch_us(ts) > $us AND client_ip = $ip
        AND client_id IS NOT DISTINCT FROM $client
"""
_BEGUN = """
    WITH starts AS (
        SELECT cluster, topic, partition, group_id, epoch_us(ts) AS us, exchange_id, client_id FROM timeline
            ANTI JOIN (SELECT DISTINCT cluster, group_id FROM timeline WHERE kind IN ('committed', 'txn_committed'))
                USING (cluster, group_id)
        WHERE kind = 'fetched_commit' AND event_offset IS NULL AND error_name = 'NONE' AND group_id <> ''
        QUALIFY count(*) OVER (PARTITION BY cluster, topic, partition, group_id) >= $starts
    ), fetches AS (
        SELECT cluster, topic, partition, group_id, epoch_us(ts) AS us, event_offset, event_next_offset FROM timeline
            SEMI JOIN starts USING (cluster, topic, partition, group_id)
        WHERE kind = 'fetched' AND isolation_level IS NOT NULL
    )
    SELECT s.cluster, s.topic, s.partition, s.group_id, s.client_id, s.us, s.exchange_id,
        min(f.event_offset) AS begun_at, max(f.event_next_offset) AS position, max(f.us) AS last_us
    FROM fetches AS f ASOF JOIN starts AS s ON f.cluster = s.cluster AND f.topic = s.topic
        AND f.partition = s.partition AND f.group_id = s.group_id AND f.us >= s.us
    GROUP BY ALL ORDER BY s.cluster, s.group_id, s.topic, s.partition, s.us
"""
"""Starts of groups without any commit, and what was read from each on."""


def find(sources: Sources, settings: UnreadThresholds) -> Iterator[Finding]:
    """Apply the rules."""
    signs = shown(sources)
    if signs.is_uncommitted:
        yield from _uncommitted(sources, settings)
    if ApiKey.OFFSET_FETCH in refused_apis(sources):
        yield from _offsets_refused(sources, settings)
    if signs.out_of_range:
        yield from _out_of_range(sources, settings)
    each_time = list(_never_committed(sources, settings)) if signs.without >= _STARTS else []
    yield from each_time
    if signs.read_us >= settings.uncommitted_seconds * 1_000_000:
        yield from of_whole_groups(sources, settings, {finding.subject for finding in each_time})


def _uncommitted(sources: Sources, settings: UnreadThresholds) -> Iterator[Finding]:
    tables = sources.tables
    if not tables.keep("uncommitted", _UNCOMMITTED):
        return
    rows = [row for row in tables.rows(_READS, steps=settings.dropped_commits) if _is_behind(row, settings)]
    known = _commits(tables, rows)
    for row in rows:
        begun_at = _begun_at(row)
        own = known[row.cluster, row.group_id, row.client_id]
        commits = own or known[row.cluster, row.group_id, None]
        others = [us for us in commits if row.first_us < us]
        patience = max(_patience_us(settings), int(settings.silence_periods * usual_us(gaps_us(commits))))
        if not own and (row.cluster, row.group_id) in _changing(sources):
            patience = max(patience, int(settings.uncommitted_seconds * 1_000_000))
        if len(others) < settings.dropped_commits or min(others[-1], row.last_us) - row.first_us < patience:
            continue
        details = {
            "shape": words.UNCOMMITTED, "committed": row.committed, "is_asked": row.is_asked,
            "begun_at": begun_at, "position": row.position,
            "records_behind": row.position - begun_at, "other_commits": len(others), "own_commits": len(own),
            "client_id": row.client_id,
            "clients": who(row.client_id, row.host), "enough_us": row.first_us + patience,
        }  # fmt: skip
        last_us = max(row.last_us, others[-1])
        yield finding_of(DROPPED, "critical", row, (row.first_us, last_us), details, sources, settings)


def _begun_at(row: Row) -> int | None:
    """The offset that its reading is counted from."""
    begun_at: int | None = row.begun_at if row.committed is None else row.committed
    return begun_at


def _is_behind(row: Row, settings: UnreadThresholds) -> bool:
    begun_at = _begun_at(row)
    return begun_at is not None and row.position - begun_at >= settings.behind_records


def _commits(tables: Tables, rows: Iterable[Row]) -> dict[tuple[str, str, str | None], list[int]]:
    """By cluster, group and client (None: any) when it committed anything, in order of time."""
    keys = {(row.cluster, row.group_id, client): None for row in rows for client in (row.client_id, None)}
    asked = [{"cluster": cluster, "group": group, "client": client} for cluster, group, client in keys]
    return {key: [one.us for one in found] for key, found in zip(keys, tables.of_each(_COMMITS, asked), strict=True)}


def _changing(sources: Sources) -> set[tuple[str, str]]:
    """Cluster and group with a process that begins in the capture: the rhythm of its commits is unknown."""

    def found() -> set[tuple[str, str]]:
        lives = lives_of(sources)
        return {group for group, life in lives.items() if life.newcomers}

    return sources.once("groups whose processes begin", found)


def _patience_us(settings: UnreadThresholds) -> int:
    return int(2 * settings.fetched_again_seconds * 1_000_000)


def out_of_range(sources: Sources, settings: UnreadThresholds) -> list[Row]:
    """Partitions that groups do not read since they were out of range, for long enough.

    Who sends heartbeats alone may be busy with records of before, and takes up the answer when it polls again.
    """

    def found() -> list[Row]:
        rows = sources.tables.rows(_OUT_OF_RANGE)
        return [row for row in rows if _enough_us(row, settings) is not None and row.stood is not None]

    return sources.once("partitions out of range", found)


def _enough_us(row: Row, settings: UnreadThresholds) -> int | None:
    """When it was long enough that a partition was not read since it was out of range; None: never."""
    enough: int = row.refused_us + int(settings.fetched_again_seconds * 1_000_000)
    if row.alive_us >= enough:
        return enough
    enough = row.refused_us + int(settings.poll_seconds * 1_000_000)
    return enough if (row.beats_us or 0) >= enough else None


def _out_of_range(sources: Sources, settings: UnreadThresholds) -> Iterator[Finding]:
    """Of a process that fetches nothing at all since, the first partition of each topic stands for all."""
    silent: set[tuple[str, str, str, str | None, str]] = set()
    for row in out_of_range(sources, settings):
        reads_on = row.alive_us >= row.refused_us + int(settings.fetched_again_seconds * 1_000_000)
        whose = (row.cluster, row.group_id, row.topic, row.client_id, row.host)
        if not reads_on and whose in silent:
            continue
        silent |= set() if reads_on else {whose}
        details = {
            "shape": words.OUT_OF_RANGE, "refused_us": row.refused_us, "refusals": row.refusals, "offset": row.stood,
            "records_behind": max((row.end or 0) - row.stood, 0), "client_id": row.client_id,
            "clients": who(row.client_id, row.host),
            "other_fetches": reads_on,
            "enough_us": _enough_us(row, settings),
        }  # fmt: skip
        span_us = row.refused_us, row.alive_us if reads_on else row.beats_us
        yield finding_of(DROPPED if reads_on else STOPPED, "critical", row, span_us, details, sources, settings)


def _offsets_refused(sources: Sources, settings: UnreadThresholds) -> Iterator[Finding]:
    """Whoever asks again and again is judged by ``request_refused``."""
    tables = sources.tables
    rows = tables.rows(_REFUSED)
    asked = [{"us": row.us, "ip": row.client_ip, "client": row.client_id} for row in rows]
    for row, (since,) in zip(rows, tables.of_each(_SINCE, asked), strict=True):
        is_few = row.refusals < settings.refused_again_times
        if not is_few or since.others or (since.alive_us or 0) - row.us < _patience_us(settings):
            continue
        cluster = sources.catalog.cluster_at(row.server, row.us)
        for group, topic, partition in _asked(row):
            details = {
                "shape": words.OFFSETS_REFUSED, "refusals": row.refusals, "error": error_name(row.error_codes[0]),
                "alive_us": since.alive_us - row.us, "client_id": row.client_id,
                "clients": who(row.client_id, row.client_ip), "enough_us": row.us + _patience_us(settings),
            }  # fmt: skip
            place = Place(cluster, topic, partition, group, row.exchange_id)
            yield finding_of(STOPPED, "critical", place, (row.us, since.alive_us), details, sources, settings)


def _asked(row: Row) -> Iterator[tuple[str, str, int]]:
    """Group, topic and partition of a request: the first partition of each topic stands for all."""
    body = parsed(row.request_body)
    for group in items(body, "groups") or [body]:
        for topic in items(group, "topics"):
            for number in integers(topic, "partitionIndexes")[:1]:
                yield text(group, "groupId") or "", text(topic, "name") or "", number


def _never_committed(sources: Sources, settings: UnreadThresholds) -> Iterator[Finding]:
    """The partition of each group and topic with the most records read again stands for all."""
    starts: defaultdict[tuple[str, str, str, int], list[Row]] = defaultdict(list)
    for row in sources.tables.rows(_BEGUN, starts=_STARTS):
        if row.begun_at is not None and row.position is not None:
            starts[row.cluster, row.group_id, row.topic, row.partition].append(row)
    best: dict[tuple[str, str, str], tuple[int, list[Row]]] = {}
    for (cluster, group, topic, _), rows in starts.items():
        again = sum(max(before.position - after.begun_at, 0) for before, after in pairwise(rows))
        is_each = all(after.begun_at < before.position for before, after in pairwise(rows))
        known = best.get((cluster, group, topic))
        if (
            len(rows) >= _STARTS
            and is_each
            and again >= settings.behind_records
            and (known is None or again > known[0])
        ):
            best[cluster, group, topic] = again, rows
    for (cluster, group, topic), (again, rows) in best.items():
        details = {
            "shape": words.NEVER_COMMITS, "starts": len(rows), "begun_at": rows[-1].begun_at, "read_again": again,
            "client_id": rows[-1].client_id, "clients": rows[-1].client_id or NAMELESS,
            "enough_us": rows[_STARTS - 1].us,
        }  # fmt: skip
        place = Place(cluster, topic, rows[-1].partition, group, rows[0].exchange_id)
        place.last_exchange = rows[-1].exchange_id
        yield finding_of(REWOUND, "warning", place, (rows[0].us, rows[-1].last_us), details, sources, settings)
