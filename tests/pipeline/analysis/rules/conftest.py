"""Whatever a test lets a rule find: its advice must be one of those that the rule lists."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from pipeline.analysis.rules.model import Finding
from tests.pipeline.analysis.rules.advice import is_of_its_rule


@pytest.fixture(autouse=True)
def advice_comes_from_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    make = Finding.__init__

    def checked(finding: Finding, *args: Any, **values: Any) -> None:
        make(finding, *args, **values)
        by = sys._getframe(1).f_globals["__name__"]
        if by.startswith("pipeline."):  # tests make some by hand
            assert is_of_its_rule(finding.rule, finding.advice), f"{finding.rule}: {finding.advice}"

    monkeypatch.setattr(Finding, "__init__", checked)
