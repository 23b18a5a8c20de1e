"""Partitions that were written to and that no consumer group or share group was seen to read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import duckdb

from pipeline.dashboard.queries.progress.shares import shares
from pipeline.dashboard.queries.scope import NotThereYetError, Scope, ask_rows
from pipeline.humanize import first_of

NO_READER = "no reader was seen"
# A follower fetches under such a name; any other client reads for somebody.
_IS_READER = "kind = 'fetched' AND NOT regexp_full_match(coalesce(client_id, ''), 'broker-[0-9]+-fetcher-[0-9]+')"
_UNREAD = f"""
SELECT cluster, topic, partition, TRY_CAST(max(high_watermark)::HUGEINT - min(high_watermark) AS BIGINT) AS added,
  max(high_watermark) AS high_watermark, max(ts) FILTER (kind = 'produced') AS written_ts,
  list_sort(list_distinct(list(client_id) FILTER (kind = 'produced' AND client_id <> ''))) AS writers,
  bool_or({_IS_READER}) AS is_read,
  list_sort(list_distinct(list(client_id) FILTER (client_id <> '' AND {_IS_READER}))) AS readers
FROM gold.offset_timeline
WHERE date BETWEEN $since_day AND $last_day AND ts BETWEEN $since AND $end
GROUP BY cluster, topic, partition
HAVING NOT bool_or(group_id <> '')
  AND (bool_or(kind = 'produced') OR max(high_watermark) > min(high_watermark))
ORDER BY is_read, added DESC NULLS LAST, cluster, topic, partition
"""  # noqa: S608 - texts of ours


def unread(connection: duckdb.DuckDBPyConnection, scope: Scope) -> list[dict[str, Any]]:
    """The partitions, those without any reader first, then by what was added to them.

    Each with ``cluster``, ``topic``, ``partition``, ``high_watermark``, ``added`` (offsets by which its end grew),
    ``written_ts``, ``writers`` (names of clients, or None) and ``reader``: ``NO_READER``, or who read without a group.

    Raises:
        NotThereYetError: there is no timeline.
    """
    rows = ask_rows(connection, _UNREAD, scope)
    shared = _shared(connection, scope) if rows else set()
    return [
        {**row, "reader": _reader(row)}
        for row in rows
        if (row["cluster"], row["topic"], row["partition"]) not in shared
    ]


def _shared(connection: duckdb.DuckDBPyConnection, scope: Scope) -> set[tuple[str, str, int]]:
    """The partitions whose records a share group got, which commits no offset."""
    try:
        found = shares(connection, replace(scope, start=scope.parameters()["since"]))
    except NotThereYetError:
        return set()
    return {(place.cluster, place.topic, place.partition) for place in found.delivered}


def _reader(row: Mapping[str, Any]) -> str:
    if not row["is_read"]:
        return NO_READER
    names: Sequence[str] = row["readers"] or ()
    return f"read without a group{', by ' if names else ''}{first_of(names)}"


def without_reader(unread_rows: Sequence[Mapping[str, Any]], topics: Sequence[Mapping[str, Any]]) -> list[str]:
    """Of each topic, in words, whether no reader was seen, of all or of some of its partitions; else empty.

    Args:
        unread_rows: those of :func:`unread`.
        topics: each with ``cluster``, ``topic`` and ``partitions``.
    """
    count: dict[tuple[str, str], int] = {}
    others: dict[tuple[str, str], str] = {}
    for row in unread_rows:
        at = row["cluster"], row["topic"]
        if row["reader"] == NO_READER:
            count[at] = count.get(at, 0) + 1
        else:
            others[at] = row["reader"]
    return [_of_topic(count, others, topic) for topic in topics]


def _of_topic(
    count: Mapping[tuple[str, str], int], others: Mapping[tuple[str, str], str], topic: Mapping[str, Any]
) -> str:
    at = topic["cluster"], topic["topic"]
    number = count.get(at, 0)
    if number == topic["partitions"]:
        return NO_READER
    return f"{NO_READER} of {number} of {topic['partitions']} partitions" if number else others.get(at, "")
