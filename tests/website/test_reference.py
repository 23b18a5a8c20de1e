"""The reference is what the code states today and leaves nothing out."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Literal

import pytest
from pydantic import BaseModel, Field

from pipeline.analysis.claims.table import all_claims
from pipeline.analysis.codes.table import TABLES as TABLES_OF_CODES
from pipeline.analysis.rules.rule import all_rules, settings_of
from pipeline.commands.on_demand import MODULES
from pipeline.tables import TABLES
from website.markdown import cell, code
from website.reference import FOLDER, pages
from website.settings_page import default, section


@pytest.fixture(scope="module")
def made() -> dict[str, str]:
    return pages()


@pytest.mark.slow
class TestReference:
    def test_it_is_up_to_date(self, made: dict[str, str]) -> None:
        kept = {file.name: file.read_text(encoding="utf-8") for file in FOLDER.iterdir()}
        assert sorted(kept) == sorted(made)
        for name, text in made.items():
            assert kept[name] == text, "python -m website.reference writes it again"

    def test_nothing_is_left_out(self, made: dict[str, str]) -> None:
        headings = {name: re.findall(r"^##+ (.+)$", text, re.MULTILINE) for name, text in made.items()}
        assert set(TABLES) < set(headings["tables.md"])
        assert all(f"[`{rule.name}`](../rules/{rule.name}.md)" in made["rules.md"] for rule in all_rules())
        assert all(
            f"## {claim.rule}\n" in made["claims.md"] and cell(claim.words) in made["claims.md"]
            for claim in all_claims()
        )
        for protocol in TABLES_OF_CODES.values():
            assert all(f"| {row.code} | {code(row.name)} |" in made["error-codes.md"] for row in protocol.rows)
        commands = {heading.split()[1] for heading in headings["cli.md"]}
        assert commands == set(MODULES)
        for table in TABLES.values():
            assert all(f"| {code(c.name)} | {code(c.type)} |" in made["tables.md"] for c in table.columns)

    def test_each_rule_shows_what_it_goes_by_and_advises(self, made: dict[str, str]) -> None:
        parts = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", made["rules.md"], re.MULTILINE | re.DOTALL))
        assert list(parts) == [rule.name for rule in all_rules()]
        for rule in all_rules():
            assert all(f"\n- {cell(text)}\n" in parts[rule.name] for text in rule.advice)
            for name, field in settings_of(rule).items():
                row = f"(settings.md#streamfindings{name}) | {default(field)} | {cell(field.description or '')}. |"
                assert row in parts[rule.name]
            assert ("It has no thresholds." in parts[rule.name]) == (not settings_of(rule))
        assert "[`slow_seconds`](settings.md#streamfindingsslow_seconds) | `1` |" in parts["latency_outlier"]

    def test_each_threshold_of_a_rule_leads_to_its_setting(self, made: dict[str, str]) -> None:
        anchors = {
            re.sub(r"[^\w]", "", heading.lower())
            for heading in re.findall(r"^##+ (.+)$", made["settings.md"], re.MULTILINE)
        }
        linked = set(re.findall(r"\(settings\.md#(\w+)\)", made["rules.md"]))
        assert linked
        assert linked <= anchors


class _Inner(BaseModel):
    """Of a part."""

    span: timedelta = Field(default=timedelta(minutes=10), gt=timedelta(0), description="How long")
    kind: Literal["a", "b"] | None = Field(default=None, description="Which | one")


class _Model(BaseModel):
    least: int = Field(default=3, ge=2, description="At least")
    part: _Inner = _Inner()


def test_settings_of_a_model() -> None:
    text = "\n\n".join(section(_Model, ()))
    assert (
        "### least\n\nwhole number, at least `2`; default `3`; in the environment `WIRELAKE_LEAST`.\n\nAt least."
        in text
    )
    assert "## part\n\nOf a part.\n\n### part.span\n\na time, more than `0 s`; default `PT10M`;" in text
    assert "### part.kind\n\none of `a`, `b` or null; default none; in the environment `WIRELAKE_PART__KIND`" in text
    assert "Which \\| one." in text


def test_prose_in_a_cell_is_no_markup() -> None:
    assert cell("a_b  *c* _d_\n`d_e|f` <g>") == r"a_b \*c\* \_d\_ `d_e\|f` \<g>"
    assert code("a|b") == "`a\\|b`"
