"""A partition that a member holds and does not fetch: never, or not since the coordinator refused a request of it.

Findings of ``partition_dropped_from_commits``; of ``stopped``, if the member fetches nothing at all. Evidence: the
assignment, heartbeats since, records that were written to the partition, fetches of others from the broker that took
them; and no fetch of this one by any client of that name. Of a refusal: a commit or an OffsetFetch that was refused
after the assignment, and no fetch, no accepted request of that kind and no JoinGroup since.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from decoder.kafka.apis import ApiKey
from decoder.kafka.errors import error_name
from pipeline.analysis.rules.format import who
from pipeline.analysis.rules.kafka.positions import unread_texts as words
from pipeline.analysis.rules.kafka.positions.reports import finding_of
from pipeline.analysis.rules.kafka.progress.points import lives_of
from pipeline.analysis.rules.kafka.progress.rhythm import patience_us
from pipeline.analysis.rules.kafka.progress.track import DROPPED, STOPPED
from pipeline.analysis.rules.kafka.refused_apis import refused_apis
from pipeline.analysis.rules.model import Finding, Sources

if TYPE_CHECKING:
    from pipeline.analysis.rules.kafka.progress.thresholds import ProgressThresholds

_SCHEMA = pa.schema(
    [
        ("cluster", pa.string()), ("group_id", pa.string()), ("member_id", pa.string()), ("topic", pa.string()),
        ("partition", pa.int32()), ("since_us", pa.int64()),
    ]
)  # fmt: skip
_HELD = """
    WITH members AS (
        SELECT cluster, group_id, member_id, arg_max(client_id, ts) AS client_id, max(epoch_us(ts)) AS alive_us,
            arg_max(host_of(client), ts) AS host, arg_max(server, ts) AS coordinator FROM states
        WHERE member_id <> '' AND coalesce(error_code, 0) = 0
            AND (kind IN ('join', 'heartbeat') OR group_protocol <> 'classic')
        GROUP BY ALL
    )
    SELECT o.*, m.client_id, m.host, m.coordinator, m.alive_us FROM owned AS o JOIN members AS m
        USING (cluster, group_id, member_id)
"""
"""What members hold, and the members themselves."""
_MOST_LEADERS = 8
"""Brokers that took records of a partition, the last ones, that are kept apart: many groups may hold it."""


def written_since(of: str, since: str) -> str:
    """What was written, by broker, to partitions of a table since a time of each, as SQL: ``written``.

    ``writes`` has what was written from each moment on, since a join with all of it would be as many rows as groups
    times requests; ``leaders`` the last brokers that took it.
    """
    return f"""
        writes AS (
            SELECT cluster, topic, partition, server, us AS first_us, max(us) OVER w AS last_us,
                sum(records) OVER w AS written, first_exchange, first_value(last_exchange) OVER w AS last_exchange
            FROM (
                SELECT cluster, topic, partition, server, epoch_us(ts) AS us, sum(records) AS records,
                    min(exchange_id) AS first_exchange, max(exchange_id) AS last_exchange
                FROM events SEMI JOIN {of} USING (cluster, topic, partition) WHERE kind = 'produced' GROUP BY ALL
            ) WINDOW w AS (
                PARTITION BY cluster, topic, partition, server ORDER BY us DESC ROWS UNBOUNDED PRECEDING
            )
        ), leaders AS (
            SELECT cluster, topic, partition, server FROM writes GROUP BY cluster, topic, partition, server
            QUALIFY row_number() OVER (
                PARTITION BY cluster, topic, partition ORDER BY max(last_us) DESC, server
            ) <= {_MOST_LEADERS}
        ), written AS (
            SELECT h.*, w.server, w.first_us, w.last_us, w.written, w.first_exchange, w.last_exchange
            FROM (FROM {of} JOIN leaders USING (cluster, topic, partition)) AS h ASOF JOIN writes AS w
                ON w.cluster = h.cluster AND w.topic = h.topic AND w.partition = h.partition AND w.server = h.server
                AND h.{since} < w.first_us
        )
    """


_UNFETCHED = """
    WITH fetches AS (
        SELECT DISTINCT cluster, topic, partition, client_id FROM events WHERE kind IN ('fetched', 'fetch_rejected')
    )
    FROM held AS h ANTI JOIN fetches AS f ON f.cluster = h.cluster AND f.topic = h.topic
        AND f.partition = h.partition AND f.client_id IS NOT DISTINCT FROM h.client_id
