"""Every table is in the registry and in a file of its schema; nothing of it is stated twice."""

from __future__ import annotations

import pkgutil
from importlib import import_module

import pytest

from pipeline import tables
from pipeline.tables import TABLES, Table

FILES = {
    name: [value for value in vars(import_module(f"pipeline.tables.{name}")).values() if isinstance(value, Table)]
    for _, name, _ in pkgutil.iter_modules(tables.__path__)
}


def test_the_registry_has_every_table_once():
    made = {id(table) for found in FILES.values() for table in found}
    assert made - {id(tables.EXCHANGES_WITH_BODIES)} == {id(table) for table in TABLES.values()}  # a view
    assert all(getattr(tables, name) is not None for name in tables.__all__)


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_a_table_stands_in_a_file_of_its_schema(table):
    assert any(name.split("_")[0] == table.schema and table in found for name, found in FILES.items())
    assert {*table.key, *table.partition_by, *table.cluster_by} <= set(table.column_names)
    assert len(set(table.column_names)) == len(table.column_names)
