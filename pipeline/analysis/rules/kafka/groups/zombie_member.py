"""Rule ``zombie_member``."""

from __future__ import annotations

from pydantic import Field

from decoder.kafka.apis import KafkaError
from decoder.kafka.errors import error_name
from pipeline.analysis.claims.kafka.members import ZOMBIE_MEMBER
from pipeline.analysis.codes.advice import BY_CODE
from pipeline.analysis.rules.case.entities import CLIENT, GROUP
from pipeline.analysis.rules.case.texts import LOSES, SEEN, Texts
from pipeline.analysis.rules.counted import CountedRule, clients, names, when
from pipeline.analysis.rules.episode import Episode
from pipeline.analysis.rules.kafka import refusal_texts
from pipeline.analysis.rules.kafka.by_code import by_code
from pipeline.analysis.rules.kafka.thresholds import ZOMBIE_TIMES
from pipeline.analysis.rules.rule import Counting, Link
from pipeline.analysis.rules.thresholds import Count, RuleThresholds, Seconds
from pipeline.humanize import seconds

ZOMBIE = (
    "Now: restart the client, and see that what it works on is not written twice. Fix: it was too slow "
    "(max.poll.interval.ms, max.poll.records), lost its session (session.timeout.ms), or another took its "
    "group.instance.id: let it poll, so that it rejoins, after such an error."
)

_ID_TAKEN = error_name(KafkaError.FENCED_INSTANCE_ID)
"""Another process has the group.instance.id: a restart would take it back."""


class ZombieMember(CountedRule):
    """A client continues as a member of a group that has put it out."""

    class Thresholds(RuleThresholds):
        """When it fires."""

        zombie_times: Count = ZOMBIE_TIMES
        zombie_seconds: Seconds = Field(default=1.0, description="For how long")

    name = "zombie_member"
    title = "Zombie member"
    protocol = "kafka"
    about = "membership"
    severities = ("warning",)
    reads = ("exchanges", "states", "events")
    advice = (ZOMBIE, BY_CODE)
    urgency = LOSES
    texts = Texts(
        headline=lambda case: (
            f"{case.who} kept working for group {case.group} after the coordinator removed it ({case.kinds}): "
            "its work may be done twice"
        ),
        now=lambda case: (
            refusal_texts.now(case)
            if case.kinds == _ID_TAKEN
            else f"Restart {case.clients}, and check whether its output was written twice: group {case.group} "
            "continued without it."
        ),
        fix=lambda case: (
            refusal_texts.fix(case)
            if case.kinds == _ID_TAKEN
            else "Keep the work between two polls below max.poll.interval.ms (lower max.poll.records), give each "
            "instance a group.instance.id of its own, and stop working on UNKNOWN_MEMBER_ID and ILLEGAL_GENERATION."
        ),
        reasoning=f"{SEEN}each answer said so.",
    )
    counting = Counting(by_host=True, is_refused_on_connection=True)
    effects = (
        Link(("commit_rejected",), (GROUP, CLIENT), "a removed member is refused"),
        Link(("competing_committers",), (GROUP, CLIENT), "who was put out of the group commits on"),
        Link(("stuck_commit", "commit_regressed"), (GROUP, CLIENT), "who was put out of the group commits on"),
    )
    claims = ZOMBIE_MEMBER

    @classmethod
    def least(cls, settings: Thresholds) -> int:
        """This many symptoms."""
        return settings.zombie_times

    @classmethod
    def summary(cls, episode: Episode) -> str:
        """Who continued for how long."""
        return (
            f"{clients(episode)} continued as a member of group {episode.group_id} for {seconds(episode.run_us)} "
            f"after the coordinator had put it out: it was refused {when(episode)} ({names(episode)})."
        )

    @classmethod
    def holds(cls, episode: Episode, settings: Thresholds) -> bool:
        """For so long."""
        return episode.run_us >= settings.zombie_seconds * 1_000_000

    @classmethod
    def count(cls, episode: Episode) -> int:
        """Without a success between them."""
        return episode.run

    @classmethod
    def advice_on(cls, episode: Episode) -> str:
        """By the error code where another process has taken its id."""
        return by_code(episode) if episode.names == (_ID_TAKEN,) else ZOMBIE
