"""What texts and advice contain of tables can be typed in: the tables are there, and the queries of the docs run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pipeline.dashboard.sql import query
from pipeline.tables import TABLES
from tests.paths import ROOT

_TEXTS = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "notebooks").glob("*.ipynb")),
    *sorted((ROOT / "pipeline").rglob("*.py")),
    *sorted((ROOT / "pipeline").rglob("*.sql")),
]
_TABLE = re.compile(r"(?<!streaming\.)\b(?:bronze|silver|gold|ops)\.[a-z][a-z_]*\b(?!\()")
_QUERY = re.compile(r"^```sql\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_TYPED = re.compile(r'wirelake sql "([^"]+)"')


def _queries() -> list[str]:
    pages = [text.read_text(encoding="utf-8") for text in _TEXTS if text.suffix == ".md"]
    blocks = [block for page in pages for block in _QUERY.findall(page)]
    single = [query for block in blocks for line in block.split(";") if (query := re.sub(r"--.*", "", line).strip())]
    return single + [typed for page in pages for typed in _TYPED.findall(page)]


@pytest.mark.parametrize("text", _TEXTS, ids=lambda text: str(text.relative_to(ROOT)))
def test_every_named_table_is_there(text: Path) -> None:
    assert set(_TABLE.findall(text.read_text(encoding="utf-8"))) <= set(TABLES)


@pytest.mark.parametrize("sql", _queries())
def test_every_query_of_the_docs_runs(hand_made_lake: Path, sql: str) -> None:
    assert query(hand_made_lake, sql).schema.names
