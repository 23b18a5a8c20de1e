"""Rows of a query that states no order: the same each time, where threads of DuckDB would mix them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Any

MOST_SORTED = 10_000
"""Rows of a longer answer stay as they come."""
_ORDERED = re.compile(r"\border\s+by\b", re.IGNORECASE)
_PLAIN = (str, bool, int, float)


def in_stable_order(
    rows: Iterable[tuple[Any, ...]], query: str, mixed_views: Iterable[str]
) -> Iterator[tuple[Any, ...]]:
    """Rows by their columns, from left to right, nulls last, if the query groups them and states no order.

    Args:
        rows: of the answer.
        query: in SQL. Rows of a table come as they are there, which is by time.
        mixed_views: names of views that group or join.
    """
    mixes = "|".join((r"group\s+by", "distinct", *map(re.escape, mixed_views)))
    if _ORDERED.search(query) or not re.search(rf"\b(?:{mixes})\b", query, re.IGNORECASE):
        return iter(rows)
    left = iter(rows)
    first = list(islice(left, MOST_SORTED + 1))
    return chain(first, left) if len(first) > MOST_SORTED else iter(sorted(first, key=_key))


def _key(row: tuple[Any, ...]) -> tuple[tuple[bool, Any], ...]:
    """Values of a column have one type; what cannot be compared is compared as text, as are times in UTC."""
    return tuple((value is None, value if isinstance(value, _PLAIN) else str(value)) for value in row)
