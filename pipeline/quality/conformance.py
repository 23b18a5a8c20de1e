"""What Kafka's and MongoDB's protocols demand of several rows together (see :mod:`pipeline.quality.relations`).

What they demand of one row is an expectation of its table (:mod:`pipeline.quality.suites`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import date

import pyarrow as pa

from decoder.kafka.apis import ApiKey, KafkaError
from pipeline.quality.model import COUNTS, Ask, Plain, Relation
from pipeline.tables import EXCHANGES, FRAMES, OFFSET_EVENTS, RECORD_BATCHES

_FETCH, _PRODUCE = int(ApiKey.FETCH), int(ApiKey.PRODUCE)
_MAGIC = f"""
    WITH carried AS (
        SELECT batches."date" AS day, batches.magic AS magic, exchanges.api_key AS api_key,
            exchanges.api_version AS api_version
        FROM silver_record_batches AS batches JOIN silver_exchanges AS exchanges
            ON exchanges.exchange_id = batches.exchange_id
        WHERE batches.magic IS NOT NULL AND exchanges.api_version IS NOT NULL AND exchanges."date" >= {{before}}
            AND batches."date" >= {{since}}
    )
    SELECT CAST(day AS STRING) AS subject, count(*) AS expected, sum(CASE
        WHEN api_key = {_FETCH} AND api_version <= 1 THEN CASE WHEN magic = 0 THEN 1 ELSE 0 END
        WHEN api_key = {_FETCH} AND api_version <= 3 THEN CASE WHEN magic <= 1 THEN 1 ELSE 0 END
        WHEN api_key = {_PRODUCE} AND api_version <= 1 THEN CASE WHEN magic = 0 THEN 1 ELSE 0 END
        WHEN api_key = {_PRODUCE} AND api_version = 2 THEN CASE WHEN magic <= 1 THEN 1 ELSE 0 END
        WHEN api_key = {_PRODUCE} THEN CASE WHEN magic = 2 THEN 1 ELSE 0 END
        ELSE 1 END) AS found
    FROM carried GROUP BY day
"""
_ASCENDING = """
    WITH stated AS (
        SELECT "date" AS day, high_watermark, lag(high_watermark) OVER (
            PARTITION BY server, client, cluster, topic, topic_id, "partition", leader_epoch
            ORDER BY ts, high_watermark
        ) AS before
        FROM silver_offset_events WHERE kind = 'fetched' AND high_watermark IS NOT NULL AND leader_epoch IS NOT NULL
    )
    SELECT CAST(day AS STRING) AS subject, count(*) AS expected,
        sum(CASE WHEN high_watermark < before THEN 0 ELSE 1 END) AS found
    FROM stated WHERE day >= {since} GROUP BY day
"""
_IN_ORDER = """
    WITH stated AS (
        SELECT "date" AS day, base_offset, lag(last_offset) OVER (
            PARTITION BY exchange_id, topic, topic_id, "partition" ORDER BY ordinal
        ) AS before
        FROM silver_record_batches WHERE source = 'fetch' AND base_offset IS NOT NULL AND last_offset IS NOT NULL
    )
    SELECT CAST(day AS STRING) AS subject, count(*) AS expected,
        sum(CASE WHEN base_offset <= before THEN 0 ELSE 1 END) AS found
    FROM stated WHERE day >= {since} GROUP BY day
"""
_ECHOED = """
    WITH halves AS (
        SELECT exchange_id, max("date") AS day,
            max(CASE WHEN direction = 'request' THEN correlation_id END) AS asked,
            max(CASE WHEN direction = 'response' THEN
                CASE WHEN protocol = 'mongodb' THEN reply_to ELSE correlation_id END END) AS answered
        FROM bronze_frames WHERE exchange_id IS NOT NULL GROUP BY exchange_id
    )
    SELECT CAST(day AS STRING) AS subject, count(*) AS expected,
        sum(CASE WHEN asked = answered THEN 1 ELSE 0 END) AS found
    FROM halves WHERE asked IS NOT NULL AND answered IS NOT NULL AND day >= {since} GROUP BY day
