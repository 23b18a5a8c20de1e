"""Fits rows to a table of the lake: the registry's columns, in its order and types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from pipeline.lake.arrow import arrow_type, fitting_array
from pipeline.tables import Table


def schema_of(table: Table) -> pa.Schema:
    """The columns of a table, all of them nullable."""
    return pa.schema([pa.field(column.name, arrow_type(column.type)) for column in table.columns])


def fit(rows: pa.Table, table: Table) -> pa.Table:
    """The columns of ``table``, of its types; columns that are missing are null."""
    arrays = []
    for field in schema_of(table):
        if field.name in rows.column_names:
            arrays.append(rows.column(field.name).cast(field.type))
        else:
            arrays.append(pa.chunked_array([pa.nulls(rows.num_rows, field.type)]))
    return pa.Table.from_arrays(arrays, schema=schema_of(table))


def table_of(rows: Iterable[Mapping[str, Any]], table: Table) -> pa.Table:
    """Rows by column name; times are µs since the epoch, days since then. What a type cannot hold is null."""
    found = list(rows)
    return table_of_columns({column.name: [row.get(column.name) for row in found] for column in table.columns}, table)


def table_of_columns(columns: Mapping[str, Sequence[Any]], table: Table) -> pa.Table:
    """The same from the values of each column by name."""
    schema = schema_of(table)
    return pa.Table.from_arrays([fitting_array(columns[field.name], field.type) for field in schema], schema=schema)
