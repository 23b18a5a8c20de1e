"""What ``silver.connections`` states of a twisted recording, beside what it states of the recording as it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]

_OF_END = ("opened", "closed_by", "reset_by", "state", "asks", "answers", "alert")
_OF_COPY = ("how", *_OF_END, "ended", "is_failed", "connections", "syns", "tls_version", "server_name")
_UNKNOWN = (None, "unknown")
_LESS: Mapping[str, frozenset[str]] = {
    "refused": frozenset({"unanswered", "unknown"}),
    "unanswered": frozenset({"unknown"}),
    "silent": frozenset({"unanswered", "unknown"}),
    "spoke": frozenset({"served", "other", "unknown"}),
    "served": frozenset({"other", "unknown"}),
    "other": frozenset({"unknown"}),
    "unknown": frozenset(),
}
"""What ``how`` may be where packets are missing, by what it is. A SYN is ``unanswered`` where no packet of the server
was captured: more than that the word does not state."""


def counted(rows: Iterable[Row]) -> list[Row]:
    """Connections, each once."""
    return [row for row in rows if row["counted_connection_id"] is None]


def unlike(rows: Sequence[Row], whole: Sequence[Row]) -> Counter[tuple[Any, ...]]:
    """What two readings of the same connections state differently: a copy takes nothing away."""
    one, other = (
        Counter(tuple(row[name] for name in _OF_COPY) for row in some if row["connections"] == 1)
        for some in (rows, whole)
    )
    return (one - other) + (other - one)


def claims(rows: Sequence[Row], whole: Sequence[Row]) -> list[tuple[str, Any, Any]]:
    """What a twisted recording states beyond the recording: the field, what it is, and what is stated."""
    by_ends: dict[frozenset[tuple[str, int]], list[Row]] = {}
    for row in whole:
        by_ends.setdefault(_ends(row), []).append(row)
    rows = [row for row in rows if row["connections"] == 1]
    known = [row for row in rows if _ends(row) in by_ends]
    assert len(known) == len(rows) or any(row["connections"] > 1 for row in whole)  # of many some are only counted
    return [found for row in known for found in _beyond(row, _nearest(row, by_ends[_ends(row)]))]


def _nearest(row: Row, some: Sequence[Row]) -> Row:
    """Of connections on the same ports the one that begins next to it."""
    return min(some, key=lambda one: abs(one["first_ts"] - row["first_ts"]))


def _ends(row: Row) -> frozenset[tuple[str, int]]:
    return frozenset({(row["client_ip"], row["client_port"]), (row["server_ip"], row["server_port"])})


def _beyond(row: Row, true: Row) -> Iterable[tuple[str, Any, Any]]:
    is_without_server = not row["server_packets"]  # of SYNs alone no packets are counted
    if row["how"] != true["how"] and row["how"] not in _LESS[true["how"]]:
        yield "how", true["how"], row["how"]
    is_other = row["how"] == "other" != true["how"]  # what is spoken is not recognised: first bytes and alerts are read
    for name in _OF_END:
        is_more = row[name] != true[name] and row[name] not in _UNKNOWN
        if is_more and not (is_other and true[name] is None) and not (row[name] == "unanswered" and is_without_server):
            yield name, true[name], row[name]
    is_unheard = row["closed_by"] is None and (row["client_unacknowledged"] or row["server_unacknowledged"])
    if row["is_failed"] and not true["is_failed"] and not (is_other and row["alert"]) and not is_unheard:
        yield "is_failed", False, True
