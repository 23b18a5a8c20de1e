"""Every table of the registry has checks, and each is addressable."""

from __future__ import annotations

import pytest

from pipeline.quality.suites import LAYERS, checks_of, expectation_suite, tables_of
from pipeline.tables import TABLES, Table

CHECKED = [table for layer in LAYERS for table in tables_of(layer)]


def test_every_table_of_bronze_silver_and_gold_is_checked() -> None:
    assert {t.full_name for t in CHECKED} == {n for n in TABLES if not n.startswith("ops.")}


@pytest.mark.parametrize("table", CHECKED, ids=lambda t: t.full_name)
def test_the_registry_is_checked_and_names_are_unique(table: Table) -> None:
    checks = checks_of(table)
    keys = [check.key for check in checks]
    assert len(keys) == len(set(keys))
    assert {"has_columns:", "unique_key:"} <= set(keys)
    assert {f"not_null:{column.name}" for column in table.columns if not column.nullable} <= set(keys)
    assert {f"{name}:" for name in table.checks} <= set(keys)
    assert len(expectation_suite(table).expectations) == len(checks)


@pytest.mark.parametrize("table", CHECKED, ids=lambda t: t.full_name)
def test_checks_name_columns_that_exist(table: Table) -> None:
    assert {check.column for check in checks_of(table)} - {None} <= set(table.column_names)
