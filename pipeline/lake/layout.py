"""Whether this release may read or write a lake: the layout that each table states, and the types of its columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa

from pipeline.errors import UserError
from pipeline.tables import LAYOUT, LAYOUT_PROPERTY, Table

_SHOWN = 20
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


def demand_layout(lake: str, properties: Mapping[str, str | None]) -> None:
    """Refuse a table that a later release wrote in a layout of its own: it would be misread.

    Args:
        lake: the lake's folder or URL.
        properties: of the table, as its log states them.

    Raises:
        UserError: the layout is later than ours, or nonsense.
    """
    layout = properties.get(LAYOUT_PROPERTY) or str(LAYOUT)
    if not (layout.isascii() and layout.isdigit() and int(layout) <= LAYOUT):
        raise UserError(
            f"{lake} was written by a later release of Wirelake: its tables have layout {layout[:_SHOWN]}, this "
            f"release knows {LAYOUT}. Install the release that wrote it, or a later one: pip install --upgrade wirelake"
        )


def demand_types(lake: str, table: Table, schema: pa.Schema) -> None:
    """Refuse a table with a column that queries would misread.

    Args:
        lake: the lake's folder or URL.
        table: as it should be.
        schema: its columns as they are.

    Raises:
        UserError: a column is of another type than it should be.
    """
    for column in table.columns:
        if column.name in schema.names:
            kind = schema.field(column.name).type
            fits = _FITS.get(column.type, pa.types.is_nested)
            if not fits(kind):
                raise UserError(
                    f"cannot read {lake}/{table.path}: its column {column.name} is {kind}, not {column.type}. "
                    "Another release, or another program, wrote it"
                )
