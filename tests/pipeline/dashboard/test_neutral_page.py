"""The page names no rule: what it decides by a rule, the rule states itself, also one of an installed protocol."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import pipeline.dashboard
from pipeline.analysis.rules.rule import rules_by_name

_ROOT = Path(pipeline.dashboard.__file__).parent
_EVENTS = {"commit_rejected"}
"""Names of rules that are names of events, too."""


def _texts(module: Path) -> set[str]:
    tree = ast.parse(module.read_text(encoding="utf-8"))
    return {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}


@pytest.mark.parametrize("module", sorted(_ROOT.rglob("*.py")), ids=lambda path: str(path.relative_to(_ROOT)))
def test_no_module_names_a_rule(module: Path) -> None:
    assert _texts(module) & set(rules_by_name()) <= _EVENTS
