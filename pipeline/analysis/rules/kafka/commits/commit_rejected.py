"""Rule ``commit_rejected``."""

from __future__ import annotations

from pydantic import Field

from pipeline.analysis.codes.advice import BY_CODE
from pipeline.analysis.rules.case.case import Case, begun
from pipeline.analysis.rules.case.entities import GROUP, TOPIC
from pipeline.analysis.rules.case.texts import LOSES, SEEN, Texts, advised
from pipeline.analysis.rules.counted import CountedRule, clients, names, when
from pipeline.analysis.rules.episode import Episode
from pipeline.analysis.rules.kafka.by_code import by_code
from pipeline.analysis.rules.kafka.links import STANDSTILL
from pipeline.analysis.rules.kafka.refusal_texts import fix, now
from pipeline.analysis.rules.rule import Counting, Link
from pipeline.analysis.rules.thresholds import Count, RuleThresholds, Seconds
from pipeline.humanize import listed

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
    """The coordinator refused commits, and nobody made them good."""

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

    @classmethod
    def least(cls, settings: Thresholds) -> int:
        """So many symptoms."""
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
        """Those that nobody made good."""
        return episode.unhealed

    @classmethod
    def advice_on(cls, episode: Episode) -> str:
        """By their error codes."""
        return by_code(episode)
