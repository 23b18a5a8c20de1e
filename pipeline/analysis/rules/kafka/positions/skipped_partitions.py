"""A partition that a reader without membership leaves out, while it reads others of the topic.

Findings of ``partition_dropped_from_commits``, of who reads by assign(), with a group or without one: it is assigned
no partitions, so what it means to read is known only by what it did. Evidence: it fetched or committed the partition,
or asked for its commit, and has not fetched it since; or it reads all partitions that are written but this one, and has
never asked for it. Records were written there since; meanwhile it kept up with others of the same broker, as who reads
up to a fixed offset does not; and no other reader that might be of its kind touches the partition.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pipeline.analysis.rules.format import who
from pipeline.analysis.rules.kafka.positions import unread_texts as words
from pipeline.analysis.rules.kafka.positions.reports import finding_of
from pipeline.analysis.rules.kafka.positions.shown import shown
from pipeline.analysis.rules.kafka.positions.unfetched import written_since
from pipeline.analysis.rules.kafka.progress.track import DROPPED
from pipeline.analysis.rules.model import Finding, Sources
from pipeline.analysis.tables import ADDRESS, Row

if TYPE_CHECKING:
    from pipeline.analysis.rules.kafka.progress.thresholds import ProgressThresholds

_NOTICED_US = 330_000_000
"""Readers notice new partitions when they ask for metadata again: each 5 minutes (metadata.max.age.ms)."""
_LEFT_US = 60_000_000
"""For how long a partition is left out, at least."""
_SIGNS = f"""
    WITH places AS (
        SELECT cluster, topic, partition, group_id, max(high_watermark) AS "end",
            bool_or(kind = 'produced') AS is_written,
            max(epoch_us(ts)) FILTER (kind = 'fetched' AND isolation_level IS NOT NULL) AS read_us,
            max(epoch_us(ts)) FILTER (kind IN ('committed', 'fetched_commit')) AS known_us,
            max(CASE kind WHEN 'fetched' THEN fetch_position WHEN 'committed' THEN event_offset END) AS position
        FROM timeline GROUP BY ALL
    ), beside AS (
        SELECT greatest(read_us, known_us) AS sign_us, position,
            max("end") OVER (PARTITION BY cluster, topic, partition) AS "end",
            max(read_us) OVER (PARTITION BY cluster, topic, group_id) AS others_us,
            count(read_us) OVER (PARTITION BY cluster, topic, group_id) AS read_ones,
            count(*) FILTER (is_written) OVER (PARTITION BY cluster, topic) AS written_ones
        FROM places
    )
    SELECT 1 FROM beside
    WHERE (others_us - sign_us >= {_LEFT_US} AND "end" > coalesce(position, 0))
        OR (read_ones >= 2 AND read_ones < written_ones)
"""
"""Whether a partition with records is not read although the same group reads others of its topic."""
_READER = "cluster, topic, group_id, client_id, host"
_READING = f"""
    WITH members AS (
        SELECT DISTINCT host_of(client) AS host, coalesce(client_id, '') AS client_id FROM states
        WHERE kind IN ('join', 'assignment', 'heartbeat') AND group_id <> ''
    )
    SELECT t.cluster, t.topic, t.partition, t.group_id, coalesce(t.client_id, '') AS client_id, x.client_ip AS host,
        x.client_port AS port, {ADDRESS["server"]} AS server, t.kind, epoch_us(t.ts) AS us, t.exchange_id,
        t.event_next_offset > t.event_offset AND t.event_next_offset >= t.high_watermark AS reaches_end
    FROM timeline AS t JOIN exchanges AS x USING (exchange_id)
        ANTI JOIN members AS m ON m.host = x.client_ip AND m.client_id = coalesce(t.client_id, '')
    WHERE NOT starts_with(t.topic, '__') AND NOT ends_with(coalesce(t.client_id, ''), '-restore-consumer') AND (
        (t.kind IN ('fetched', 'fetch_rejected') AND t.isolation_level IS NOT NULL)
        OR (t.kind IN ('committed', 'fetched_commit') AND t.group_id <> ''))
