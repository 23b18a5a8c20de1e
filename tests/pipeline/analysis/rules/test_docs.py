"""Every rule has its page, every threshold is on a page and in the sample settings."""

from __future__ import annotations

import re

import pytest
import yaml

from pipeline.analysis.rules.model import SEVERITIES
from pipeline.analysis.rules.rule import all_rules
from pipeline.analysis.rules.settings import finding_settings
from pipeline.dashboard.sql import connect_tables
from tests.paths import ROOT
from tests.pipeline.analysis.incidents.golden import FOLDER
from tests.pipeline.analysis.sources import NAMED
from website.rule_documents import documents, problems

RULES = {rule.name: rule for rule in all_rules()}
PAGES = {page.stem: page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "rules").glob("*.md")}
_OF_MONGODB = {"change_stream_lost"}
"""Rules about MongoDB whose name does not say so."""


def test_pages_state_what_their_rules_do() -> None:
    assert problems() == []


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("# Lag grows", "# Lag", "its title is not `# Lag grows (lag_growing)`"),
        ("**Severity** warning", "**Severity** info", "its second paragraph is not `**Severity** ` with warning"),
        ("**What to do.**", "**Do.**", "it has no paragraph **What to do.**"),
        ("`lag_growing_records`", "it", "it does not name the threshold `lag_growing_records`"),
        (
            "`lag_growing_records`",
            "`lag_growing_records`, `slow_seconds`",
            "it names `slow_seconds`, which the rule does not go by",
        ),
    ],
)
def test_a_page_that_differs_from_its_rule_is_named(old: str, new: str, problem: str) -> None:
    pages = PAGES | {"lag_growing": PAGES["lag_growing"].replace(old, new)}
    assert problems(pages) == [f"docs/rules/lag_growing.md: {problem}"]


def test_a_page_and_a_rule_come_together() -> None:
    pages = PAGES | {"lag_shrinking": PAGES["lag_growing"]}
    del pages["lag_growing"]
    assert problems(pages) == [
        "docs/rules/lag_shrinking.md: no rule has this name", "docs/rules/lag_growing.md: there is no such page",
    ]  # fmt: skip


@pytest.mark.parametrize("path", ["README.md", "conf/local.yaml"])
def test_documents_list_rules_and_thresholds_as_they_are(path: str) -> None:
    assert (ROOT / path).read_text(encoding="utf-8") == documents()[path], "python -m website.reference writes it anew"


@pytest.mark.parametrize("rule", RULES)
def test_a_page_leads_to_pages_that_there_are(rule: str) -> None:
    links = re.findall(r"(?<!!)\[[^\]]*\]\(([^)#]+)[^)]*\)", PAGES[rule])
    assert [link for link in links if not (ROOT / "docs" / "rules" / link).is_file()] == []


def test_queries_on_pages_name_tables_and_columns_that_there_are() -> None:
    queries = [query for page in PAGES.values() for query in re.findall(r"`((?:SELECT|FROM|WITH)\s[^`]+)`", page)]
    assert len(queries) > 5
    with connect_tables({}) as connection:
        for query in queries:
            connection.execute(f"EXPLAIN {query.replace('…', '') if quoted(query) else query.replace('…', 'NULL')}")


def quoted(query: str) -> bool:
    """Whether what a reader fills in is within quotes."""
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


def test_the_sample_settings_are_the_defaults() -> None:
    sample = yaml.safe_load((ROOT / "conf" / "local.yaml").read_text(encoding="utf-8"))["stream"]["findings"]
    defaults = finding_settings().model_dump()
    assert set(sample) == set(defaults)
    assert finding_settings(**sample).model_dump() == defaults


def test_a_rule_states_what_it_is_about_and_what_it_reads() -> None:
    for name, rule in RULES.items():
        assert rule.meaning.endswith("."), name
        assert set(rule.severities) <= set(SEVERITIES), name
        assert set(rule.reads) <= set(NAMED), name
        assert (rule.protocol == "mongodb") == (name.startswith("mongo_") or name in _OF_MONGODB), name
