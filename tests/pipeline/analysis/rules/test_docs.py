"""Every rule has its page, every threshold is on a page and in the sample settings."""

from __future__ import annotations

import pytest
import yaml

from pipeline.analysis.rules.run import RULES
from pipeline.settings import FindingSettings
from tests.paths import ROOT

PAGES = {page.stem: page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "rules").glob("*.md")}
_EVERYWHERE = {"max_evidence", "episode_pause_seconds", "still_open_seconds", "lookback"}
"""Thresholds of no one rule."""


def test_each_rule_has_a_page_and_each_page_a_rule() -> None:
    assert sorted(PAGES) == sorted(RULES)


@pytest.mark.parametrize("rule", RULES)
def test_a_page_says_what_it_means_rests_on_advises_and_leaves_alone(rule: str) -> None:
    page = PAGES[rule]
    assert page.startswith(f"# {rule}\n\n**Severity** ")
    for part in ("What it means.", "What it rests on.", "What to do.", "When it does not fire."):
        assert f"**{part}** " in page
    links = [link.partition(")")[0] for link in page.split("](")[1:]]
    assert {link.removesuffix(".md") for link in links} <= set(PAGES)


def test_every_threshold_is_on_a_page_and_in_the_sample_settings() -> None:
    sample = yaml.safe_load((ROOT / "conf" / "local.yaml").read_text(encoding="utf-8"))["stream"]["findings"]
    defaults = FindingSettings().model_dump()
    assert set(sample) == set(defaults)
    assert FindingSettings(**sample).model_dump() == defaults
    told = {name for name in defaults for page in PAGES.values() if f"`{name}`" in page}
    assert set(defaults) - told == _EVERYWHERE
