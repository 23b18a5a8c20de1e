"""The rules of ``vocabulary.yaml`` as checks of proselint, and those of its own checks that suit a reference work."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

import yaml
from proselint.registry.checks import Check, Padding
from proselint.registry.checks.engine import Fancy
from proselint.registry.checks.types import ExistenceSimple

STOCK = ("archaism", "hedging", "malapropisms", "mondegreens", "nonwords", "oxymorons", "redundancy")
"""Checks of proselint that judge words; typography, dates, clichés and taste stay out."""


class Rule(NamedTuple):
    """What to avoid, as regular expressions, and what to write instead.

    ``refuses`` and ``accepts`` are the sentences that its test tries. ``names`` says that it holds for code, too.
    """

    rule: str
    avoid: tuple[str, ...]
    prefer: str
    refuses: str
    accepts: str
    names: bool = False


class Place(NamedTuple):
    """Where a text breaks a rule: its line, from 1, the rule, and what to write instead."""

    line: int
    rule: str
    message: str


@cache
def vocabulary() -> tuple[Rule, ...]:
    """The rules, in the order of ``vocabulary.yaml``."""
    rules = yaml.safe_load(Path(__file__).with_name("vocabulary.yaml").read_text(encoding="utf-8"))
    return tuple(Rule(**{**rule, "avoid": tuple(rule["avoid"])}) for rule in rules)


def check_of(rule: Rule) -> Check:
    """The check of proselint that finds what a rule avoids, whole words in either case."""
    pattern = Padding.WORDS_IN_TEXT.format(Padding.SAFE_JOIN.format("|".join(rule.avoid)))
    return Check(ExistenceSimple(pattern), Fancy(), f"wirelake.{rule.rule}", f"{{!r}}: write {rule.prefer}")


@cache
def _checks(*, names: bool) -> tuple[Check, ...]:
    ours = tuple(check_of(rule) for rule in vocabulary() if rule.names is names)
    stock = () if names else STOCK
    return ours + tuple(check for name in stock for check in import_module(f"proselint.checks.{name}").__register__)


def places(text: str, *, names: bool = False) -> Iterator[Place]:
    """Where a prose breaks a rule of texts, or a source one of names, in the order of the rules."""
    flat, starts = _flat(text)
    for check in _checks(names=names):
        for found in check.check_with_flags(flat):
            yield Place(bisect_right(starts, found.span[0]), found.check_path, " ".join(found.message.split()))


def _flat(text: str) -> tuple[str, list[int]]:
    """A text with one space between words, and a bar for an empty line; where each line begins in it."""
    lines = [" ".join(line.split()) or "|" for line in text.split("\n")]
    return " ".join(lines), [0, *accumulate(len(line) + 1 for line in lines)]
