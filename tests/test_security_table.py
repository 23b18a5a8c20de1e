"""SECURITY.md promises nothing without a test: each file that its table names is there."""

from __future__ import annotations

import re

from tests.paths import ROOT


def test_each_row_names_tests_that_exist() -> None:
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| ")][1:]
    assert len(rows) > 10
    missing = []
    for row in rows:
        named = re.findall(r"`(tests/[\w/*]+\.py)`", row.rsplit("|", 2)[1])
        assert named, row
        missing += [path for path in named if not list(ROOT.glob(path))]
    assert missing == []
