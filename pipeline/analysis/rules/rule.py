"""A rule: its name, what it means, its thresholds; and the function that finds.

A module under ``rules`` describes its rules and registers the function that applies them, by :func:`finds`. Rules that
share one pass over the data share a function. Nothing else has to know of a module.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain

from pydantic.fields import FieldInfo

from decoder.protocols import protocols
from pipeline.analysis.rules.model import Finding, Sources
from pipeline.finding_settings import FindingSettings

Find = Callable[[Sources, FindingSettings], Iterable[Finding]]


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule.

    Attributes:
        name: as in ``gold.findings``; a page of this name is in ``docs/rules``.
        protocol: of what it speaks: as in ``silver.exchanges``, or ``capture`` for the capture itself
            and for what is no one protocol's.
        severities: those that its findings may have, the most severe first.
        meaning: what is wrong then, in a line.
        thresholds: the settings (pipeline.finding_settings.FindingSettings) that decide when it fires.
        reads: the tables that it looks at (see Sources.tables).
        advice: what to do, all texts that its findings may give: ``Now: … Fix: …``, with ``{placeholders}`` where
            names are filled in. Where one is put together, its parts, which begin with ``Now:`` or ``Fix:``.
    """

    name: str
    protocol: str
    severities: tuple[str, ...]
    meaning: str
    thresholds: tuple[str, ...] = ()
    reads: tuple[str, ...] = ("exchanges",)
    advice: tuple[str, ...] = field(kw_only=True)

    @property
    def settings(self) -> Mapping[str, FieldInfo]:
        """Its thresholds with type, bounds, default and description; the unit is in the description or the name.

        Raises:
            ValueError: one of them is no setting.
        """
        known = FindingSettings.model_fields
        if unknown := [name for name in self.thresholds if name not in known]:
            raise ValueError(f"rule {self.name} goes by {', '.join(unknown)}: no such setting in FindingSettings")
        return {name: known[name] for name in self.thresholds}


@dataclass(frozen=True, slots=True)
class Family:
    """Rules that share a pass over the data."""

    rules: tuple[Rule, ...]
    find: Find


_REGISTERED: dict[str, Family] = {}


def finds(*rules: Rule) -> Callable[[Find], Find]:
    """Register a function as the one that applies some rules.

    Raises:
        ValueError: one of them goes by what is no setting.
    """
    for rule in rules:
        _ = rule.settings

    def register(find: Find) -> Find:
        _REGISTERED[f"{find.__module__}.{find.__name__}"] = Family(rules, find)
        return find

    return register


@lru_cache(maxsize=1)
def families() -> tuple[Family, ...]:
    """All families of rules by their modules' names; those that count symptoms of any protocol come last.

    What two of them find of one subject is reported by the first: it has looked more closely.
    """
    for place in ("pipeline.analysis.rules", *chain.from_iterable(one.rules for one in protocols().values())):
        package = importlib.import_module(place)
        for module in pkgutil.walk_packages(getattr(package, "__path__", ()), f"{place}."):
            importlib.import_module(module.name)
    in_order = sorted(_REGISTERED.items(), key=lambda item: (-item[0].count("."), item[0]))
    return tuple(family for _, family in in_order)


def all_rules() -> tuple[Rule, ...]:
    """All rules by name."""
    found = {rule.name: rule for family in families() for rule in family.rules}
    return tuple(found[name] for name in sorted(found))
