"""Which connections are copies of others, of rows of ``silver.connections``: column ``counted_connection_id``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.analysis.duplicates.numbers import Begun, one_each

OF_COUNTED = (
    "connection_id", "agent_id", "connections", "client_isn", "server_isn", "client_bytes", "server_bytes", "client_ip",
    "server_ip", "server_port", "first_ts",
)  # fmt: skip
"""Columns of ``silver.connections`` by which copies are known."""


def counted_by(rows: Iterable[Mapping[str, Any]], others: pa.Table | None) -> dict[str, str]:
    """By connection that is a copy the one that counts; both have a row.

    Args:
        rows: of ``silver.connections``, with OF_COUNTED; ``first_ts`` in µs since the epoch.
        others: rows of ``silver.duplicate_flows``; None: there are none.
    """
    begun = {row["connection_id"]: _begun(row) for row in rows}
    found = {} if others is None else _by_messages(others, begun)
    for alike in one_each(one for one in begun.values() if one is not None):
        counts = _last(alike[0].name, found)
        found.update({one.name: counts for one in alike})
        found.pop(counts, None)
    return found


def _begun(row: Mapping[str, Any]) -> Begun | None:
    if row["connections"] != 1 or row["client_isn"] is None:
        return None
    numbers = row["client_isn"], row["server_isn"]
    hosts = row["client_ip"], row["server_ip"], row["server_port"]
    size = row["client_bytes"], row["server_bytes"]
    return Begun(row["connection_id"], row["agent_id"], numbers, size, hosts, row["first_ts"])


def _last(name: str, found: Mapping[str, str]) -> str:
    """The connection that counts for one, however many are in between."""
    seen = {name}
    while (following := found.get(name)) is not None and following not in seen:
        name = following
        seen.add(name)
    return name


def _by_messages(others: pa.Table, there: Mapping[str, object]) -> dict[str, str]:
    """What messages show. Of two agents that saw the one that counts, the other one's row may be there in its place."""
    twins: defaultdict[str, list[str]] = defaultdict(list)
    with_own_flow = _have_own_flow(others)
    for of_agent in (
        others.filter(pc.invert(with_own_flow)).select(["connection_id", "counted_connection_id"]).to_pylist()
    ):
        twins[of_agent["counted_connection_id"]].append(of_agent["connection_id"])
    found = {}
    for copy, counts in _copies_of(others.filter(with_own_flow)).items():
        one = next((each for each in (counts, *twins.get(counts, ())) if each in there), None)
        if one is not None and copy in there and one != copy:
            found[copy] = one
    return found


def _have_own_flow(others: pa.Table) -> pa.Array:
    """Whether they have a flow of their own: behind address translation, or joined midway.

    Rows of older releases state the former.
    """
    has_own_flow = others.column("is_translated")
    if "has_own_flow" in others.column_names:
        has_own_flow = pc.coalesce(others.column("has_own_flow"), has_own_flow)
    return pc.fill_null(has_own_flow, fill_value=False)


def _copies_of(others: pa.Table) -> dict[str, str]:
    """By connection the one that counts: as of the last hour in which both were seen."""
    columns = (others.column(name) for name in ("connection_id", "counted_connection_id"))
    last: dict[tuple[str, str], tuple[int, str, str]] = {}
    hours = others.column("hour").cast(pa.int64()).to_pylist()
    for copy, counts, hour in zip(*(column.to_pylist() for column in columns), hours, strict=True):
        both = min(copy, counts), max(copy, counts)
        if both not in last or last[both][0] < hour:
            last[both] = hour, copy, counts
    return {copy: counts for _, copy, counts in sorted(last.values())}
