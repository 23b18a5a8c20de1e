"""Which clients are there, and which of them does the next upgrade break? ``gold.clients``."""

from __future__ import annotations

from typing import Any

import duckdb

from pipeline.dashboard.queries.scope import Scope, ask_rows

MOST = 1000

_SEEN = """
WHERE first_ts <= $end AND last_ts >= $start AND ($protocol IS NULL OR coalesce(protocol, 'kafka') = $protocol)
"""

_COUNTS = f"""
SELECT count(*) FILTER (coalesce(protocol, 'kafka') = 'kafka') AS kafka,
       count(*) FILTER (protocol = 'mongodb') AS mongodb,
       count(*) FILTER (coalesce(protocol, 'kafka') = 'kafka' AND breaks_on_kafka_4) AS breaking
FROM gold.clients {_SEEN}
"""  # noqa: S608 - our own text

_CLIENTS = f"""
SELECT breaks_on_kafka_4, coalesce(protocol, 'kafka') AS protocol, client_id, client_ip, software, removed_versions,
       oldest_versions, api_versions, first_ts, last_ts, cluster
FROM gold.clients
{_SEEN}
ORDER BY breaks_on_kafka_4 DESC, protocol, client_id, client_ip, cluster
LIMIT $most
"""  # noqa: S608 - our own text


def clients(connection: duckdb.DuckDBPyConnection, scope: Scope) -> list[dict[str, Any]]:
    """Clients that were seen in the span, those first that Kafka 4 refuses.

    Raises:
        NotThereYetError: there is no inventory.
    """
    return ask_rows(connection, _CLIENTS, scope, most=MOST)


def counts(connection: duckdb.DuckDBPyConnection, scope: Scope) -> dict[str, int]:
    """How many clients were seen in the span: of ``kafka``, of ``mongodb``, and ``breaking`` ones of Kafka."""
    return ask_rows(connection, _COUNTS, scope)[0]