"""

CONFORMANCE = (
    Relation(
        "magic_fits_version",
        RECORD_BATCHES,
        "warning",
        "Fetch and Produce v0 and v1 carry message format 0, Fetch v2 and v3 and Produce v2 at most 1, Produce from v3 "
        "on 2",
        (RECORD_BATCHES, EXCHANGES),
        _MAGIC,
    ),
    Relation(
        "high_watermark_ascends",
        OFFSET_EVENTS,
        "warning",
        "on one connection and in one leader epoch no partition's high watermark falls",
        (OFFSET_EVENTS,),
        _ASCENDING,
    ),
    Relation(
        "batches_ascend",
        RECORD_BATCHES,
        "warning",
        "in one response each batch of a partition begins behind the end of the batch before it",
        (RECORD_BATCHES,),
        _IN_ORDER,
    ),
    Relation(
        "responses_echo_ids",
        FRAMES,
        "warning",
        "each response has the correlation id (MongoDB: responseTo the requestID) of its request",
        (FRAMES,),
        _ECHOED,
    ),
)
"""All that are counts."""

_VERSIONS_STATED = f"""
    SELECT server_ip, server_port, body FROM bronze_frames
    WHERE protocol = 'kafka' AND api_key = {int(ApiKey.API_VERSIONS)} AND direction = 'response' AND body IS NOT NULL
    GROUP BY server_ip, server_port, body
"""
_VERSIONS_USED = f"""
    SELECT server_ip, server_port, api_key, api_version, max(api_name) AS api_name, count(*) AS requests
    FROM silver_exchanges
    WHERE protocol = 'kafka' AND status = 'paired' AND api_version IS NOT NULL AND "date" >= {{since}}
        AND NOT coalesce(array_contains(error_codes, {int(KafkaError.UNSUPPORTED_VERSION)}), false)
    GROUP BY server_ip, server_port, api_key, api_version
"""
VERSION_ADVERTISED = Plain(
    EXCHANGES,
    "version_advertised",
    "warning",
    "each request that was answered has a version that its broker has advertised in ApiVersions",
)
VERSION_READS = (FRAMES, EXCHANGES)
"""Tables that :func:`versions` asks."""

_Server = tuple[str, int]


def versions(ask: Ask, since: date) -> pa.Table:
    """How many requests of each version were answered, and were of a version that the broker has advertised.

    A broker that was restarted as another release has advertised both ranges. Requests that it refused as of an
    unsupported version, and those to a server that has advertised nothing, do not count.

    Args:
        ask: answers queries over the tables of VERSION_READS.
        since: the first UTC day.

    Returns:
        The columns COUNTS; a subject is an api and its version.
    """
    known: dict[tuple[_Server, int], list[tuple[int, int]]] = {}
    stated = ask(_VERSIONS_STATED).to_pylist()
    for one in stated:
        for api, least, most in _ranges(one["body"]):
            known.setdefault(((one["server_ip"], one["server_port"]), api), []).append((least, most))
    servers = {server for server, _ in known}
    counts: dict[str, list[int]] = {}
    for used in ask(_VERSIONS_USED.format(since=f"DATE '{since.isoformat()}'")).to_pylist():
        server = used["server_ip"], used["server_port"]
        if server not in servers:
            continue
        ranges = known.get((server, used["api_key"]), [])
        is_known = any(least <= used["api_version"] <= most for least, most in ranges)
        count = counts.setdefault(f"{used['api_name']} v{used['api_version']}", [0, 0])
        count[0] += used["requests"]
        count[1] += used["requests"] if is_known else 0
    rows = [{"subject": name, "expected": all_, "found": fit} for name, (all_, fit) in sorted(counts.items())]
    return pa.Table.from_pylist(rows, COUNTS)


def _ranges(body: str) -> Iterable[tuple[int, int, int]]:
    """Api, smallest and largest version of each entry of an ApiVersions response; none of one that is an error."""
    try:
        stated = json.loads(body)
        if stated.get("errorCode") != 0:
            return []
        return [(one["apiKey"], one["minVersion"], one["maxVersion"]) for one in stated["apiKeys"]]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return []
