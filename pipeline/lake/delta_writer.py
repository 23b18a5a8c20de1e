"""How delta-rs writes the Parquet files of a table: compressed, and encoded as its columns allow."""

from __future__ import annotations

from deltalake import ColumnProperties, WriterProperties

from pipeline.tables import UNLIKE, Table

_ROWS_OF_A_GROUP = 100_000
"""A million, as delta-rs has it, makes files no smaller, but writing takes twice the time, and so does reading."""


def writer_properties(table: Table) -> WriterProperties:
    """Zstd; differences of times and large numbers, and no dictionary of what differs from row to row."""
    columns = {name: ColumnProperties(dictionary_enabled=False) for name in table.column_names if name in UNLIKE}
    differences = ColumnProperties(dictionary_enabled=False, encoding="DELTA_BINARY_PACKED")
    columns |= dict.fromkeys(table.by_difference, differences)
    return WriterProperties(compression="ZSTD", column_properties=columns, max_row_group_size=_ROWS_OF_A_GROUP)
