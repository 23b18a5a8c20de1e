"""Pages of the documents that commands, findings, alerts, settings and comments name are there, with their anchors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from pymdownx.slugs import slugify

from pipeline.analysis.rules.rule import all_rules
from tests.paths import ROOT

_NAMED = re.compile(r"\bdocs/[\w/-]+\.(?:md|html)(?:#[\w-]+)?")
_FOLDERS = ("pipeline", "wirelake", "decoder", "airflow_dags", "conf", "notebooks")
_KINDS = {".py", ".yaml", ".yml", ".json", ".conf", ".service", ".sh"}
_slug = slugify(case="lower")


def _named() -> Iterator[tuple[str, str]]:
    """Where a page is named, and how."""
    files = (file for folder in _FOLDERS for file in (ROOT / folder).rglob("*") if file.suffix in _KINDS)
    for file in (*files, ROOT / "Makefile", ROOT / "mkdocs.yml"):
        for found in _NAMED.findall(file.read_text(encoding="utf-8", errors="replace")):
            yield str(file.relative_to(ROOT)), found


def _anchors(page: Path) -> set[str]:
    text = page.read_text(encoding="utf-8")
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {_slug(re.sub(r"[`*]", "", one), "-") for one in headings} | set(re.findall(r'<a id="([^"]+)">', text))


def test_each_is_there() -> None:
    named = set(_named())
    assert {where for where, _ in named} >= {"pipeline/commands/findings.py", "conf/prometheus/alerts.yaml"}
    wrong = []
    for where, what in sorted(named):
        page, _, anchor = what.partition("#")
        if not (ROOT / page).is_file() or (anchor and anchor not in _anchors(ROOT / page)):
            wrong.append((where, what))
    assert wrong == []


def test_each_rule_has_a_page_that_begins_with_its_title() -> None:
    for rule in all_rules():
        page = ROOT / "docs" / "rules" / f"{rule.name}.md"
        assert page.read_text(encoding="utf-8").startswith(f"# {rule.title} ({rule.name})\n"), rule.name
