"""What the capture lost, of whom and when."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import duckdb

from pipeline.analysis.rules.capture.capture_loss import NOTHING_READ
from pipeline.analysis.tables import ADDRESS, IS_LOSS
from pipeline.dashboard.queries.scope import Scope, ask_rows

CLIENTS = 12
"""Who is shown with an own row, those who lost most; the others share one."""
OTHERS = "others"

# A loss is of a connection, and exchanges show to which server it went; or of no connection: see the rule.
_LOSSES = f"""
WITH lost AS (
  SELECT agent_id, connection_id, ts, bytes_lost FROM bronze.gaps AS g
  WHERE {IS_LOSS} AND date BETWEEN $first_day AND $last_day AND ts BETWEEN $start AND $end
),
touched AS (
  SELECT connection_id, {ADDRESS["server"]} AS server,
    coalesce(min(client_id), min(client_ip)) AS client
  FROM silver.exchanges AS e
  WHERE date BETWEEN $since_day AND $last_day AND connection_id IN (SELECT connection_id FROM lost)
  GROUP BY ALL
),
mine AS (
  SELECT ts, bytes_lost, coalesce(client, split_part(connection_id, ':', 1)) AS client
  FROM lost LEFT JOIN touched USING (connection_id)
  WHERE $subject IN (agent_id || '/' || server, agent_id || '/' || connection_id)
    OR server IS NULL AND $subject = agent_id || '/{NOTHING_READ}'
),
most AS (SELECT client FROM mine GROUP BY client ORDER BY sum(bytes_lost) DESC, client LIMIT $clients)
SELECT CASE WHEN client IN (FROM most) THEN client ELSE $others END AS client,
  time_bucket($bucket, ts, $start) AS began, TRY_CAST(sum(bytes_lost) AS BIGINT) AS bytes_lost, count(*) AS gaps
FROM mine GROUP BY ALL ORDER BY client, began
"""  # noqa: S608 - our own text


@dataclass(frozen=True, slots=True)
class Losses:
    """What a picture of losses shows.

    Attributes:
        scope: the span.
        rows: ``client`` (client id, or address; of no connection: file, interface or strangers), ``began``,
            ``bytes_lost`` and ``gaps`` of a bucket.
    """

    scope: Scope
    rows: list[dict[str, Any]]


def losses(connection: duckdb.DuckDBPyConnection, scope: Scope, subject: str) -> Losses | None:
    """The losses that a finding of the rule ``capture_loss`` is about; None if the lake has none.

    Args:
        connection: to the lake.
        scope: the span.
        subject: of the finding: agent and server, or agent and what was lost of no connection.

    Raises:
        NotThereYetError: a table is missing.
    """
    rows = ask_rows(connection, _LOSSES, scope, subject=subject, clients=CLIENTS, others=OTHERS)
    return Losses(scope, rows) if rows else None
