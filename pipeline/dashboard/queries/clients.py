"""The clients, and which of them the next upgrade breaks: ``gold.clients``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import duckdb

from pipeline.analysis.clients import refused
from pipeline.dashboard.queries.scope import Scope, ask_rows, rows_if_there

MOST = 1000

_SEEN = """
WHERE first_ts <= $end AND last_ts >= $start AND ($protocol IS NULL OR coalesce(protocol, 'kafka') = $protocol)
"""

_COUNTS = f"""
SELECT count(DISTINCT nullif(client_id, '')) FILTER (coalesce(protocol, 'kafka') = 'kafka') AS kafka,
       count(DISTINCT nullif(client_id, '')) FILTER (protocol = 'mongodb') AS mongodb
FROM gold.clients {_SEEN}
"""  # noqa: S608 - our own text

# A client is what the rule has: a client id of a cluster, on whatever hosts; what is known to break counts once.
_BREAKING = """
WITH named AS (
  SELECT cluster, client_id, min(verdict) AS verdict FROM breaking_clients
  WHERE first_ts <= $end AND last_ts >= $start GROUP BY cluster, client_id
)
SELECT count(*) FILTER (verdict = 'breaks') AS breaking, count(*) FILTER (verdict = 'unknown') AS unknown FROM named
"""
_VERDICTS = """
SELECT cluster, client_id, client_ip, verdict FROM breaking_clients WHERE first_ts <= $end AND last_ts >= $start
"""

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

    ``verdict`` is that of the view ``breaking_clients``: ``breaks``, ``unknown``; empty of all others.

    Raises:
        NotThereYetError: there is no inventory.
    """
    rows = ask_rows(connection, _CLIENTS, scope, most=MOST)
    verdicts_of = {
        (row["cluster"], row["client_id"], row["client_ip"]): row["verdict"]
        for row in rows_if_there(connection, _VERDICTS, scope)
    }
    return [
        {**row, "verdict": verdicts_of.get((row["cluster"], row["client_id"], row["client_ip"]), "")} for row in rows
    ]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an upgrade means for a client.

    Attributes:
        client: its id and address.
        refused: by Kafka release, oldest first, the request versions it was seen to use that the release refuses.
    """

    client: str
    refused: dict[str, list[str]]

    @property
    def breaks(self) -> int:
        """Releases on which it breaks."""
        return sum(bool(versions) for versions in self.refused.values())


def verdicts(rows: Sequence[dict[str, Any]]) -> list[Verdict]:
    """Of each Kafka client of :func:`clients` what each release makes of it; those that break on most first."""
    found = [
        Verdict(f"{row['client_id'] or 'no client id'} at {row['client_ip']}", refused(row["api_versions"]))
        for row in rows
        if row["protocol"] == "kafka"
    ]
    return sorted(found, key=lambda one: (-one.breaks, one.client))


def counts(connection: duckdb.DuckDBPyConnection, scope: Scope) -> dict[str, int]:
    """How many clients by id were seen in the span: of ``kafka``, of ``mongodb``, and those that Kafka 4 may refuse.

    ``breaking``: known to break, as the findings of ``kip896_incompatible_client`` count them; ``unknown``: they use
    removed versions, and may know newer ones. Both by client id.
    """
    found: dict[str, int] = ask_rows(connection, _COUNTS, scope)[0]
    judged = rows_if_there(connection, _BREAKING, scope) or [{"breaking": 0, "unknown": 0}]
    return found | judged[0]