"""
"""What members hold and no client of their name fetches."""
_NEVER_FETCHED = f"""
    WITH {written_since("unfetched", "since_us")}, others AS (
        SELECT cluster, topic, server, client_id, host, us, max(us) OVER w AS fetched_us,
            sum(exchanges) OVER w AS others, first_value(last_exchange) OVER w AS last_exchange
        FROM (
            SELECT cluster, topic, server, client_id, host_of(client) AS host, epoch_us(ts) AS us,
                count(DISTINCT exchange_id) AS exchanges, max(exchange_id) AS last_exchange
            FROM events WHERE kind = 'fetched' AND (cluster, topic) IN (SELECT (cluster, topic) FROM unfetched)
                AND coalesce(client_id, '') IN (SELECT coalesce(client_id, '') FROM unfetched)
            GROUP BY ALL
        ) WINDOW w AS (
            PARTITION BY cluster, topic, server, client_id, host ORDER BY us DESC ROWS UNBOUNDED PRECEDING
        )
    )
    SELECT w.* EXCLUDE (last_exchange), e.fetched_us, e.others::BIGINT AS others, e.last_exchange
    FROM written AS w ASOF JOIN others AS e ON e.cluster = w.cluster AND e.topic = w.topic AND e.server = w.server
        AND e.client_id IS NOT DISTINCT FROM w.client_id AND e.host = w.host AND w.since_us < e.us
    ORDER BY w.cluster, w.group_id, w.topic, w.partition, w.server
"""
_SILENT = f"""
    WITH reading AS (
        SELECT client_id, client_ip AS host, max(epoch_us(ts)) AS us FROM exchanges
        WHERE api_key = {int(ApiKey.FETCH)} GROUP BY ALL
    ), own AS (
        SELECT cluster, topic, partition, client_id, max(epoch_us(ts)) AS us FROM events
        WHERE kind IN ('fetched', 'fetch_rejected') GROUP BY ALL
    )
    SELECT h.* FROM held AS h
        ANTI JOIN reading AS r ON r.host = h.host AND r.client_id IS NOT DISTINCT FROM h.client_id
            AND r.us > h.since_us
        ANTI JOIN reading AS s ON s.host = h.host AND s.us > h.since_us
            AND s.client_id = regexp_replace(h.client_id, '-consumer$', '-restore-consumer')
        ANTI JOIN own AS e ON e.cluster = h.cluster AND e.topic = h.topic AND e.partition = h.partition
            AND e.client_id IS NOT DISTINCT FROM h.client_id AND e.us > h.since_us
"""
"""What members hold that fetch nothing at all."""
_ALL_SILENT = f"""
    WITH readers AS (
        SELECT client_ip AS host, server_ip FROM exchanges WHERE api_key = {int(ApiKey.FETCH)} GROUP BY ALL
    ), {written_since("silent", "since_us")}, seen AS (
        SELECT server_ip, min(host) AS least, max(host) AS greatest FROM readers GROUP BY server_ip
    )
    SELECT w.* FROM written AS w LEFT JOIN seen ON seen.server_ip = host_of(w.server)
    WHERE host_of(server) = host_of(coordinator) OR least <> w.host OR greatest <> w.host
    ORDER BY cluster, group_id, member_id, topic, partition, server
