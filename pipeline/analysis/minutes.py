"""How requests were answered, minute by minute: ``gold.api_latency`` and ``gold.mongo_commands``."""

from __future__ import annotations

import pyarrow as pa

from decoder.protocols import names_of
from pipeline.analysis.fit import fit
from pipeline.analysis.rules.mongodb.commands import HAS_FAILED, NAMESPACE
from pipeline.analysis.tables import ADDRESS, SERVICE_US, Some, Tables
from pipeline.tables import API_LATENCY, MONGO_MINUTES

MINUTE_US = 60_000_000
_PLACED = f"""
    make_timestamp(epoch_us(ts) - epoch_us(ts) % {MINUTE_US}) AS minute, make_timestamp(epoch_us(ts))::DATE AS date
"""
_BY_API = names_of(lambda protocol: protocol.has_api_latencies)
_LATENCIES = "coalesce(list(took_us ORDER BY took_us) FILTER (took_us IS NOT NULL), []) AS latencies"
_PERCENTILES = ", ".join(
    f"CASE WHEN len(latencies) > 0 THEN latencies[ceil(len(latencies) * {p} / 100)::INT] END AS p{p}_us"
    for p in (50, 95, 99)
)
"""By nearest rank."""


def api_latency(exchanges: Some) -> pa.Table:
    """Rows of ``gold.api_latency`` from rows of ``silver.exchanges``; of a connection that two agents saw, one copy."""
    found = _asked(
        exchanges,
        f"""
        WITH placed AS (
            SELECT * EXCLUDE (date), {_PLACED}, {ADDRESS["server"]} AS server, {SERVICE_US} AS took_us
            FROM rows WHERE list_contains({_BY_API}, protocol)
        ), counted AS (
            SELECT date, minute, server, api_key, api_name, api_version, client_id, count(*) AS exchanges,
                count(*) FILTER (len(error_codes) > 0) AS errors,
                count(*) FILTER (status = 'unanswered') AS unanswered,
                coalesce(sum(request_size), 0)::BIGINT AS request_bytes,
                coalesce(sum(response_size), 0)::BIGINT AS response_bytes, {_LATENCIES},
                max(latency_us - took_us) AS longest_wait_us
            FROM placed GROUP BY date, minute, server, api_key, api_name, api_version, client_id
        )
        SELECT *, {_PERCENTILES}, list_max(latencies) AS max_us FROM counted
        """,
    )
    return fit(found, API_LATENCY)


def mongo_minutes(commands: Some) -> pa.Table:
    """Rows of ``gold.mongo_commands`` from rows of ``silver.mongo_commands``."""
    found = _asked(
        commands,
        f"""
        WITH placed AS (SELECT * EXCLUDE (date), {_PLACED}, {NAMESPACE} AS namespace, latency_us AS took_us FROM rows),
        counted AS (
            SELECT date, minute, server, command, namespace, application, count(*) AS commands,
                count(*) FILTER ({HAS_FAILED}) AS errors,
                count(*) FILTER (status = 'unanswered') AS unanswered,
                coalesce(sum(documents_in), 0)::BIGINT AS documents_in,
                coalesce(sum(documents_out), 0)::BIGINT AS documents_out,
                coalesce(sum(request_size), 0)::BIGINT AS request_bytes,
                coalesce(sum(response_size), 0)::BIGINT AS response_bytes, {_LATENCIES}
            FROM placed GROUP BY date, minute, server, command, namespace, application
        )
        SELECT *, {_PERCENTILES}, list_max(latencies) AS max_us FROM counted
        """,
    )
    return fit(found, MONGO_MINUTES)


def _asked(rows: Some, sql: str) -> pa.Table:
    tables = Tables({"rows": rows})
    try:
        return tables.table(sql)
    finally:
        tables.close()
