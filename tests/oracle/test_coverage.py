"""docs/coverage.md states what is so."""

from __future__ import annotations

import pytest

from tests.oracle.coverage import PAGE, page, version_facts, versions_text
from tests.requirements import require_java, require_maven

MEND = "run `make coverage-docs`"


def test_its_versions_are_those_of_the_schema_table() -> None:
    rows = [line.strip("| ").split(" | ") for line in PAGE.read_text(encoding="utf-8").splitlines() if line[:1] == "|"]
    shown = [tuple(row[:5]) for row in rows if row[0].isdigit()]
    assert shown == version_facts(), MEND


@pytest.mark.proof
@pytest.mark.java
def test_its_counts_are_what_the_comparison_gives() -> None:
    require_java()
    require_maven()
    assert PAGE.read_text(encoding="utf-8") == page(), MEND


def test_versions_as_text() -> None:
    assert [versions_text(v) for v in ([], [3], [2, 1, 0])] == ["-", "3", "0-2"]
    with pytest.raises(ValueError, match="holes"):
        versions_text([0, 2])
