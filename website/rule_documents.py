"""What documents by hand say of rules: the parts that follow from the rules' classes, and what is missing of the rest.

The README's table of rules and the thresholds of ``conf/local.yaml`` are written; the pages of ``docs/rules``, whose
prose is by hand, are compared with the class: title, severities, thresholds.
"""

from __future__ import annotations

import re
import textwrap
from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from decoder.protocols import protocols
from pipeline.analysis.rules.rule import Rule, all_rules, settings_of
from pipeline.analysis.rules.settings import finding_settings_model
from pipeline.analysis.rules.thresholds import RuleThresholds
from website.markdown import code, table
from website.settings_page import span

ROOT = Path(__file__).resolve().parents[1]
PARTS = ("What it means.", "What it rests on.", "What to do.", "When it does not fire.")
"""What each page has a paragraph about."""
_RULES_IN_README = re.compile(r"^\| about \| rules \|\n(?:\|.*\n)+", re.MULTILINE)
_FINDINGS_IN_SETTINGS = re.compile(r"^  findings:.*\n(?:(?:    .*)?\n)*?(?=^\S)", re.MULTILINE)
_COMMENT_AT, _WIDTH = 38, 120
_SEVERITY = re.compile(r"\b(?:critical|warning|info)\b")


def documents() -> dict[str, str]:
    """The text that documents with such a part must have, by their paths in the repository."""
    return {
        "README.md": _with(_RULES_IN_README, f"{_rules_by_subject()}\n", _read("README.md")),
        "conf/local.yaml": _with(_FINDINGS_IN_SETTINGS, "\n".join(_thresholds()) + "\n\n", _read("conf/local.yaml")),
    }


def _read(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def _with(part: re.Pattern[str], new: str, text: str) -> str:
    """A text with another part.

    Raises:
        ValueError: it has no such part, or several.
    """
    replaced, times = part.subn(lambda _: new, text)
    if times != 1:
        raise ValueError(f"{times} parts match {part.pattern!r}, instead of one")
    return replaced


def _rules_by_subject() -> str:
    """The README's table."""
    by_subject: defaultdict[str, list[str]] = defaultdict(list)
    for rule in all_rules():
        by_subject[_subject(rule)].append(code(rule.name))
    rows = ((subject, " ".join(names)) for subject, names in sorted(by_subject.items(), key=lambda one: one[0].lower()))
    return table(("about", "rules"), rows)


def _subject(rule: type[Rule]) -> str:
    known = protocols()
    return rule.about or (known[rule.protocol].title if rule.protocol in known else rule.protocol)


def _thresholds() -> Iterator[str]:
    """The lines of ``stream.findings`` in the sample settings: those of all rules, then each rule's."""
    yield "  findings:".ljust(_COMMENT_AT) + "# how much of a symptom makes a finding; docs/reference/rules.md"
    fields = finding_settings_model().model_fields
    of_all = RuleThresholds.model_fields
    stated = {rule.name: [name for name in settings_of(rule) if name not in of_all] for rule in all_rules()}
    rules_of: defaultdict[str, list[str]] = defaultdict(list)
    for rule, names in stated.items():
        for name in names:
            rules_of[name].append(rule)
    for name in of_all:
        yield from _threshold(name, fields[name].default, fields[name].description or "")
    for rule, names in stated.items():
        own = [name for name in names if rules_of[name][0] == rule]
        if own:
            yield f"    # {rule}"
        for name in own:
            others = rules_of[name][1:]
            also = f" (also {', '.join(others)})" if others else ""
            yield from _threshold(name, fields[name].default, f"{fields[name].description or ''}{also}")


def _threshold(name: str, default: Any, words: str) -> Iterator[str]:
    value = span(default) if isinstance(default, timedelta) else f"{default:g}"
    first, *more = textwrap.wrap(words, _WIDTH - _COMMENT_AT - len("# "))
    yield f"    {name}: {value}".ljust(_COMMENT_AT - 2) + f"  # {first}"
    yield from (" " * _COMMENT_AT + f"# {line}" for line in more)


def problems(pages: Mapping[str, str] | None = None) -> list[str]:
    """What the pages of rules lack, a sentence each.

    Args:
        pages: their texts by the rules' names; by default those of ``docs/rules``.
    """
    texts = {page.stem: page.read_text(encoding="utf-8") for page in sorted((ROOT / "docs/rules").glob("*.md"))}
    texts = texts if pages is None else dict(pages)
    known = {rule.name: rule for rule in all_rules()}
    found = [f"docs/rules/{name}.md: no rule has this name" for name in texts if name not in known]
    for name, rule in known.items():
        missing = ["there is no such page"] if name not in texts else _missing(rule, texts[name])
        found += [f"docs/rules/{name}.md: {one}" for one in missing]
    return found


def _missing(rule: type[Rule], page: str) -> Iterator[str]:
    title, _, rest = page.partition("\n\n")
    if title != f"# {rule.title} ({rule.name})":
        yield f"its title is not `# {rule.title} ({rule.name})`"
    severities = set(_SEVERITY.findall(rest.partition("\n\n")[0])) if rest.startswith("**Severity** ") else set()
    if severities != set(rule.severities):
        yield f"its second paragraph is not `**Severity** ` with {', '.join(rule.severities)}"
    for part in PARTS:
        if f"**{part}** " not in page:
            yield f"it has no paragraph **{part}**"
    named = {name for name in finding_settings_model().model_fields if f"`{name}`" in page} - set(_OF_ALL)
    stated = set(settings_of(rule)) - set(_OF_ALL)
    yield from (f"it does not name the threshold `{name}`" for name in sorted(stated - named))
    yield from (f"it names `{name}`, which the rule does not go by" for name in sorted(named - stated))


_OF_ALL = {"max_evidence", "episode_pause_seconds", "resolved_after_seconds", "lookback"}
"""Thresholds of no one rule."""
