"""Rule ``commit_rejected``: the coordinator refuses commits, also those of a client that is no member.

A consumer that uses assign() commits without a member id and without a generation. As long as the group is empty the
coordinator takes that; once a member has joined by subscribe() it answers UNKNOWN_MEMBER_ID. To rejoin, as is right for
a member that was put out, is no remedy: this client never joins.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from shlex import quote

from pydantic import Field

from pipeline.analysis.claims.kafka.commits import COMMIT_REJECTED
from pipeline.analysis.codes.advice import BY_CODE
from pipeline.analysis.rules.case.case import Case, begun
from pipeline.analysis.rules.case.entities import GROUP, TOPIC
from pipeline.analysis.rules.case.texts import LOSES, SEEN, Texts, advised
from pipeline.analysis.rules.counted import CountedRule, clients, finding, last_of_each, names, when
from pipeline.analysis.rules.episode import Episode
from pipeline.analysis.rules.format import who
from pipeline.analysis.rules.kafka.by_code import by_code
from pipeline.analysis.rules.kafka.links import STANDSTILL
from pipeline.analysis.rules.kafka.refusal_texts import fix, now
from pipeline.analysis.rules.model import Finding, Sources
from pipeline.analysis.rules.rule import Counting, Link
from pipeline.analysis.rules.thresholds import Count, RuleThresholds, Seconds
from pipeline.analysis.tables import Tables
from pipeline.humanize import first_of, listed, some

BY_HAND = (
    "Now: if {who} is an application, start it with a group.id of its own: what it has processed is not recorded in "
    "group {group}. If it is a tool that sets the group's offsets, stop the group and run it again. Fix: one way "
    "in one group: assign() for all of its processes, or subscribe() for all; a tool that resets offsets runs while "
    "the group is stopped."
)


def _rejected(case: Case) -> str:
    if case.details.get("by_hand"):
        members = listed(str(name) for name in case.details.get("subscribed", ())) or "others"
        return (
            f"{case.who} commits to group {case.group} by assign(), without being a member, while {members} joined it "
            f"by subscribe(): the coordinator refuses each of its commits ({case.kinds})"
        )
    return (
        f"The coordinator refuses the commits of {case.who} to group {case.group} ({case.kinds}): its progress is "
        "not saved, and the group reads these records again"
    )


class CommitRejected(CountedRule):
    """The coordinator refused commits, and no later commit made up for them."""

    class Thresholds(RuleThresholds):
        """When it fires."""

        commit_rejected_times: Count = Field(default=2, description="Refused commits of one client and group")
        commit_rejected_times_rebalancing: Count = Field(
            default=4, description="The same, where all were refused because of a rebalance: some are normal"
        )
        commit_repair_seconds: Seconds = Field(
            default=10.0,
            description="A refused commit is made good if its member, or the partition's owner, has one accepted "
            "within so long; at least three of its own periods",
        )

    name = "commit_rejected"
    title = "Commits rejected"
    protocol = "kafka"
    about = "commits"
    severities = ("critical",)
    reads = ("exchanges", "events", "states")
    advice = (BY_CODE, BY_HAND)
    urgency = LOSES
    texts = Texts(
        headline=_rejected,
        now=lambda case: begun(advised(case, "now")) if case.details.get("by_hand") else now(case),
        fix=lambda case: begun(advised(case, "fix")) if case.details.get("by_hand") else fix(case),
        reasoning=f"{SEEN}these are the coordinator's own answers.",
    )
    counting = Counting(by_host=True, is_refused=True)
    records_come_again = True
    effects = (
        Link(("rewound", "offset_reset"), (GROUP,), "what was refused is read again"),
        Link(STANDSTILL, (GROUP, TOPIC), "what is not recorded counts as waiting"),
    )
    claims = COMMIT_REJECTED

    @classmethod
    def least(cls, settings: Thresholds) -> int:
        """This many symptoms."""
        return settings.commit_rejected_times

    @classmethod
    def summary(cls, episode: Episode) -> str:
        """Who was refused how often."""
        unhealed = "none" if episode.unhealed == episode.times else f"{episode.unhealed} of them were not"
        return (
            f"The coordinator refused commits of {clients(episode)} to group {episode.group_id} {when(episode)} "
            f"({names(episode)}), and {unhealed} made good since."
        )

    @classmethod
    def holds(cls, episode: Episode, settings: Thresholds) -> bool:
        """Some refusals because of a rebalance are normal."""
        is_rebalancing = episode.names == ("REBALANCE_IN_PROGRESS",)
        return not is_rebalancing or episode.unhealed >= settings.commit_rejected_times_rebalancing

    @classmethod
    def count(cls, episode: Episode) -> int:
        """Those that no later commit made up for."""
        return episode.unhealed

    @classmethod
    def advice_on(cls, episode: Episode) -> str:
        """By their error codes."""
        return by_code(episode)

    @classmethod
    def detect(cls, sources: Sources, settings: Thresholds) -> Iterator[Finding]:
        """What clients that are no members commit, and all else that is refused."""
        refused = [one for one in sources.episodes.get(cls.name, ()) if cls.fires(one, settings)]
        outside = _outside(last_of_each(refused), sources.tables)
        members = _members(outside, sources.tables)
        found = [_finding(one, some, sources, settings) for one, some in zip(outside, members, strict=True)]
        known = {one.finding_id for one in found}
        yield from found
        for one in super().detect(sources, settings):
            if one.finding_id not in known:
                yield one


_OUTSIDE = """
    SELECT bool_and(coalesce(member_id, '') = '' AND coalesce(generation, -1) < 0) AS outside
    FROM (SELECT unnest($ids) AS exchange_id) AS own JOIN events USING (exchange_id)
    WHERE kind LIKE '%commit_rejected'
"""
_MEMBERS = """
    SELECT client_id, host_of(client) AS host FROM states
    WHERE group_id = $group AND cluster = $cluster AND error_code = 0 AND kind IN ('join', 'heartbeat')
        AND epoch_us(ts) BETWEEN $first_us AND $last_us
    GROUP BY ALL ORDER BY ALL
"""
_AROUND_US = 60_000_000
"""Members heartbeat within this time."""


def _outside(episodes: Sequence[Episode], tables: Tables) -> list[Episode]:
    """Those of clients that name no member."""
    answers = tables.of_each(_OUTSIDE, [{"ids": list(one.evidence)} for one in episodes])
    return [one for one, (row,) in zip(episodes, answers, strict=True) if row.outside]


def _members(episodes: Sequence[Episode], tables: Tables) -> list[list[str]]:
    """Who is a member meanwhile, ``client_id at host``, of each."""
    around = [
        {
            "group": one.group_id, "cluster": one.cluster, "first_us": one.first_us - _AROUND_US,
            "last_us": one.last_us + _AROUND_US,
        }
        for one in episodes
    ]  # fmt: skip
    return [[who(row.client_id, row.host) for row in rows] for rows in tables.of_each(_MEMBERS, around)]


def _finding(episode: Episode, members: list[str], sources: Sources, settings: CommitRejected.Thresholds) -> Finding:
    own = first_of(episode.clients)
    others = f"{some(members)} joined by subscribe()" if members else "others have joined by subscribe()"
    summary = (
        f"{own} commits offsets of group {episode.group_id} without being a member (assign()), and {others}: the "
        f"coordinator refused its commits {when(episode)} ({', '.join(episode.names)})."
    )
    advice = BY_HAND.format(who=own, group=quote(episode.group_id or "?"))
    made = finding(episode, "critical", summary, advice, sources, CommitRejected.least(settings))
    return replace(made, details={**made.details, "by_hand": True, "subscribed": members})
