"""Rows of a table of this machine, for queries that read what they ask for, when they do."""

from __future__ import annotations

from pipeline.analysis.fit import schema_of
from pipeline.analysis.tables import InFiles, Some
from pipeline.lake.delta_reader import open_table
from pipeline.tables import Table


def local_rows(lake: str, table: Table) -> Some:
    """All rows of a table; none where it is missing.

    Args:
        lake: the lake's folder.
        table: one of :mod:`pipeline.tables`.

    Raises:
        UserError: it cannot be read.
    """
    opened = open_table(lake, table)
    if opened is None:
        return schema_of(table).empty_table()
    if opened.files is None:
        return opened.dataset
    return InFiles(opened.files.paths, opened.rows_sql(table, opened.files))
