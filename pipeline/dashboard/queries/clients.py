"""Which clients are there, and which of them does the next upgrade break? ``gold.clients``."""

from __future__ import annotations

from typing import Any

import duckdb

from pipeline.dashboard.queries.scope import Scope, ask_rows

MOST = 1000

_CLIENTS = """
SELECT breaks_on_kafka_4, coalesce(protocol, 'kafka') AS protocol, client_id, client_ip, software, removed_versions,
       oldest_versions, api_versions, first_ts, last_ts, cluster
FROM gold.clients
WHERE first_ts <= $end AND last_ts >= $start AND ($protocol IS NULL OR coalesce(protocol, 'kafka') = $protocol)
ORDER BY breaks_on_kafka_4 DESC, protocol, client_id, client_ip, cluster
LIMIT $most
"""


def clients(connection: duckdb.DuckDBPyConnection, scope: Scope) -> list[dict[str, Any]]:
    """Clients that were seen in the span, those first that Kafka 4 refuses.

    Raises:
        NotThereYetError: there is no inventory.
    """
    return ask_rows(connection, _CLIENTS, scope, most=MOST)
