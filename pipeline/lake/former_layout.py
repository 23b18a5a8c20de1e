"""Reads tables of layout 1 under the names of today: of columns, and of values that were renamed."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.tables import LAYOUT_PROPERTY, Column, Table

_FORMER = "1"


def is_former(properties: Mapping[str, str | None]) -> bool:
    """Whether a table with these properties was written in layout 1."""
    return (properties.get(LAYOUT_PROPERTY) or _FORMER) == _FORMER


def name_in(names: Collection[str], column: Column) -> str | None:
    """What files with columns of these ``names`` call a column: as today, or by its former name; None: they lack it."""
    if column.name in names:
        return column.name
    return column.former_name if column.former_name in names else None


def column_sql(name: str, column: Column) -> str:
    """The column ``name`` of files of layout 1 for a SELECT, under the name and with the values of today."""
    quoted = '"' + name.replace('"', '""') + '"'
    whens = "".join(f" WHEN '{former}' THEN '{current}'" for former, current in column.former_values)
    value = f"CASE {quoted}{whens} ELSE {quoted} END" if whens else quoted
    return f'{value} AS "{column.name}"'


def current_rows(rows: pa.Table, table: Table) -> pa.Table:
    """Rows of layout 1 with the names and values of today."""
    for column in table.columns:
        name = name_in(rows.column_names, column) if column.has_former else None
        if name is None:
            continue
        place = rows.column_names.index(name)
        values = rows.column(place)
        for former, current in column.former_values:
            values = pc.if_else(pc.equal(values, former), current, values)
        rows = rows.set_column(place, column.name, values)
    return rows


def current_schema(schema: pa.Schema, table: Table) -> pa.Schema:
    """Columns of a table of layout 1 under the names of today."""
    current = {column.former_name: column.name for column in table.columns if column.former_name is not None}
    return pa.schema([field.with_name(current.get(field.name, field.name)) for field in schema])


def current_row(row: Mapping[str, Any], table: Table) -> dict[str, Any]:
    """A row of layout 1 with the names and values of today."""
    found = dict(row)
    for column in table.columns:
        if column.has_former and (name := name_in(found, column)) is not None:
            value = found.pop(name)
            found[column.name] = dict(column.former_values).get(value, value)
    return found
