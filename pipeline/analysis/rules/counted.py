"""Rules that count symptoms of one subject: so many of them without a long pause are a finding.

Each is a line of :data:`RULES`: how many, for how long, and the words. What needs more than counting is a function of
its own below :mod:`pipeline.analysis.rules.kafka`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from shlex import quote
from typing import Any

from decoder.kafka.apis import KafkaError
from decoder.kafka.errors import error_name
from pipeline.analysis.codes.advice import BY_CODE, advice_of
from pipeline.analysis.codes.kafka.answers import kafka_facts
from pipeline.analysis.codes.model import CodeFacts
from pipeline.analysis.rules.episode import Episode
from pipeline.analysis.rules.kafka.brokers.fenced_leader_epoch import FencedLeaderEpoch
from pipeline.analysis.rules.kafka.clients.auth_failed import AuthFailed
from pipeline.analysis.rules.kafka.clients.throttled import QUOTA, Throttled
from pipeline.analysis.rules.kafka.clients.unknown_topic_loop import UNKNOWN_PARTITION, UNKNOWN_TOPIC, UnknownTopicLoop
from pipeline.analysis.rules.kafka.commits.commit_rejected import CommitRejected
from pipeline.analysis.rules.kafka.groups.zombie_member import ZOMBIE, ZombieMember
from pipeline.analysis.rules.kafka.producers.acks0_producer import Acks0Producer
from pipeline.analysis.rules.kafka.producers.crc_mismatch import CrcMismatch
from pipeline.analysis.rules.model import Finding, Sources
from pipeline.analysis.rules.people import times
from pipeline.analysis.rules.rule import Rule, finds
from pipeline.humanize import clock, first_of, seconds


@dataclass(frozen=True, slots=True)
class CountedRule:
    """A rule.

    Attributes:
        rule: its name, what it means.
        least: how many symptoms without a long pause make a finding.
        words: the summary.
        holds: a further condition on the episode.
        severity: of the episode; by default the rule's most severe.
        count: what must be so many; by default all symptoms.
        advice: of the episode; by default the rule's first.
    """

    rule: type[Rule]
    least: Callable[[Any], int]
    words: Callable[[Episode], str]
    holds: Callable[[Episode, Any], bool] = lambda _episode, _settings: True
    severity: Callable[[Episode, Any], str] | None = None
    count: Callable[[Episode], int] = lambda episode: episode.times
    advice: Callable[[Episode], str] | None = None

    def fires(self, episode: Episode, settings: Any) -> bool:
        """Whether the episode is a finding."""
        return self.count(episode) >= self.least(settings) and self.holds(episode, settings)


def find(sources: Sources, settings: Any) -> list[Finding]:
    """Apply all counted rules."""
    return [
        finding(
            one,
            counted.severity(one, settings) if counted.severity else counted.rule.severities[0],
            counted.words(one), counted.advice(one) if counted.advice else counted.rule.advice[0], sources,
            counted.least(settings),
        )
        for counted in COUNTED
        for one in last_of_each(e for e in sources.episodes.get(counted.rule.name, ()) if counted.fires(e, settings))
    ]  # fmt: skip


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
            **({"answers": [list(one) for one in episode.answers]} if episode.rule in _ADVISED_BY_CODE else {}),
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


def _unknown(episode: Episode) -> str:
    """What the cluster, or the broker, does not have."""
    if episode.partition is None:
        return f"topic {episode.topic}, which the cluster did not have"
    return f"{place(episode)}, which the broker did not have, although it served others of the topic"


def _only_rebalancing(episode: Episode) -> bool:
    return episode.names == ("REBALANCE_IN_PROGRESS",)


def refusal_severity(episode: Episode, settings: Any) -> str:
    """Of who was refused: a probe or a health check is no trouble, nor is who gets on in another way."""
    if episode.run < settings.refused_again_times:
        return "info"
    return "critical" if episode.healed_us is None else "warning"


def _is_in_vain(episode: Episode, settings: Any) -> bool:
    return episode.healed_us is None and episode.run_us >= settings.retry_without_success_seconds * 1_000_000


def _gets_on(episode: Episode) -> str:
    return "" if episode.healed_us is None else f"; since {clock(episode.healed_us)} UTC it gets on"


_ID_TAKEN = (error_name(KafkaError.FENCED_INSTANCE_ID),)
"""Another process has taken the group.instance.id: a restart would take it back."""


def codes_of(episode: Episode) -> tuple[CodeFacts, ...]:
    """The facts of the errors that its symptoms were answered with."""
    known = {"topic": episode.topic, "group": episode.group_id}
    return kafka_facts(episode.answers, **{name: quote(value) for name, value in known.items() if value})


def _by_code(episode: Episode) -> str:
    return advice_of(codes_of(episode))


COUNTED = (
    CountedRule(
        CommitRejected,
        lambda s: s.commit_rejected_times,
        lambda e: (
            f"The coordinator refused commits of {clients(e)} to group {e.group_id} {when(e)} ({names(e)}), and "
            f"{'none' if e.unhealed == e.times else f'{e.unhealed} of them were not'} made good since."
        ),
        lambda e, s: not _only_rebalancing(e) or e.unhealed >= s.commit_rejected_times_rebalancing,
        count=lambda e: e.unhealed,
        advice=_by_code,
    ),
    CountedRule(
        ZombieMember,
        lambda s: s.zombie_times,
        lambda e: (
            f"{clients(e)} went on as a member of group {e.group_id} for {seconds(e.run_us)} after the coordinator "
            f"had put it out: it was refused {when(e)} ({names(e)})."
        ),
        lambda e, s: e.run_us >= s.zombie_seconds * 1_000_000,
        count=lambda e: e.run,
        advice=lambda e: _by_code(e) if e.names == _ID_TAKEN else ZOMBIE,
    ),
    CountedRule(
        CrcMismatch,
        lambda _: 1,
        lambda e: f"The broker refused batches of {clients(e)} to {place(e)} as corrupt {when(e)}.",
    ),
    CountedRule(
        UnknownTopicLoop,
        lambda s: s.unknown_topic_times,
        lambda e: (
            f"{clients(e)} asked for {_unknown(e)}, {when(e)}"
            f"{'' if e.healed_us is None else f'; since {clock(e.healed_us)} UTC it uses it'}."
        ),
        severity=lambda e, s: "warning" if _is_in_vain(e, s) else "info",
        count=lambda e: e.run,
        advice=lambda e: (
            UNKNOWN_TOPIC if e.partition is None else UNKNOWN_PARTITION.format(topic=quote(e.topic or "?"))
        ),
    ),
    CountedRule(
        FencedLeaderEpoch,
        lambda s: s.stale_metadata_times,
        lambda e: f"{clients(e)} asked for {place(e)} by a leader epoch of the past {when(e)}{_gets_on(e)}.",
        lambda e, s: e.run_us >= s.stale_metadata_seconds * 1_000_000,
        severity=lambda e, _: "warning" if e.healed_us is None else "info",
        count=lambda e: e.run,
    ),
    CountedRule(
        Throttled,
        lambda s: s.throttled_times,
        lambda e: (
            f"The brokers held {clients(e)} back {when(e)}, for {e.total / 1000:.1f} s together and up to "
            f"{e.peak / 1000:.1f} s at a time ({names(e)})."
        ),
        lambda e, s: e.total >= s.throttled_seconds * 1000,
        advice=lambda e: QUOTA.format(client=quote("CLIENT_ID" if e.subject == "?" else e.subject)),
    ),
    CountedRule(
        AuthFailed,
        lambda s: s.auth_failed_times,
        lambda e: f"{e.server} refused {clients(e)} {when(e)}: {names(e)}{_gets_on(e)}.",
        severity=refusal_severity,
        advice=_by_code,
    ),
    CountedRule(
        Acks0Producer,
        lambda s: s.acks0_requests,
        lambda e: f"{clients(e)} writes without asking for an answer (acks=0): {when(e)}, to {names(e)}.",
    ),
)

_ADVISED_BY_CODE = frozenset(counted.rule.name for counted in COUNTED if BY_CODE in counted.rule.advice)

finds(*(counted.rule for counted in COUNTED))(find)
