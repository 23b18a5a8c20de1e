"""A partition that the leader gave to a member that the capture does not show since, on any connection.

Findings of ``partition_dropped_from_commits``. Evidence: the leader's SyncGroup of the newest generation; no request of
that member since, nor of its client from its host where the capture showed it before; records that were written to the
partition, and no fetch of it that could be the member's. The capture must show others where the member would be seen:
members from another host than the leader's at the coordinator, and readers at the broker that took the records.
Who never showed, although the capture shows the group before that generation, has joined unseen: its host is not
captured, and there is no finding; likewise after as long as the longest session may last.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from decoder.kafka.apis import ApiKey
from pipeline.analysis.rules.format import who
from pipeline.analysis.rules.kafka.positions import unread_texts as words
from pipeline.analysis.rules.kafka.positions.reports import finding_of
from pipeline.analysis.rules.kafka.positions.unfetched import written_since
from pipeline.analysis.rules.kafka.progress.points import lives_of
from pipeline.analysis.rules.kafka.progress.track import DROPPED
from pipeline.analysis.rules.model import Finding, Sources
from pipeline.analysis.tables import ADDRESS

if TYPE_CHECKING:
    from pipeline.analysis.rules.kafka.progress.thresholds import ProgressThresholds

_AT_RANDOM = re.compile(r"-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
"""Coordinators make member ids of the client id, or the instance id, and this."""
_SYNCING_US = 5_000_000
"""A member takes its assignment within this time, and shows itself by that."""
_LONGEST_JOIN_US, _LONGEST_SESSION_US = 300_000_000, 1_800_000_000
"""How long a rebalance waits for members by default, and the longest session that brokers allow by default."""
_UNSEEN = f"""
    WITH newest AS (
        SELECT cluster, group_id, max(generation) AS generation FROM states
        WHERE kind = 'assignment' AND exchange_id IN (SELECT exchange_id FROM led) GROUP BY ALL
    ), seen AS (
        SELECT cluster, group_id, member_id, max(epoch_us(ts)) AS seen_us, arg_max(client_id, ts) AS client_id,
            arg_max(host_of(client), ts) AS host
        FROM states WHERE member_id <> '' AND exchange_id NOT IN (SELECT exchange_id FROM led) GROUP BY ALL
    ), before AS (
        SELECT s.cluster, s.group_id, min(epoch_us(s.ts)) AS first_us,
            bool_or(s.kind = 'heartbeat' AND s.generation < n.generation) AS is_older
        FROM states AS s JOIN newest AS n USING (cluster, group_id) WHERE coalesce(s.error_code, 0) = 0 GROUP BY ALL
    ), alive AS (
        SELECT cluster, group_id, max(epoch_us(ts)) AS alive_us FROM states
        WHERE kind IN ('join', 'heartbeat') AND coalesce(error_code, 0) = 0 GROUP BY ALL
    ), speaking AS (
        SELECT client_ip AS host, client_id, max(epoch_us(ts)) AS us FROM exchanges GROUP BY ALL
    ), touched AS (
        SELECT cluster, topic, partition, group_id, max(epoch_us(ts)) AS us FROM timeline
        WHERE kind IN ('committed', 'commit_rejected', 'txn_committed')
            OR (kind IN ('fetched', 'fetch_rejected') AND isolation_level IS NOT NULL)
        GROUP BY ALL
    ), held AS (
        SELECT l.cluster, l.group_id, l.member_id, l.topic, unnest(l.partitions) AS partition, l.since_us,
            l.exchange_id AS led_by, l.host AS leader_host, h.seen_us, h.client_id, h.host, a.alive_us,
            {ADDRESS["server"]} AS coordinator
        FROM led AS l JOIN exchanges AS x ON x.exchange_id = l.exchange_id
            JOIN alive AS a ON a.cluster = l.cluster AND a.group_id = l.group_id
            JOIN before AS b ON b.cluster = l.cluster AND b.group_id = l.group_id
            LEFT JOIN seen AS h ON h.cluster = l.cluster AND h.group_id = l.group_id AND h.member_id = l.member_id
            LEFT JOIN speaking AS s ON s.host = h.host AND s.client_id IS NOT DISTINCT FROM h.client_id
        WHERE coalesce(h.seen_us, 0) < l.since_us + {_SYNCING_US} AND coalesce(s.us, 0) < l.since_us + {_SYNCING_US}
            AND (h.seen_us IS NOT NULL
                OR NOT (b.is_older OR b.first_us < l.since_us - {_LONGEST_JOIN_US}))
    )
    SELECT h.* FROM held AS h
        LEFT JOIN touched AS t ON t.cluster = h.cluster AND t.topic = h.topic AND t.partition = h.partition
            AND t.group_id = h.group_id
        LEFT JOIN touched AS u ON u.cluster = h.cluster AND u.topic = h.topic AND u.partition = h.partition
            AND u.group_id = ''
    WHERE coalesce(t.us, 0) < h.since_us + {_SYNCING_US} AND coalesce(u.us, 0) < h.since_us + {_SYNCING_US}
