"""Rules that count symptoms of one subject: this many of them without a long pause are a finding."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from pipeline.analysis.codes.advice import BY_CODE
from pipeline.analysis.rules.episode import Episode
from pipeline.analysis.rules.format import times
from pipeline.analysis.rules.model import Finding, Sources
from pipeline.analysis.rules.rule import Rule, rule_named
from pipeline.humanize import clock, first_of


class CountedRule(Rule, is_base=True):
    """A rule that counts symptoms of one subject."""

    @classmethod
    def least(cls, settings: Any) -> int:
        """How many symptoms without a long pause make a finding."""
        del settings
        return 1

    @classmethod
    def summary(cls, episode: Episode) -> str:
        """The finding's summary."""
        raise NotImplementedError

    @classmethod
    def holds(cls, episode: Episode, settings: Any) -> bool:
        """A further condition on the episode."""
        del episode, settings
        return True

    @classmethod
    def severity_of(cls, episode: Episode, settings: Any) -> str:
        """Of the episode; by default the rule's most severe."""
        del episode, settings
        return cls.severities[0]

    @classmethod
    def count(cls, episode: Episode) -> int:
        """What must be this many; by default all symptoms."""
        return episode.times

    @classmethod
    def advice_on(cls, episode: Episode) -> str:
        """What to do; by default the rule's first advice."""
        del episode
        return cls.advice[0]

    @classmethod
    def fires(cls, episode: Episode, settings: Any) -> bool:
        """Whether the episode is a finding."""
        return cls.count(episode) >= cls.least(settings) and cls.holds(episode, settings)

    @classmethod
    def detect(cls, sources: Sources, settings: Any) -> Iterable[Finding]:
        """A finding for the last episode of each subject that has enough symptoms."""
        least = cls.least(settings)
        return [
            finding(one, cls.severity_of(one, settings), cls.summary(one), cls.advice_on(one), sources, least)
            for one in last_of_each(e for e in sources.episodes.get(cls.name, ()) if cls.fires(e, settings))
        ]


def last_of_each(episodes: Iterable[Episode]) -> list[Episode]:
    """Of each subject in its cluster the last episode, with those of other hosts at the time, and what was before.

    It is equal to the one that was given, but of rules that count each host apart: only there do others come in.
    """
    last: dict[tuple[str, str], Episode] = {}
    for episode in sorted(episodes, key=lambda e: (e.last_us, e.server), reverse=True):
        place = episode.cluster, episode.subject
        known = last.setdefault(place, episode)
        if known is episode:
            continue
        since_us = known.before[0][0] if known.before else known.first_us
        if not known.before and episode.last_us >= known.first_us:
            last[place] = known.with_another(episode)
        elif episode.last_us >= since_us:  # another host's, at the time of one before
            first = min(since_us, episode.first_us), known.before[0][1]
            last[place] = replace(known, before=(first, *known.before[1:]))
        else:
            last[place] = replace(known, before=((episode.first_us, episode.last_us), *known.before))
    return list(last.values())


def finding(episode: Episode, severity: str, summary: str, advice: str, sources: Sources, least: int = 1) -> Finding:
    """The finding that an episode makes; ``least`` is how many symptoms were enough.

    It is over once its client was seen to succeed. Its ``details`` say how often it came before
    (``recurrences``), and from when to when all of it was (``first_of_all_us``, ``last_of_all_us``).
    """
    is_healed = episode.healed_us is not None
    return Finding(
        rule=episode.rule, severity=severity, subject=episode.subject,
        state="resolved" if is_healed
        else sources.state(episode.cluster, episode.first_us, episode.last_us, episode.times),
        cluster=episode.cluster, topic=episode.topic, partition=episode.partition, group_id=episode.group_id,
        first_us=episode.first_us, last_us=episode.last_us, summary=summary + again(episode), advice=advice,
        evidence=episode.evidence,
        details={
            "times": episode.times, "clients": list(episode.clients), "kinds": list(episode.names),
            "server": episode.server, "total": episode.total, "peak": episode.peak,
            "enough_us": episode.times_us[min(least, len(episode.times_us)) - 1],
            "healed_us": episode.healed_us, "recurrences": len(episode.before),
            "first_of_all_us": episode.before[0][0] if episode.before else episode.first_us,
            "last_of_all_us": episode.last_us,
            **({"answers": [list(one) for one in episode.answers]} if _is_advised_by_code(episode.rule) else {}),
        },
    )  # fmt: skip


def again(episode: Episode) -> str:
    """How often it came before, for people; a sentence behind others."""
    if not episode.before:
        return ""
    often = "once" if len(episode.before) == 1 else f"{len(episode.before)} times"
    return f" It came {often} before, first at {clock(episode.before[0][0])} UTC."


def when(episode: Episode) -> str:
    """How often and when, for people."""
    return times(episode.times, episode.first_us, episode.last_us)


def names(episode: Episode) -> str:
    """The kinds of its symptoms, for people."""
    return ", ".join(episode.names)


def clients(episode: Episode) -> str:
    """Who showed it, for people."""
    return first_of(episode.clients)


def place(episode: Episode) -> str:
    """Topic and partition, for people."""
    return episode.topic or "?" if episode.partition is None else f"{episode.topic}-{episode.partition}"


def refusal_severity(episode: Episode, settings: Any) -> str:
    """Of who was refused: a probe or a health check is no trouble, nor is who gets on in another way."""
    if episode.run < settings.refused_again_times:
        return "info"
    return "critical" if episode.healed_us is None else "warning"


def gets_on(episode: Episode) -> str:
    """Since when its client succeeds, for people; a clause behind others."""
    return "" if episode.healed_us is None else f"; since {clock(episode.healed_us)} UTC it gets on"


def _is_advised_by_code(name: str) -> bool:
    rule = rule_named(name)
    return issubclass(rule, CountedRule) and BY_CODE in rule.advice