"""
"""What clients that are no members read, commit, or ask for, but those by which Kafka Streams restores its state."""
_LEFT = f"""
    WITH touched AS (
        SELECT cluster, topic, partition, group_id, max(epoch_us(ts)) AS us FROM timeline
        WHERE kind IN ('committed', 'txn_committed', 'txn_applied', 'commit_rejected')
            OR (kind IN ('fetched', 'fetch_rejected') AND isolation_level IS NOT NULL)
        GROUP BY ALL
    ), readers AS (
        SELECT {_READER}, min(us) AS begun_us, max(us) AS us, count(DISTINCT partition) AS partitions,
            bool_or(kind = 'committed') AS commits
        FROM reading WHERE kind = 'fetched' OR (kind = 'committed' AND group_id <> '') GROUP BY ALL
    ), own AS (
        SELECT {_READER}, partition, max(us) AS sign_us, arg_max(kind, us) AS sign,
            arg_max(exchange_id, us) AS signed_by, arg_max(port, us) FILTER (kind = 'fetched') AS port,
            arg_max(server, us) FILTER (kind = 'fetched') AS via,
            max(us) FILTER (kind = 'committed') AS committed_us
        FROM reading GROUP BY ALL
    ), still AS (
        SELECT {_READER}, server AS via, arg_max(port, us) AS port FROM reading WHERE kind = 'fetched' GROUP BY ALL
    ), stopped AS (
        SELECT o.* EXCLUDE (port, via), r.commits, r.partitions FROM own AS o JOIN readers AS r USING ({_READER})
            LEFT JOIN still AS s ON s.cluster = o.cluster AND s.topic = o.topic AND s.group_id = o.group_id
                AND s.client_id = o.client_id AND s.host = o.host AND s.via = o.via
        WHERE r.us - o.sign_us >= {_LEFT_US} AND o.sign <> 'fetch_rejected' AND o.port IS NOT DISTINCT FROM s.port
    ), written_ones AS (
        SELECT cluster, topic, partition FROM events WHERE kind = 'produced' AND coalesce(error_code, 0) = 0
        GROUP BY ALL
    ), of_topics AS (
        SELECT cluster, topic, count(*) AS partitions, sum(partition) AS numbers FROM written_ones GROUP BY ALL
    ), of_readers AS (
        SELECT {_READER}, count(*) AS partitions, sum(partition) AS numbers
        FROM (SELECT DISTINCT {_READER}, partition FROM reading WHERE kind = 'fetched')
            SEMI JOIN written_ones USING (cluster, topic, partition)
        GROUP BY ALL
    ), never AS (
        SELECT r.* EXCLUDE (us, begun_us, partitions), (t.numbers - o.numbers)::INT AS partition, r.begun_us AS sign_us,
            'never' AS sign, o.partitions
        FROM readers AS r JOIN of_readers AS o USING ({_READER}) JOIN of_topics AS t USING (cluster, topic)
        WHERE o.partitions >= 2 AND t.partitions = o.partitions + 1
    ), known AS (
        FROM stopped UNION ALL BY NAME
        SELECT n.* FROM never AS n ANTI JOIN own AS o ON o.cluster = n.cluster AND o.topic = n.topic
            AND o.partition = n.partition AND o.group_id = n.group_id AND o.client_id = n.client_id AND o.host = n.host
    )
    SELECT k.* FROM known AS k
        LEFT JOIN touched AS t ON t.cluster = k.cluster AND t.topic = k.topic AND t.partition = k.partition
            AND t.group_id = k.group_id
        LEFT JOIN touched AS u ON u.cluster = k.cluster AND u.topic = k.topic AND u.partition = k.partition
            AND u.group_id = ''
    WHERE coalesce(t.us, 0) <= sign_us AND (sign <> 'never' OR t.us IS NULL)
        AND coalesce(u.us, 0) <= sign_us AND (sign <> 'never' OR u.us IS NULL)
"""
"""Partitions that no member of the same group, and no reader of no known group, touches since."""
_SINCE = f"""
    WITH {written_since("left_out", "sign_us")}, others AS (
        SELECT {_READER}, server, us, max(us) OVER w AS fetched_us, count(*) OVER w AS fetches,
            first_value(exchange_id) OVER w AS last_exchange
        FROM reading WHERE kind = 'fetched' AND reaches_end WINDOW w AS (
            PARTITION BY {_READER}, server ORDER BY us DESC ROWS UNBOUNDED PRECEDING
        )
    )
    SELECT w.* EXCLUDE (last_exchange, first_exchange), coalesce(w.signed_by, w.first_exchange) AS first_exchange,
        e.fetched_us, e.fetches, e.last_exchange
    FROM written AS w ASOF JOIN others AS e ON e.cluster = w.cluster AND e.topic = w.topic AND e.server = w.server
        AND e.group_id = w.group_id AND e.client_id = w.client_id AND e.host = w.host AND w.first_us < e.us
    ORDER BY w.cluster, w.group_id, w.client_id, w.host, w.topic, w.partition, w.server
"""
"""What was written there since, and how often the reader reached the end of others of that broker since."""


def find(sources: Sources, settings: ProgressThresholds) -> Iterator[Finding]:
    """Apply the rule."""
    tables = sources.tables
    if shown(sources).fetched_us < _LEFT_US or not tables.any(_SIGNS):
        return
    if not tables.keep("reading", _READING) or not tables.keep("left_out", _LEFT):
        return
    for row in tables.rows(_SINCE):
        patience = _patience_us(row, settings)
        until_us = min(row.last_us, row.fetched_us)
        is_little = row.written < settings.behind_records or row.fetches < settings.dropped_commits
        if is_little or until_us - row.first_us < patience:
            continue
        details = {
            "shape": words.LEFT_OUT, "sign": row.sign, "since_us": row.sign_us, "other_fetches": row.fetches,
            "partitions_read": row.partitions, "committed_us": row.committed_us, "group": row.group_id,
            "records_behind": int(row.written), "client_id": row.client_id or None,
            "clients": who(row.client_id or None, row.host), "enough_us": row.first_us + patience,
        }  # fmt: skip
        yield finding_of(DROPPED, "warning", row, (row.sign_us, until_us), details, sources, settings)


def _patience_us(row: Row, settings: ProgressThresholds) -> int:
    """Who commits what it processes shows that it is not busy with what it got of the partition; others may be."""
    if row.sign == "never":
        return _NOTICED_US
    floor = 2 * settings.fetched_again_seconds if row.commits else settings.poll_seconds
    return int(floor * 1_000_000)
