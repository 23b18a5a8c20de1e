"""Every rule has its page, every threshold is on a page and in the sample settings."""

from __future__ import annotations

import re

import pytest
import yaml

from pipeline.analysis.rules.model import SEVERITIES
from pipeline.analysis.rules.rule import all_rules, settings_of
from pipeline.analysis.rules.settings import finding_settings, finding_settings_model
from pipeline.dashboard.sql import connect_tables
from tests.paths import ROOT
from tests.pipeline.analysis.incidents.golden import FOLDER
from tests.pipeline.analysis.sources import NAMED

RULES = {rule.name: rule for rule in all_rules()}
PAGES = {page.stem: page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "rules").glob("*.md")}
_EVERYWHERE = {"max_evidence", "episode_pause_seconds", "resolved_after_seconds", "lookback"}
"""Thresholds of no one rule."""
_OF_MONGODB = {"change_stream_lost"}
"""Rules about MongoDB whose name does not say so."""
_LESS_SEVERE_IN_DOUBT = {"stopped", "lso_stalled"}
"""Their pages state in their text when they are a warning only."""


def test_each_rule_has_a_page_and_each_page_a_rule() -> None:
    assert sorted(PAGES) == sorted(RULES)


@pytest.mark.parametrize("rule", RULES)
def test_a_page_states_what_it_means_rests_on_advises_and_leaves_alone(rule: str) -> None:
    page = PAGES[rule]
    assert page.startswith(f"# {RULES[rule].title} ({rule})\n\n**Severity** ")
    severities = re.findall(r"critical|warning|info", page.splitlines()[2])
    assert set(severities) | ({"warning"} if rule in _LESS_SEVERE_IN_DOUBT else set()) == set(RULES[rule].severities)
    for part in ("What it means.", "What it rests on.", "What to do.", "When it does not fire."):
        assert f"**{part}** " in page
    links = re.findall(r"(?<!!)\[[^\]]*\]\(([^)]+)\)", page)
    assert {link.removesuffix(".md") for link in links} <= set(PAGES)


def test_queries_on_pages_name_tables_and_columns_that_there_are() -> None:
    queries = [query for page in PAGES.values() for query in re.findall(r"`((?:SELECT|FROM|WITH)\s[^`]+)`", page)]
    assert len(queries) > 5
    with connect_tables({}) as connection:
        for query in queries:
            connection.execute(f"EXPLAIN {query.replace('…', '') if quoted(query) else query.replace('…', 'NULL')}")


def quoted(query: str) -> bool:
    """Whether what a reader fills in stands within quotes."""
    return "…" not in re.sub("'[^']*'", "", query)


def test_headlines_on_pages_are_told_of_recordings() -> None:
    told = [_words(text) for text in (path.read_text() for path in sorted(FOLDER.glob("*.txt")))]
    quoted = {rule: _words(page.partition("*After:*")[2].partition("![What")[0]) for rule, page in PAGES.items()}
    shown = {rule: text.replace("> ", "") for rule, text in quoted.items() if text}
    assert len(shown) == 15
    for rule, headline in shown.items():
        assert headline.split()[0] in ("CRITICAL", "WARNING"), rule
        assert any(headline in text for text in told), rule


def _words(text: str) -> str:
    return " ".join(text.split())


def test_every_threshold_is_on_a_page_and_in_the_sample_settings() -> None:
    sample = yaml.safe_load((ROOT / "conf" / "local.yaml").read_text(encoding="utf-8"))["stream"]["findings"]
    defaults = finding_settings().model_dump()
    assert set(sample) == set(defaults)
    assert finding_settings(**sample).model_dump() == defaults
    named = {name for name in defaults for page in PAGES.values() if f"`{name}`" in page}
    assert set(defaults) - named == _EVERYWHERE


def test_rules_and_pages_name_the_same_thresholds() -> None:
    for name, rule in RULES.items():
        named = {threshold for threshold in finding_settings_model().model_fields if f"`{threshold}`" in PAGES[name]}
        assert named - _EVERYWHERE == set(settings_of(rule)) - _EVERYWHERE, name


def test_the_readme_lists_them() -> None:
    table = (ROOT / "README.md").read_text(encoding="utf-8").split("| about | rules |")[1].split("\n\n")[0]
    assert sorted(re.findall(r"`(\w+)`", table)) == sorted(RULES)


def test_a_rule_states_what_it_is_about_and_what_it_reads() -> None:
    for name, rule in RULES.items():
        assert rule.meaning.endswith("."), name
        assert set(rule.severities) <= set(SEVERITIES), name
        assert set(rule.reads) <= set(NAMED), name
        assert (rule.protocol == "mongodb") == (name.startswith("mongo_") or name in _OF_MONGODB), name