"""
"""What members were given that is not seen since, and that no client reads that might be one of them."""
_WAITING = f"""
    WITH {written_since("unseen", "since_us")}, members AS (
        SELECT server, min(host_of(client)) AS least, max(host_of(client)) AS greatest FROM states
        WHERE kind IN ('join', 'heartbeat') GROUP BY ALL
    ), readers AS (
        SELECT {ADDRESS["server"]} AS server, min(client_ip) AS least, max(client_ip) AS greatest FROM exchanges
        WHERE protocol = 'kafka' AND api_key = {int(ApiKey.FETCH)} GROUP BY ALL
    )
    SELECT w.* EXCLUDE (first_exchange), w.led_by AS first_exchange FROM written AS w
        LEFT JOIN members AS m ON m.server = w.coordinator LEFT JOIN readers AS r ON r.server = w.server
    WHERE (w.seen_us IS NOT NULL OR m.least <> w.leader_host OR m.greatest <> w.leader_host)
        AND (w.server = w.coordinator OR r.least <> w.leader_host OR r.greatest <> w.leader_host)
    ORDER BY w.cluster, w.group_id, w.topic, w.partition, w.server
"""
"""What was written to these partitions since, where the capture shows others at the brokers."""


def unseen(sources: Sources, settings: ProgressThresholds) -> Iterator[Finding]:
    """Findings about what the leaders of groups gave, as the table ``led`` has it."""
    patience = int(2 * settings.fetched_again_seconds * 1_000_000)
    if not _may_be(sources, patience) or not sources.tables.keep("unseen", _UNSEEN):
        return
    for row in sources.tables.rows(_WAITING):
        until_us = min(row.last_us, row.alive_us)
        is_long = until_us - row.first_us >= patience
        is_known = row.seen_us is not None or until_us - row.since_us < _LONGEST_SESSION_US
        if row.written < settings.behind_records or not is_long or not is_known:
            continue
        name = _AT_RANDOM.sub("", row.member_id)
        details = {
            "shape": words.UNSEEN, "since_us": row.since_us, "seen_us": row.seen_us, "server": row.coordinator,
            "records_behind": int(row.written), "client_id": row.client_id, "members": [row.member_id],
            "clients": name if row.seen_us is None else who(row.client_id, row.host), "other_fetches": 0,
            "enough_us": row.first_us + patience,
        }  # fmt: skip
        yield finding_of(DROPPED, "warning", row, (row.since_us, until_us), details, sources, settings)


def _may_be(sources: Sources, patience: int) -> bool:
    """Whether any member was given partitions, and neither joined nor sent a heartbeat since."""
    for (cluster, _), life in lives_of(sources).items():
        newest = {given.member_id: given for given in life.given}
        ended_us = sources.ends.get(cluster, 0) - patience
        if any(
            given.partitions and given.ts_us <= ended_us
            and life.last_seen.get(member, 0) < given.ts_us + _SYNCING_US and not life.goodbyes.get(member)
            for member, given in newest.items()
        ):  # fmt: skip
            return True
    return False
