"""Does an advice come from its rule? By the texts that the rule's object lists, with names filled in."""

from __future__ import annotations

import re
from functools import cache
from string import Formatter

from pipeline.analysis.libraries import LIBRARIES, spoken
from pipeline.analysis.rules.rule import Rule, all_rules


def is_part(text: str) -> bool:
    """Whether an advice is put together of this and of another one."""
    return text.startswith("Fix: ") or (text.startswith("Now: ") and " Fix: " not in text)


def names_in(text: str) -> list[str]:
    """The names of its placeholders."""
    return [name for _, name, _, _ in Formatter().parse(text) if name is not None]


def whole(rule: type[Rule]) -> list[str]:
    """All texts of a rule; of parts each that says what to do now with each that says what mends it."""
    parts = [text for text in rule.advice if is_part(text)]
    fixes = [text for text in parts if text.startswith("Fix: ")]
    made = [f"{now} {fix}" for now in parts if now not in fixes for fix in fixes]
    return [*(text for text in rule.advice if text not in parts), *made]


def comes_from(rule: type[Rule], advice: str) -> bool:
    """Whether the rule has a text that gives this advice, with something in each of its placeholders.

    The text may be in the words of a client library.
    """
    return any(
        _pattern(spoken(text, library)).fullmatch(advice)
        and not any(f"{{{name}}}" in advice for name in names_in(text))
        for text in whole(rule)
        for library in (None, *LIBRARIES)
    )


def is_of_its_rule(rule: str, advice: str) -> bool:
    """The same of a rule by its name."""
    return comes_from(_rules()[rule], advice)


@cache
def _pattern(text: str) -> re.Pattern[str]:
    parts = [re.escape(literal) + ("" if name is None else ".+") for literal, name, _, _ in Formatter().parse(text)]
    return re.compile("".join(parts), re.DOTALL)


@cache
def _rules() -> dict[str, type[Rule]]:
    return {rule.name: rule for rule in all_rules()}
