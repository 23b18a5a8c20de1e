"""A partition that a member holds and has never fetched, although it fetches others of the topic from the same broker.

Findings of ``partition_dropped_from_commits``. Evidence: the assignment, heartbeats since, records that were written to
the partition, fetches of others from the broker that took them; and no fetch of this one by any client of that name.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from pipeline.analysis.rules.kafka.positions import unread_words as words
from pipeline.analysis.rules.kafka.positions.reports import DROPPED_RULE, finding_of
from pipeline.analysis.rules.kafka.progress.points import lives_of
from pipeline.analysis.rules.model import Finding, Sources
from pipeline.analysis.rules.people import who
from pipeline.analysis.rules.rule import finds
from pipeline.finding_settings import FindingSettings

_SCHEMA = pa.schema(
    [
        ("cluster", pa.string()), ("group_id", pa.string()), ("member_id", pa.string()), ("topic", pa.string()),
        ("partition", pa.int32()), ("since_us", pa.int64()),
    ]
)  # fmt: skip
_UNFETCHED = """
    WITH members AS (
        SELECT cluster, group_id, member_id, arg_max(client_id, ts) AS client_id, max(epoch_us(ts)) AS alive_us,
            arg_max(host_of(client), ts) AS host FROM states
        WHERE member_id <> '' AND coalesce(error_code, 0) = 0
            AND (kind IN ('join', 'heartbeat') OR group_protocol <> 'classic')
        GROUP BY ALL
    ), fetches AS (
        SELECT DISTINCT cluster, topic, partition, client_id FROM events WHERE kind IN ('fetched', 'fetch_rejected')
    ), held AS (
        SELECT o.*, m.client_id, m.host, m.alive_us FROM owned AS o
            JOIN members AS m USING (cluster, group_id, member_id)
            ANTI JOIN fetches AS f ON f.cluster = o.cluster AND f.topic = o.topic AND f.partition = o.partition
                AND f.client_id IS NOT DISTINCT FROM m.client_id
    ), written AS (
        SELECT h.*, e.server, min(epoch_us(e.ts)) AS first_us, max(epoch_us(e.ts)) AS last_us,
            sum(e.records) AS written, arg_min(e.exchange_id, e.ts) AS first_exchange
        FROM held AS h JOIN events AS e ON e.cluster = h.cluster AND e.topic = h.topic AND e.partition = h.partition
            AND e.kind = 'produced' AND epoch_us(e.ts) > h.since_us
        GROUP BY ALL
    )
    SELECT w.*, max(epoch_us(e.ts)) AS fetched_us, count(DISTINCT e.exchange_id) AS others,
        arg_max(e.exchange_id, e.ts) AS last_exchange
    FROM written AS w JOIN events AS e ON e.cluster = w.cluster AND e.topic = w.topic AND e.server = w.server
        AND e.kind = 'fetched' AND e.client_id IS NOT DISTINCT FROM w.client_id
        AND host_of(e.client) = w.host AND epoch_us(e.ts) > w.since_us
    GROUP BY ALL ORDER BY w.cluster, w.group_id, w.topic, w.partition, w.server
"""


@finds(DROPPED_RULE)
def find(sources: Sources, settings: FindingSettings) -> Iterator[Finding]:
    """Apply the rule."""
    owned = _owned(sources)
    if not owned.num_rows:
        return
    sources.tables.add("owned", owned)
    patience = int(2 * settings.fetched_again_seconds * 1_000_000)
    for row in sources.tables.rows(_UNFETCHED):
        until_us = min(row.last_us, row.fetched_us, row.alive_us)
        if (row.written or 0) < settings.behind_records or until_us - row.first_us < patience:
            continue
        details = {
            "shape": words.NEVER_FETCHED, "since_us": row.since_us, "other_fetches": row.others,
            "records_behind": int(row.written), "client_id": row.client_id, "clients": who(row.client_id, row.host),
            "members": [row.member_id], "enough_us": row.first_us + patience,
        }  # fmt: skip
        yield finding_of(DROPPED_RULE, "critical", row, (row.since_us, until_us), details, sources, settings)


def _owned(sources: Sources) -> pa.Table:
    """The partitions that members hold at the end, and since when."""
    rows = []
    for (cluster, group), life in lives_of(sources).items():
        last_us = life.given[-1].ts_us if life.given else 0
        for topic, partition in sorted({place for given in life.given for place in given.partitions}):
            owner = life.owner(topic, partition, last_us)
            if owner is not None and not life.goodbyes.get(owner.member_id):
                rows.append((cluster, group, owner.member_id, topic, partition, owner.ts_us))
    columns = list(zip(*rows, strict=True)) or [()] * len(_SCHEMA)
    return pa.table([pa.array(column, field.type) for column, field in zip(columns, _SCHEMA, strict=True)], _SCHEMA)
