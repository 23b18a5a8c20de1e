"""The words for a root's rule: a line that names source and affected, what to do, and what it rests on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pipeline.analysis.rules.case.case import ADVICE, Case
from pipeline.humanize import listed

Say = Callable[[Case], str]

STANDS, LOSES, REFUSED, SLOW, WASTES, LATER = 0, 10, 20, 30, 40, 50
"""What a person must do first: somebody stands still or is set back; records are lost or read twice; somebody is
refused; somebody is slow; something is wasted; something will break one day."""

SEEN = "Seen on the wire: "
OVER, STAYS = "It is over. If it comes again:", "It is over, but what it did stays:"
"""What instructions begin with once it is over."""


def not_why(whose: str) -> str:
    """Of what is seen without its reason."""
    return f"Why is not on the wire: look in the {whose}'s log."


WHY_IS_NOT = not_why("client")


def clients(case: Case) -> str:
    """Who is to be looked at."""
    return case.who if case.callers else ""


def nobody(_case: Case) -> str:
    """No client is named."""
    return ""


def groups(case: Case) -> str:
    """Consumer groups, or what is written to."""
    return named_groups(case.groups) if case.groups else topics(case)


def named_groups(names: Sequence[str]) -> str:
    """``group a``, ``groups a and b``."""
    return f"{'group' if len(names) == 1 else 'groups'} {listed(names)}"


def own_clients(case: Case) -> str:
    """Those who cause it are those who suffer."""
    return clients(case)


def topic_names(case: Case) -> list[str]:
    """All topics that the root is about."""
    return sorted({str(one.row["topic"]) for one in case.bundle.findings if one.row.get("topic")}) or ["TOPIC"]


def topics(case: Case) -> str:
    """Topics and partitions."""
    return "" if case.places == "?" else case.places


def brokers(case: Case) -> str:
    """Brokers that do not do their part."""
    names = sorted(entity[-1] for entity in case.bundle.named.get("server", ()))
    return f"{'broker' if len(names) == 1 else 'brokers'} {listed(names)}" if names else ""


def server(case: Case) -> str:
    """The server that the lead is about."""
    return str(case.details.get("server") or case.lead.row["cluster"])


def sufferers(case: Case) -> str:
    """Groups and clients that wait for it."""
    return " and ".join(one for one in (named_groups(case.groups) if case.groups else "", clients(case)) if one)


def advised(case: Case, part: str) -> str:
    """What the lead's advice says to do ``now``, or as a ``fix``."""
    return part_of(str(case.lead.row["advice"]), part)


def part_of(advice: str, part: str) -> str:
    """What an advice says to do ``now``, or as a ``fix``; all of it where it has no such parts."""
    found = ADVICE.match(advice)
    return found[part] if found else advice


def text_of(text: str | Say, case: Case) -> str:
    """What always holds, or what holds of this case."""
    return text if isinstance(text, str) else text(case)


def never(_case: Case) -> bool:
    """Of no case."""
    return False


@dataclass(frozen=True, slots=True)
class Texts:
    """How an incident is worded.

    Attributes:
        headline: a line without its end mark; from it alone one knows whom to look at.
        now: what stops the damage.
        fix: what keeps it from coming again, with the properties' names.
        reasoning: what the root rests on.
        source, affected: names.
        is_cause: whether what made it so is seen, not only that something is wrong.
        is_likely: whether it only looks like that, as by what is usual.
        covers_info: whether they hold for findings that are for information; else those speak for themselves.
    """

    headline: Say
    now: Say
    fix: str | Say
    reasoning: str | Say
    source: Say = clients
    affected: Say = groups
    is_cause: Callable[[Case], bool] = lambda _case: True
    is_likely: Callable[[Case], bool] = lambda _case: False
    covers_info: bool = False
