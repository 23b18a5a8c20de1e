"""Tables that this process has opened: one whose log has not changed is not read again for each session of the page."""

from __future__ import annotations

from pathlib import Path

from pipeline.lake.delta_reader import OpenTable, open_table
from pipeline.lake.layout import demand_types
from pipeline.tables import TABLES, Table

_Mark = tuple[int, int]
Marks = tuple[_Mark | None, ...]
"""How the logs of all tables look; None of a table that is not there."""
_opened: dict[str, tuple[str, _Mark, OpenTable]] = {}
"""By table: the lake, how its log looked then, and the table."""


def opened_table(lake: str, table: Table) -> OpenTable | None:
    """A table of the lake as it is now; None if it is not there.

    Args:
        lake: the lake's folder or URL.
        table: one of :mod:`pipeline.tables`.

    Raises:
        UserError: see :func:`pipeline.lake.delta_reader.open_table`; or a column is of another type than it should be.
    """
    mark = _mark(lake, table)
    known = _opened.get(table.full_name)
    if mark is not None and known is not None and known[:2] == (lake, mark):
        return known[2]
    found = open_table(lake, table)
    if found is not None:
        demand_types(lake, table, found.schema)
    if mark is not None and found is not None:
        _opened[table.full_name] = (lake, mark, found)
    return found


def marks_of(lake: str) -> Marks | None:
    """How a lake looks now, to see whether it has changed; None where that cannot be seen."""
    return None if "://" in lake else tuple(_mark(lake, table) for table in TABLES.values())


def _mark(lake: str, table: Table) -> _Mark | None:
    """What changes with each commit: when a file came into the log's folder, and how many are there."""
    if "://" in lake:
        return None
    log = Path(lake) / table.path / "_delta_log"
    try:
        return log.stat().st_mtime_ns, sum(1 for _ in log.iterdir())
    except OSError:
        return None
