"""Is a rule's object all of it? What it goes by, what it advises; and what is not in order is refused."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

from pipeline.analysis.codes.advice import BY_CODE
from pipeline.analysis.rules import rule as registry
from pipeline.analysis.rules.model import Finding, Sources
from pipeline.analysis.rules.rule import Rule, all_rules, families_of, settings_of
from pipeline.analysis.rules.settings import finding_settings_model
from tests.paths import ROOT
from tests.pipeline.analysis.rules.advice import comes_from, is_part, names_in, whole
from tests.pipeline.analysis.sources import sources
from tests.pipeline.rows import T0

RULES = {rule.name: rule for rule in all_rules()}
_IN_PARTS = {"offset_reset"}
"""What to do now follows from what became of the records, the fix from why the position was gone."""
_NOTHING_TO_MEND = {"capture_loss"}
"""What was lost stays so: its advice is what not to trust, and how the next capture loses less."""
_ADVICE = ("Now: look at {what}. Fix: mend it.", "Now: wait for {what}.", "Now: run.", "Fix: do.", "Fix: do not.")


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> dict[str, type[Rule]]:
    """Rules that are registered meanwhile, without those that there are."""
    monkeypatch.setattr(registry, "_RULES", {})
    return registry._RULES


def _nothing(_rule: type[Rule], _sources: Sources, _settings: object) -> list[Finding]:
    return []


def sample(**stated: object) -> type[Rule]:
    facts = {
        "name": "sample", "title": "Sample", "protocol": "kafka", "severities": ("info",), "advice": _ADVICE,
        "__doc__": "A sample\nof rules.\n\nAnd more.", "detect": classmethod(_nothing),
    }  # fmt: skip
    return type("Sample", (Rule,), {name: value for name, value in {**facts, **stated}.items() if value is not None})


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_each_rule_advises_what_to_do_now_and_what_mends_it(rule: type[Rule]) -> None:
    assert rule.advice
    assert len(set(rule.advice)) == len(rule.advice)
    for text in rule.advice:
        assert text == " ".join(text.split())
        assert text.endswith("."), text
        assert all(name.isidentifier() for name in names_in(text)), text
    if rule.name in _NOTHING_TO_MEND:
        return
    assert {is_part(text) for text in rule.advice} == {rule.name in _IN_PARTS}
    for text in whole(rule):
        assert text.startswith("Now: "), text
        assert text.count(" Fix: ") == text.count("Now: ") == 1, text


def test_no_two_rules_share_a_text() -> None:
    texts = [text for rule in RULES.values() for text in rule.advice if text != BY_CODE]
    assert sorted(set(texts)) == sorted(texts)


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_thresholds_are_fields_with_a_default_and_a_meaning(rule: type[Rule]) -> None:
    for name, field in settings_of(rule).items():
        assert repr(field) == repr(finding_settings_model().model_fields[name])
        assert field.annotation in (int, float), name
        assert field.metadata, f"{name} is not bounded"
        assert isinstance(field.default, int | float), name
        assert field.description, name


def test_a_rule_registers_itself_with_what_it_states(registered: dict[str, type[Rule]]) -> None:
    rule = sample()
    (family,) = families_of(registered.values())
    assert (family.rules, family.is_last) == ((rule,), False)
    assert family.find(sources(), None) == []
    assert rule.meaning == "A sample of rules."
    assert sample(meaning="Another.").meaning == "Another."


def test_rules_that_name_one_function_share_its_pass(registered: dict[str, type[Rule]]) -> None:
    def find(_sources: Sources, _settings: object) -> list[Finding]:
        return []

    one = sample(detect=None, found_by=(find,))
    other = sample(name="other", found_by=(find,), __qualname__="Other")
    own, shared = sorted(families_of(registered.values()), key=lambda family: len(family.rules))
    assert (own.rules, own.find) == ((other,), other.detect)
    assert (shared.rules, shared.find) == ((one, other), find)


@pytest.mark.parametrize(
    ("stated", "error"),
    [
        ({"detect": None}, "rule sample states neither detect nor found_by: nothing finds it"),
        ({"advice": None, "title": None}, "rule Sample does not state its title, advice"),
        ({"severities": ("info", "fatal")}, "rule sample: its severities are none of critical, warning, info"),
    ],
)
def test_what_is_not_in_order_is_no_rule(
    stated: dict[str, object], error: str, registered: dict[str, type[Rule]]
) -> None:
    with pytest.raises((TypeError, ValueError), match=error):
        sample(**stated)


def test_two_rules_of_one_name_are_refused(registered: dict[str, type[Rule]]) -> None:
    sample()
    with pytest.raises(TypeError, match=r"two rules are called sample: .*, elsewhere"):
        sample(__module__="elsewhere")


def test_a_rule_that_is_not_installed_states_nothing() -> None:
    assert registry.rule_named("of_yesterday") is Rule


@pytest.mark.parametrize(
    ("advice", "expected"),
    [
        ("Now: look at it. Fix: mend it.", True),
        ("Now: look at a\nb. Fix: mend it.", True),
        ("Now: wait for it. Fix: do not.", True),
        ("Now: run. Fix: do.", True),
        ("Now: look at . Fix: mend it.", False),
        ("Now: look at {what}. Fix: mend it.", False),
        ("Now: look at it. Fix: mend it. And more.", False),
        ("Now: look at it. Fix: mendXit.", False),
        ("Now: run.", False),
        ("Fix: do.", False),
        ("Now: run. Fix: mend it.", False),
        ("", False),
    ],
)
def test_an_advice_comes_from_a_text_or_from_two_parts(
    advice: str, expected: bool, registered: dict[str, type[Rule]]
) -> None:
    assert comes_from(sample(), advice) is expected


def test_the_example_of_the_docs_finds_and_advises_what_it_lists(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "adding-a-rule.md").read_text(), re.DOTALL)
    monkeypatch.setattr(registry, "_RULES", {})
    (tmp_path / "crowded_group.py").write_text(example)
    monkeypatch.syspath_prepend(str(tmp_path))
    module = importlib.import_module("crowded_group")
    (family,) = families_of(registry._RULES.values())
    assert family.rules == (module.CrowdedGroup,)
    events = [
        {
            "kind": "committed",
            "cluster": "C",
            "group_id": group,
            "client": f"10.0.0.{n}:5",
            "exchange_id": f"{n}",
            "ts": T0,
        }
        for group, clients in (("crowd", 3), ("pair", 2))
        for n in range(clients)
    ]
    (finding,) = family.find(sources(events=events), family.rules[0].Thresholds())
    assert (finding.subject, finding.details["clients"], finding.evidence) == ("crowd", 3, ["0"])
    assert comes_from(family.rules[0], finding.advice)
    assert "crowd" in finding.advice
