"""A rule is one class: what it is called, reads and goes by, what it finds, what follows from it, and its texts.

A subclass of :class:`Rule` in a module below ``rules``, or below a package that an installed protocol names, registers
itself. It finds by its own ``detect``, or by functions that it names in ``found_by``: rules that name the same function
share its pass over the data.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from inspect import get_annotations
from itertools import chain
from types import MappingProxyType
from typing import Any, ClassVar

from pydantic.fields import FieldInfo

from decoder.protocols import protocols
from pipeline.analysis.claims.model import Claim
from pipeline.analysis.rules.case.case import Case
from pipeline.analysis.rules.case.texts import OVER, SLOW, STAYS, Texts
from pipeline.analysis.rules.case.tree import Edge
from pipeline.analysis.rules.model import SEVERITIES, Finding, Sources
from pipeline.analysis.rules.shown_by import ShownBy
from pipeline.analysis.rules.thresholds import RuleThresholds

Find = Callable[[Sources, Any], Iterable[Finding]]

OF_GROUP, OF_CLIENT, OF_SERVER, OF_CLUSTER, OF_TOPIC, OF_NAMESPACE, OF_TRANSACTION, OF_ALL, OF_AGENT, OF_SUBJECT = (
    "group", "client", "server", "cluster", "topic", "namespace", "transaction", "all", "agent", "subject",
)  # fmt: skip
_OF_ALL = frozenset(RuleThresholds.__mro__)
_STATED = ("name", "title", "protocol", "severities", "advice")
"""What each rule must state."""


@dataclass(frozen=True, slots=True)
class Link:
    """Rules that are linked with the one that states it, as its effects or its causes.

    Attributes:
        rules: their names.
        shares: the kinds of names (pipeline.analysis.rules.case.entities) that both findings must share,
            beside their cluster.
        because: how the one leads to the other, as the end of "the second follows from the first: …".
    """

    rules: tuple[str, ...]
    shares: tuple[str, ...]
    because: str


@dataclass(frozen=True, slots=True)
class Counting:
    """How symptoms of a rule are cut into episodes (pipeline.analysis.rules.episodes).

    Attributes:
        by_host: each host is counted apart: members of one group often share a client id, their library's default.
        is_refused: it is about what is refused each time: a client that asks every five minutes, or ten, is refused on
            and on, so that the pause that ends an episode is longer.
        is_refused_on_connection: likewise on one connection alone: each process that ends may leave a refusal behind.
        pause_setting: the threshold whose double is the longest pause, s; None: ``episode_pause_seconds``.
        keeps_each: the rule looks at each symptom: the evidence is cut where enough is shown, and must decide nothing.
    """

    by_host: bool = False
    is_refused: bool = False
    is_refused_on_connection: bool = False
    pause_setting: str | None = None
    keeps_each: bool = False


class Rule:
    """A rule; its docstring says what is wrong when it fires. It is never made an instance of.

    It states ``detect`` or ``found_by``, or both. One that inherits ``detect`` (pipeline.analysis.rules.counted) is
    applied after all others.

    Attributes:
        name: as in ``gold.findings``; a page of this name is in ``docs/rules``.
        title: the same as a person says it.
        protocol: of what it speaks: as in ``silver.exchanges``, or ``capture`` for the capture itself
            and for what is no one protocol's.
        about: under which heading lists show it, e.g. ``membership``; by default its protocol's title.
        severities: those that its findings may have, the most severe first.
        meaning: what is wrong then, in a sentence; by default its docstring.
        reads: the tables that it looks at (see Sources.tables).
        found_by: functions that find it, each in one pass over the data, beside ``detect``; those that other rules name
            as well find these in the same pass. Each takes the sources and the thresholds of all rules.
        advice: what to do, all texts that its findings may give: ``Now: … Fix: …``, with ``{placeholders}`` where
            names are filled in. Where one is put together, its parts, which begin with ``Now:`` or ``Fix:``.
        texts: how an incident with this root is worded; None: as its findings word it.
        shown_by: what of the data shows its findings.
        urgency: what a person must do first (pipeline.analysis.rules.case.texts): of equal severity the lesser first.
        effects: what may follow from it.
        causes: what it may follow from, beside what those rules state as their effects.
        claims: each sentence that its findings may state, with the evidence that it needs.
        gathered: what findings share that one person repairs at once; None: their group, and what has none its subject.
        subject: the kinds of names that a subject consists of, from the last slash on the second; None: no name.
        counting: how its symptoms are counted.
        unit: what ``times`` counts, where that is not what the headline says.
        is_of_capture: whether it is about what the capture lost: no incident can state that for certain.
        is_silence: whether its story is that something did not come.
        is_at_last_stable_offset: whether its story is that readers get nothing beyond the last stable offset.
        records_come_again: whether the records that it counts do not wait, but come again.
        is_growing_while_open: whether more records come to wait as long as it holds.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    protocol: ClassVar[str]
    about: ClassVar[str] = ""
    severities: ClassVar[tuple[str, ...]]
    meaning: ClassVar[str]
    reads: ClassVar[tuple[str, ...]] = ("exchanges",)
    found_by: ClassVar[tuple[Find, ...]] = ()
    advice: ClassVar[tuple[str, ...]]
    texts: ClassVar[Texts | None] = None
    shown_by: ClassVar[ShownBy] = ShownBy()
    urgency: ClassVar[int] = SLOW
    effects: ClassVar[tuple[Link, ...]] = ()
    causes: ClassVar[tuple[Link, ...]] = ()
    claims: ClassVar[tuple[Claim, ...]] = ()
    gathered: ClassVar[str | None] = None
    subject: ClassVar[tuple[str | None, ...]] = ()
    counting: ClassVar[Counting] = Counting()
    unit: ClassVar[str] = "times"
    is_of_capture: ClassVar[bool] = False
    is_silence: ClassVar[bool] = False
    is_at_last_stable_offset: ClassVar[bool] = False
    records_come_again: ClassVar[bool] = False
    is_growing_while_open: ClassVar[bool] = False

    class Thresholds(RuleThresholds):
        """The settings that decide when it fires, each with its unit in the description or the name."""

    def __init_subclass__(cls, *, is_base: bool = False, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if is_base:
            return
        if missing := [name for name in _STATED if not hasattr(cls, name)]:
            raise TypeError(f"rule {cls.__name__} does not state its {', '.join(missing)}")
        if not set(cls.severities) <= set(SEVERITIES):
            raise TypeError(f"rule {cls.name}: its severities are none of {', '.join(SEVERITIES)}")
        known = _RULES.setdefault(cls.name, cls)
        if (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
            raise TypeError(f"two rules are called {cls.name}: {known.__module__}, {cls.__module__}")
        _RULES[cls.name] = cls
        if "meaning" not in cls.__dict__:
            cls.meaning = " ".join((cls.__doc__ or cls.title).partition("\n\n")[0].split())
        if not (cls.found_by or _has_detect(cls)):
            raise TypeError(f"rule {cls.name} states neither detect nor found_by: nothing finds it")

    @classmethod
    def detect(cls, sources: Sources, settings: Any) -> Iterable[Finding]:
        """What the rule finds in a pass of its own; a rule that has ``found_by`` alone needs none."""
        raise NotImplementedError

    @classmethod
    def texts_of(cls, case: Case) -> Texts | None:
        """How a case is worded; None: as its findings word it."""
        is_covered = cls.texts is not None and (cls.texts.covers_info or case.lead.row["severity"] != "info")
        return cls.texts if is_covered else None

    @classmethod
    def is_of_brokers(cls, case: Case) -> bool:
        """Whether the cause are brokers, and not the clients that a case names."""
        del case
        return False

    @classmethod
    def is_lasting(cls, case: Case) -> bool:
        """Whether something is left to be done of a case when it is over."""
        del case
        return False

    @classmethod
    def once_over(cls, case: Case, now: str) -> str:
        """What is to be done of a case that is over.

        Args:
            case: a case with nothing ongoing any more.
            now: what was to be done as long as it was.
        """
        return f"{STAYS if cls.is_lasting(case) else OVER} {now[:1].lower()}{now[1:]}"

    @classmethod
    def sql(cls, case: Case) -> str | None:
        """A query that shows a case, where no offsets do; None: its exchanges do."""
        del case
        return None


def settings_of(rule: type[Rule]) -> Mapping[str, FieldInfo]:
    """The thresholds that a rule states, with type, bounds, default and description."""
    kinds = [kind for kind in rule.Thresholds.__mro__[::-1] if kind not in _OF_ALL]
    own = dict.fromkeys(name for kind in kinds for name in get_annotations(kind))
    return {name: rule.Thresholds.model_fields[name] for name in own if name in rule.Thresholds.model_fields}


@dataclass(frozen=True, slots=True)
class Family:
    """A pass over the data, and the rules that state that it finds them."""

    rules: tuple[type[Rule], ...]
    find: Find
    is_last: bool = False


_RULES: dict[str, type[Rule]] = {}


def _has_detect(rule: type[Rule]) -> bool:
    return any("detect" in vars(kind) for kind in rule.__mro__[: rule.__mro__.index(Rule)])


def families_of(rules: Iterable[type[Rule]]) -> tuple[Family, ...]:
    """The passes that some rules state, by their modules' names; those that only count symptoms come last.

    What two of them find of one subject is reported by the first: it has looked more closely.
    """
    found: dict[tuple[bool, int, str, str], Family] = {}
    shared: defaultdict[Find, list[type[Rule]]] = defaultdict(list)
    for rule in rules:
        for find in rule.found_by:
            shared[find].append(rule)
        if _has_detect(rule):
            is_last = "detect" not in vars(rule)
            found[_order(rule, is_last=is_last)] = Family((rule,), rule.detect, is_last)
    for find, some in shared.items():
        found[_order(find)] = Family(tuple(some), find)
    return tuple(found[key] for key in sorted(found))


def _order(what: Find | type[Rule], *, is_last: bool = False) -> tuple[bool, int, str, str]:
    return is_last, -what.__module__.count("."), what.__module__, what.__qualname__


@lru_cache(maxsize=1)
def families() -> tuple[Family, ...]:
    """The passes of all rules, in the order in which they are applied (see :func:`families_of`)."""
    return families_of(all_rules())


@lru_cache(maxsize=1)
def rules_by_name() -> Mapping[str, type[Rule]]:
    """All rules by name, in its order, those of installed protocols among them."""
    for place in ("pipeline.analysis.rules", *chain.from_iterable(one.rules for one in protocols().values())):
        package = importlib.import_module(place)
        for module in pkgutil.walk_packages(getattr(package, "__path__", ()), f"{place}."):
            importlib.import_module(module.name)
    return MappingProxyType({name: _RULES[name] for name in sorted(_RULES)})


def all_rules() -> tuple[type[Rule], ...]:
    """All rules by name."""
    return tuple(rules_by_name().values())


def rule_named(name: str) -> type[Rule]:
    """The rule of a finding; of one that is not installed any more, one that states nothing."""
    return rules_by_name().get(name, Rule)


@lru_cache(maxsize=1)
def edges() -> tuple[Edge, ...]:
    """What may follow from what, of all rules; what a rule states first counts first."""
    effects = (
        Edge(rule.name, effect, link.shares, link.because)
        for rule in all_rules() for link in rule.effects for effect in link.rules
    )  # fmt: skip
    causes = (
        Edge(cause, rule.name, link.shares, link.because)
        for rule in all_rules() for link in rule.causes for cause in link.rules
    )  # fmt: skip
    return tuple(dict.fromkeys(chain(effects, causes)))


@lru_cache(maxsize=1)
def _by_cause() -> Mapping[str, tuple[Edge, ...]]:
    found: defaultdict[str, list[Edge]] = defaultdict(list)
    for edge in edges():
        found[edge.cause].append(edge)
    return {cause: tuple(some) for cause, some in found.items()}


def edges_from(cause: str) -> tuple[Edge, ...]:
    """What may follow from a rule."""
    return _by_cause().get(cause, ())