"""
"""What members hold that fetch nothing at all, of any topic or broker, where the capture sees others fetch from the
broker that took the records, or the broker is their coordinator. Kafka Streams restores its state by another client."""
_SINCE_REFUSED = f"""
    WITH answers AS (
        SELECT cluster, group_id, topic, partition, client_id, host_of(client) AS host, epoch_us(ts) AS us, exchange_id,
            coalesce(error_code, 0) AS code, kind FROM events
        WHERE kind IN ('commit_rejected', 'fetched_commit')
    ), whole AS (
        SELECT client_id, client_ip AS host, epoch_us(ts) AS us, exchange_id, error_codes[1] AS code,
            'fetched_commit' AS kind FROM exchanges ANTI JOIN answers USING (exchange_id)
        WHERE api_key = {int(ApiKey.OFFSET_FETCH)} AND coalesce(len(error_codes), 0) > 0
        QUALIFY row_number() OVER (PARTITION BY client_id, host ORDER BY us DESC, exchange_id) = 1
    ), refused AS (
        SELECT h.*, a.us, a.exchange_id, a.code, a.kind FROM held AS h JOIN answers AS a
            ON a.cluster = h.cluster AND a.group_id = h.group_id AND a.topic = h.topic AND a.partition = h.partition
            AND a.client_id IS NOT DISTINCT FROM h.client_id AND a.host = h.host
        WHERE a.us > h.since_us AND a.code <> 0
        UNION ALL BY NAME
        SELECT h.*, a.us, a.exchange_id, a.code, a.kind FROM held AS h JOIN whole AS a
            ON a.client_id IS NOT DISTINCT FROM h.client_id AND a.host = h.host
        WHERE a.us > h.since_us
    ), latest AS (
        SELECT * EXCLUDE (us), us AS refused_us FROM refused
        QUALIFY row_number() OVER (
            PARTITION BY cluster, group_id, member_id, topic, partition ORDER BY us DESC, exchange_id
        ) = 1
    ), used AS (
        SELECT cluster, topic, partition, client_id, max(epoch_us(ts)) FILTER (kind <> 'fetched_commit') AS used_us,
            max(epoch_us(ts)) FILTER (kind = 'fetched_commit') AS answered_us
        FROM events WHERE kind IN ('fetched', 'fetch_rejected', 'committed')
            OR (kind = 'fetched_commit' AND coalesce(error_code, 0) = 0)
        GROUP BY ALL
    ), joined AS (
        SELECT cluster, group_id, client_id, max(epoch_us(ts)) AS us FROM states WHERE kind = 'join' GROUP BY ALL
    ), stuck AS (
        SELECT l.* FROM latest AS l
            LEFT JOIN used AS u ON u.cluster = l.cluster AND u.topic = l.topic AND u.partition = l.partition
                AND u.client_id IS NOT DISTINCT FROM l.client_id
            LEFT JOIN joined AS j ON j.cluster = l.cluster AND j.group_id = l.group_id
                AND j.client_id IS NOT DISTINCT FROM l.client_id
        WHERE NOT coalesce(u.used_us > l.refused_us, false) AND NOT coalesce(j.us > l.refused_us, false)
            AND NOT coalesce(l.kind = 'fetched_commit' AND u.answered_us > l.refused_us, false)
    ), {written_since("stuck", "refused_us")}, fetches AS (
        SELECT client_id, host, us, max(us) OVER w AS any_us, sum(exchanges) OVER w AS fetches,
            first_value(last_exchange) OVER w AS last_exchange
        FROM (
            SELECT client_id, host_of(client) AS host, epoch_us(ts) AS us, count(DISTINCT exchange_id) AS exchanges,
                max(exchange_id) AS last_exchange
            FROM events WHERE kind = 'fetched' GROUP BY ALL
        ) WINDOW w AS (PARTITION BY client_id, host ORDER BY us DESC ROWS UNBOUNDED PRECEDING)
    ), here AS (
        SELECT client_id, host_of(client) AS host, server, max(epoch_us(ts)) AS us FROM events WHERE kind = 'fetched'
        GROUP BY ALL
    )
    SELECT w.* EXCLUDE (first_exchange, last_exchange), w.exchange_id AS first_exchange, e.any_us,
        coalesce(e.fetches, 0)::BIGINT AS fetches, CASE WHEN s.us > w.refused_us THEN s.us END AS fetched_us,
        coalesce(e.last_exchange, w.exchange_id) AS last_exchange
    FROM written AS w
        ASOF LEFT JOIN fetches AS e
            ON e.client_id IS NOT DISTINCT FROM w.client_id AND e.host = w.host AND w.refused_us < e.us
        LEFT JOIN here AS s
            ON s.client_id IS NOT DISTINCT FROM w.client_id AND s.host = w.host AND s.server = w.server
    ORDER BY w.cluster, w.group_id, w.topic, w.partition, w.server
