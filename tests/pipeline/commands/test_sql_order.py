"""Rows of a query without an order come the same way each time."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.commands.sql import sql_order
from pipeline.commands.sql.sql_order import in_stable_order

ROWS: list[tuple[Any, ...]] = [("b", 2), (None, 1), ("a", 10), ("a", None), ("a", 9)]
SORTED = [("a", 9), ("a", 10), ("a", None), ("b", 2), (None, 1)]


@pytest.mark.parametrize("query", ["FROM latency", "SELECT a, count(*) FROM t GROUP  BY a", "SELECT DISTINCT a FROM t"])
def test_groups_are_sorted_by_their_columns(query: str) -> None:
    assert list(in_stable_order(ROWS, query, ["latency"])) == SORTED


@pytest.mark.parametrize("query", ["FROM latency ORDER BY p99_us", "FROM silver.exchanges", "FROM my_latency_table"])
def test_an_order_that_is_stated_and_that_of_a_table_stay(query: str) -> None:
    assert list(in_stable_order(ROWS, query, ["latency"])) == ROWS


def test_long_answers_stay_as_they_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql_order, "MOST_SORTED", 4)
    assert list(in_stable_order(iter(ROWS), "FROM latency", ["latency"])) == ROWS


def test_values_that_cannot_be_compared_are_compared_as_text() -> None:
    assert list(in_stable_order([({"b": 1},), ({"a": 1},)], "FROM latency", ["latency"])) == [({"a": 1},), ({"b": 1},)]
