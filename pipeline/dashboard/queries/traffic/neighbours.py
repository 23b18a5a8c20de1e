"""Finds the exchanges before and after one: on its connection, and of the same group, topic and partition."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

import duckdb

from pipeline.dashboard.queries.scope import IN_SPAN, Scope, ask_rows, rows_if_there

_REACH = timedelta(hours=2)
"""How far before and after the exchange is looked."""
_EARLIEST = datetime.min.replace(tzinfo=timezone.utc) + _REACH
_LATEST = datetime.max.replace(tzinfo=timezone.utc) - _REACH
_SUBJECT = f"""
SELECT topic, partition, group_id, kind FROM silver.offset_events WHERE {IN_SPAN} AND exchange_id = $exchange_id
ORDER BY group_id IS NULL, error_code IS NULL OR error_code = 0, ordinal LIMIT 1
"""  # noqa: S608 - our own text
_OF_SUBJECT = f"""
SELECT arg_max(exchange_id, (ts, exchange_id)) FILTER ((ts, exchange_id) < ($ts, $exchange_id)) AS before,
       arg_min(exchange_id, (ts, exchange_id)) FILTER ((ts, exchange_id) > ($ts, $exchange_id)) AS after
FROM silver.offset_events
WHERE {IN_SPAN} AND topic IS NOT DISTINCT FROM $topic AND partition IS NOT DISTINCT FROM $partition
  AND group_id IS NOT DISTINCT FROM $group_id AND kind IN ($kind, $other_kind) AND exchange_id <> $exchange_id
"""  # noqa: S608 - our own text
_OF_CONNECTION = f"""
SELECT arg_max(exchange_id, (ts, exchange_id)) FILTER ((ts, exchange_id) < ($ts, $exchange_id)) AS before,
       arg_min(exchange_id, (ts, exchange_id)) FILTER ((ts, exchange_id) > ($ts, $exchange_id)) AS after
FROM silver.exchanges WHERE {IN_SPAN} AND connection_id = $connection_id
"""  # noqa: S608 - our own text
_WITHOUT_ERROR = f"""
SELECT exchange_id FROM silver.exchanges
WHERE {IN_SPAN} AND ts < $ts AND api_name = $api_name AND client_id IS NOT DISTINCT FROM $client_id
  AND coalesce(len(error_names), 0) = 0 AND status = 'paired'
ORDER BY ts DESC, exchange_id DESC LIMIT 1
"""  # noqa: S608 - our own text
_REJECTED = {"committed": "commit_rejected", "txn_committed": "txn_commit_rejected", "fetched": "fetch_rejected"}
_OTHER_KIND = _REJECTED | {other: one for one, other in _REJECTED.items()}
"""What a refused statement would have been otherwise, and the other way round."""


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Exchanges around one; None: there is none within two hours.

    Attributes:
        before, after: on its connection.
        subject: what it speaks of, e.g. ``billing on payments-2``; empty: nothing that was found.
        subject_before, subject_after: of the same subject and kind.
        without_error: the last before it of its client and api that had no error; None where it has none itself.
    """

    before: str | None
    after: str | None
    subject: str = ""
    subject_before: str | None = None
    subject_after: str | None = None
    without_error: str | None = None


def neighbours(connection: duckdb.DuckDBPyConnection, exchange: dict[str, Any]) -> Neighbours:
    """What comes before and after a row of ``silver.exchanges``."""
    ts = min(max(exchange["ts"], _EARLIEST), _LATEST)
    around = Scope(ts - _REACH, ts + _REACH)
    values = {"ts": exchange["ts"], "exchange_id": exchange["exchange_id"]}
    near = ask_rows(connection, _OF_CONNECTION, around, connection_id=exchange["connection_id"], **values)[0]
    without = None
    if exchange["error_names"]:
        found = ask_rows(
            connection, _WITHOUT_ERROR, around, ts=exchange["ts"], api_name=exchange["api_name"],
            client_id=exchange["client_id"],
        )  # fmt: skip
        without = found[0]["exchange_id"] if found else None
    spoken = rows_if_there(connection, _SUBJECT, around, exchange_id=exchange["exchange_id"])
    if not spoken:
        return Neighbours(near["before"], near["after"], without_error=without)
    of = spoken[0]
    same = ask_rows(
        connection, _OF_SUBJECT, around, other_kind=_OTHER_KIND.get(of["kind"], of["kind"]), **of, **values
    )[0]  # fmt: skip
    place = f"{of['topic'] or '?'}-{of['partition']}"
    subject = f"{of['group_id']} on {place}" if of["group_id"] else place
    return Neighbours(near["before"], near["after"], subject, same["before"], same["after"], without)
