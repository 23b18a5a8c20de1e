"""A saved answer holds what the query gives, in forms that are safe to open."""

from __future__ import annotations

import io
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from pipeline.config.settings import SqlSettings
from pipeline.dashboard.web.page_context import LAKE
from pipeline.dashboard.web.parts import answer_files
from pipeline.dashboard.web.parts.answer_files import csv_of, parquet_of

LIMITS = SqlSettings()


@pytest.fixture(autouse=True)
def _lake(monkeypatch: pytest.MonkeyPatch, hand_made_lake: Path) -> None:
    monkeypatch.setenv(LAKE, str(hand_made_lake))


def test_csv_has_a_header_and_no_formula() -> None:
    saved = csv_of("SELECT '=1+1' AS text, 2 AS n, 3 AS n UNION ALL SELECT 'ä,b', NULL, 4 ORDER BY 3", LIMITS)
    assert saved.decode().splitlines() == ["text,n,n_1", "'=1+1,2,3", '"ä,b",,4']


def test_parquet_has_types_and_distinct_names() -> None:
    saved = pq.read_table(io.BytesIO(parquet_of("SELECT range AS n, TIMESTAMPTZ '2026-01-01 00:00:00+00' AS n "
                                                "FROM range(3000)", LIMITS)))  # fmt: skip
    assert saved.column_names == ["n", "n_1"]
    assert saved.column("n").to_pylist() == list(range(3000))


def test_what_is_saved_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_files, "MOST_ROWS", 5)
    assert csv_of("FROM range(10)", LIMITS).decode().splitlines() == ["range", "0", "1", "2", "3", "4"]
    monkeypatch.setattr(answer_files, "MOST_ROWS", 100_000)
    monkeypatch.setattr(answer_files, "_MOST_BYTES", 200_000)
    rows = csv_of("SELECT range, repeat('x', 90) FROM range(50000)", LIMITS).decode().splitlines()
    assert 1 < len(rows) < 3000
