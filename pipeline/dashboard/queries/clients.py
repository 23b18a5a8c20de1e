"""Which clients are there, and which of them does the next upgrade break? ``gold.clients``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import duckdb

from pipeline.analysis.clients import refused
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
    """How many clients were seen in the span: of ``kafka``, of ``mongodb``, and ``breaking`` ones of Kafka."""
    return ask_rows(connection, _COUNTS, scope)[0]