"""
"""Partitions that no client of that name fetched since a request of their owner was refused, and its other fetches."""


def find(sources: Sources, settings: ProgressThresholds) -> Iterator[Finding]:
    """Apply the rules."""
    owned = _owned(sources)
    if not owned.num_rows:
        return
    tables = sources.tables
    tables.add("owned", owned)
    tables.keep("held", _HELD)
    refused: set[str] = set()
    if refused_apis(sources) & {ApiKey.OFFSET_COMMIT, ApiKey.OFFSET_FETCH}:
        for finding in _since_refused(sources, settings):
            refused.add(finding.subject)
            yield finding
    for finding in (*_never_fetched(sources, settings), *_silent(sources, settings)):
        if finding.subject not in refused:
            yield finding


def _never_fetched(sources: Sources, settings: ProgressThresholds) -> Iterator[Finding]:
    patience = patience_us(2 * settings.fetched_again_seconds, 0)
    if not sources.tables.keep("unfetched", _UNFETCHED):
        return
    for row in sources.tables.rows(_NEVER_FETCHED):
        until_us = min(row.last_us, row.fetched_us, row.alive_us)
        if (row.written or 0) < settings.behind_records or until_us - row.first_us < patience:
            continue
        details = {
            "shape": words.NEVER_FETCHED, "since_us": row.since_us, "other_fetches": row.others,
            "records_behind": int(row.written), "client_id": row.client_id, "clients": who(row.client_id, row.host),
            "members": [row.member_id], "enough_us": row.first_us + patience,
        }  # fmt: skip
        yield finding_of(DROPPED, "critical", row, (row.since_us, until_us), details, sources, settings)


def _silent(sources: Sources, settings: ProgressThresholds) -> Iterator[Finding]:
    """The partition of each member and topic with the lowest number stands for all."""
    patience = patience_us(settings.poll_seconds, 0)
    known: set[tuple[str, str, str, str]] = set()
    if not sources.tables.keep("silent", _SILENT):
        return
    for row in sources.tables.rows(_ALL_SILENT):
        until_us = min(row.last_us, row.alive_us)
        whose = (row.cluster, row.group_id, row.topic, row.member_id)
        is_few = (row.written or 0) < settings.behind_records
        if is_few or until_us - row.first_us < patience or whose in known:
            continue
        known.add(whose)
        details = {
            "shape": words.NEVER_FETCHED, "since_us": row.since_us, "other_fetches": 0,
            "records_behind": int(row.written), "client_id": row.client_id, "clients": who(row.client_id, row.host),
            "members": [row.member_id], "enough_us": row.first_us + patience,
        }  # fmt: skip
        yield finding_of(STOPPED, "critical", row, (row.since_us, until_us), details, sources, settings)


def _since_refused(sources: Sources, settings: ProgressThresholds) -> Iterator[Finding]:
    """Of a member that fetches nothing at all the partition of each topic with the lowest number stands for all."""
    silent: set[tuple[str, str, str, str]] = set()
    for row in sources.tables.rows(_SINCE_REFUSED):
        fetched_us = row.fetched_us if row.fetched_us is not None else row.any_us
        until_us = min(us for us in (row.last_us, fetched_us, row.alive_us) if us is not None)
        floor = settings.poll_seconds if row.fetched_us is None else 2 * settings.fetched_again_seconds
        patience = patience_us(floor, 0)
        if (row.written or 0) < settings.behind_records or until_us - row.first_us < patience:
            continue
        details = {
            "shape": words.SINCE_REFUSED, "refused_us": row.refused_us, "request": words.REQUESTS[row.kind],
            "error": error_name(row.code), "other_fetches": row.fetches, "records_behind": int(row.written),
            "client_id": row.client_id, "clients": who(row.client_id, row.host), "members": [row.member_id],
            "enough_us": row.first_us + patience,
        }  # fmt: skip
        whose = (row.cluster, row.group_id, row.topic, row.member_id)
        if not row.fetches:
            if whose in silent:
                continue
            silent.add(whose)
        rule = DROPPED if row.fetches else STOPPED
        yield finding_of(rule, "critical", row, (row.refused_us, until_us), details, sources, settings)


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
