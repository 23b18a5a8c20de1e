"""What the rules of a protocol share: worked out once, before any of them is applied."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from pipeline.analysis.cluster_catalog import ClusterCatalog
from pipeline.analysis.rules.episode import Shown
from pipeline.analysis.rules.model import Finding
from pipeline.analysis.tables import Tables

T = TypeVar("T")


class Share(Protocol):
    """Does a part of the work; of one that fails nothing is known, and no rule has seen all that it should."""

    def __call__(self, what: str, work: Any, nothing: type[T]) -> T:
        """What ``work`` gives; ``nothing()`` if it fails."""


@dataclass(slots=True)
class Ground:
    """What rules share, as far as it is worked out.

    Attributes:
        tables, catalog: see Sources.
        settings: thresholds of all rules.
        share: does a part of the work.
        ends, server_ends: see Sources; each protocol adds its own.
        known: what else Sources has, by the names of its fields.
    """

    tables: Tables
    catalog: ClusterCatalog
    settings: Any
    share: Share
    ends: dict[str, int]
    server_ends: dict[str, int] = field(default_factory=dict)
    known: dict[str, Any] = field(default_factory=dict)


class Groundwork:
    """What the rules of a protocol share. A subclass in a module beside them registers itself."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        _REGISTERED[cls.__module__] = cls

    @classmethod
    def prepare(cls, ground: Ground) -> None:
        """Work out what symptoms and rules need."""

    @classmethod
    def symptoms(cls, ground: Ground) -> Iterable[Shown]:
        """Symptoms in its exchanges, which are cut into episodes together with those of other protocols."""
        del ground
        return ()

    @classmethod
    def described(cls, findings: Sequence[Finding], tables: Tables) -> Sequence[Finding]:
        """Findings of any rules with what is known of their clients."""
        del tables
        return findings


_REGISTERED: dict[str, type[Groundwork]] = {}


def groundworks() -> Mapping[str, type[Groundwork]]:
    """Those of all protocols whose rules are loaded, by their modules, in its order."""
    return dict(sorted(_REGISTERED.items()))
