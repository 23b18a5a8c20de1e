"""A partition that the leader of a group gives to no member, although the group reads others of the topic.

A finding of ``partition_dropped_from_commits``. Evidence: the assignments that the leader sent with SyncGroup, which
hold all that the generation was given; records that were written to the partition since; and that no member of the
group has fetched it since. In the consumer protocol (KIP-848) the broker assigns, and no message shows all.
What is given to a member that sends nothing: see :mod:`pipeline.analysis.rules.kafka.positions.unseen`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from decoder.kafka.apis import ApiKey
from pipeline.analysis.rules.format import who
from pipeline.analysis.rules.kafka.positions import unread_texts as words
from pipeline.analysis.rules.kafka.positions.reports import finding_of
from pipeline.analysis.rules.kafka.positions.unseen import unseen
from pipeline.analysis.rules.kafka.progress.track import DROPPED
from pipeline.analysis.rules.kinds import kinds
from pipeline.analysis.rules.model import Finding, Sources

if TYPE_CHECKING:
    from pipeline.analysis.rules.kafka.progress.thresholds import ProgressThresholds

_NOTICED_US = 330_000_000
"""Leaders notice new partitions when they ask for metadata again: each 5 minutes (metadata.max.age.ms)."""
_LED = f"""
    WITH led AS (
        SELECT exchange_id, client_id, client_ip AS host FROM exchanges
        WHERE protocol = 'kafka' AND api_key = {int(ApiKey.SYNC_GROUP)} AND status = 'paired'
            AND contains(request_body, '"assignments":[{{')
    ), newest AS (
        SELECT cluster, group_id, max(generation) AS generation FROM states
        WHERE group_protocol = 'classic' AND coalesce(error_code, 0) = 0 AND group_id <> '' GROUP BY ALL
    )
    SELECT s.cluster, s.group_id, s.member_id, s.topic, s.partitions, epoch_us(s.ts) AS since_us, s.exchange_id,
        led.client_id, led.host
    FROM states AS s JOIN led USING (exchange_id) JOIN newest USING (cluster, group_id, generation)
    WHERE s.kind = 'assignment' AND s.error_code = 0 AND s.topic IS NOT NULL
"""
"""What leaders gave to the members of the newest generation of their groups."""
_UNASSIGNED = """
    WITH topics AS (
        SELECT cluster, group_id, topic, max(since_us) AS since_us, max(exchange_id) AS first_exchange,
            arg_max(client_id, since_us) AS client_id, arg_max(host, since_us) AS host
        FROM led GROUP BY ALL
    ), given AS (
        SELECT DISTINCT cluster, group_id, topic, unnest(partitions) AS partition FROM led
    ), members AS (
        SELECT cluster, group_id, client_id, max(epoch_us(ts)) AS alive_us FROM states
        WHERE kind IN ('join', 'heartbeat') AND coalesce(error_code, 0) = 0 GROUP BY ALL
    ), written AS (
        SELECT cluster, topic, partition, epoch_us(ts) AS us, records, exchange_id FROM events
        WHERE kind = 'produced' AND (cluster, topic) IN (SELECT (cluster, topic) FROM topics)
    ), places AS (
        SELECT t.cluster, t.group_id, t.topic, w.partition, t.since_us, t.first_exchange, t.client_id, t.host,
            sum(w.records)::BIGINT AS written, min(w.us) AS first_us, max(w.us) AS last_us,
            max(w.exchange_id) AS last_exchange
        FROM topics AS t JOIN written AS w ON w.cluster = t.cluster AND w.topic = t.topic AND w.us > t.since_us
        ANTI JOIN given AS g ON g.cluster = t.cluster AND g.group_id = t.group_id AND g.topic = t.topic
            AND g.partition = w.partition
        GROUP BY ALL
    ), read AS (
        SELECT e.cluster, e.topic, e.partition, m.group_id, max(epoch_us(e.ts)) AS us
        FROM events AS e JOIN members AS m ON m.cluster = e.cluster AND m.client_id IS NOT DISTINCT FROM e.client_id
        WHERE e.kind IN ('fetched', 'fetch_rejected', 'committed') GROUP BY ALL
    ), alive AS (
        SELECT cluster, group_id, max(alive_us) AS alive_us FROM members GROUP BY ALL
    )
    SELECT p.*, a.alive_us FROM places AS p
        JOIN alive AS a ON a.cluster = p.cluster AND a.group_id = p.group_id
        ANTI JOIN read AS r ON r.cluster = p.cluster AND r.topic = p.topic AND r.partition = p.partition
            AND r.group_id = p.group_id AND r.us > p.since_us
    ORDER BY p.cluster, p.group_id, p.topic, p.partition
"""
"""Partitions of their topics that got records since, that no member was given, and that none of their names read."""


def find(sources: Sources, settings: ProgressThresholds) -> Iterator[Finding]:
    """Apply the rule."""
    if not kinds(sources).has_state("assignment") or not sources.tables.keep("led", _LED):
        return
    for row in sources.tables.rows(_UNASSIGNED):
        until_us = min(row.last_us, row.alive_us)
        if row.written < settings.behind_records or until_us - row.first_us < _NOTICED_US:
            continue
        details = {
            "shape": words.UNASSIGNED, "since_us": row.since_us, "records_behind": int(row.written), "other_fetches": 0,
            "client_id": row.client_id, "clients": who(row.client_id, row.host),
            "enough_us": row.first_us + _NOTICED_US,
        }  # fmt: skip
        yield finding_of(DROPPED, "critical", row, (row.since_us, until_us), details, sources, settings)
    yield from unseen(sources, settings)
