"""How delta-rs makes a table, and writes its Parquet files: compressed, and encoded as its columns allow."""

from __future__ import annotations

from deltalake import ColumnProperties, DeltaTable, Field, Schema, WriterProperties

from pipeline.lake.arrow import arrow_schema
from pipeline.tables import LAYOUT, LAYOUT_PROPERTY, UNLIKE, Table

_ROWS_OF_A_GROUP = 100_000
"""A million, as delta-rs has it, makes files no smaller, but writing takes twice the time, and so does reading."""


def writer_properties(table: Table) -> WriterProperties:
    """Zstd; differences of times and large numbers, and no dictionary of what differs from row to row."""
    columns = {name: ColumnProperties(dictionary_enabled=False) for name in table.column_names if name in UNLIKE}
    differences = ColumnProperties(dictionary_enabled=False, encoding="DELTA_BINARY_PACKED")
    columns |= dict.fromkeys(table.by_difference, differences)
    return WriterProperties(compression="ZSTD", column_properties=columns, max_row_group_size=_ROWS_OF_A_GROUP)


def create_table(place: str, table: Table) -> None:
    """Make an empty table with the comments and constraints of the registry.

    Args:
        place: its folder, in which there is no table yet.
        table: one of :mod:`pipeline.tables`.
    """
    fields = [
        Field(field.name, field.type, nullable=column.nullable, metadata={"comment": column.comment})
        for column, field in zip(table.columns, Schema.from_arrow(arrow_schema(table.columns)).fields, strict=True)
    ]
    held = DeltaTable.create(
        place, Schema(fields), partition_by=list(table.partition_by), description=table.comment, name=table.full_name,
        configuration={LAYOUT_PROPERTY: str(LAYOUT)}, raise_if_key_not_exists=False,
    )  # fmt: skip
    if table.checks:  # not as properties: the protocol must oblige whoever writes next to hold to them
        held.alter.add_constraint(dict(table.checks))
