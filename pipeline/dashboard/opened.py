"""Tables that this process has opened: one whose log has not changed is not read again for each session of the page."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from pipeline.errors import UserError
from pipeline.open_tables import OpenTable, open_table
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
        UserError: see :func:`pipeline.open_tables.open_table`; or a column is of another type than it should be.
    """
    mark = _mark(lake, table)
    known = _opened.get(table.full_name)
    if mark is not None and known is not None and known[:2] == (lake, mark):
        return known[2]
    found = open_table(lake, table)
    if found is not None:
        _demand_types(lake, table, found.schema)
    if mark is not None and found is not None:
        _opened[table.full_name] = (lake, mark, found)
    return found


_FITS: dict[str, Callable[[pa.DataType], bool]] = {
    "string": lambda kind: pa.types.is_string(kind) or pa.types.is_large_string(kind),
    "binary": lambda kind: pa.types.is_binary(kind) or pa.types.is_large_binary(kind),
    "bigint": pa.types.is_integer,
    "int": pa.types.is_integer,
    "double": pa.types.is_floating,
    "boolean": pa.types.is_boolean,
    "date": pa.types.is_date,
    "timestamp": pa.types.is_timestamp,
}


def _demand_types(lake: str, table: Table, schema: pa.Schema) -> None:
    """Refuse a table of which no query would read a column as what it is."""
    for column in table.columns:
        if column.name in schema.names:
            kind = schema.field(column.name).type
            fits = _FITS.get(column.type, pa.types.is_nested)
            if not fits(kind):
                raise UserError(
                    f"cannot read {lake}/{table.path}: its column {column.name} is {kind}, not {column.type}. "
                    "Another release, or another program, wrote it"
                )


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
