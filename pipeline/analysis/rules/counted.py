"""Rules that count symptoms of one subject: so many of them without a long pause are a finding.

Each is a line of :data:`RULES`: how many, for how long, and the words. What needs more than counting is a function of
its own in :mod:`pipeline.analysis.rules.kafka.clients` or :mod:`pipeline.analysis.rules.kafka.producers`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from pipeline.analysis.rules.episodes import Episode
from pipeline.analysis.rules.kafka.shared import CRC_MISMATCH
from pipeline.analysis.rules.model import Finding, Sources, clock, seconds
from pipeline.analysis.rules.mongodb.commands import FAILED, RETRIES, SLOW
from pipeline.analysis.rules.rule import Rule, finds
from pipeline.settings import FindingSettings


@dataclass(frozen=True, slots=True)
class CountedRule:
    """A rule.

    Attributes:
        rule: its name, what it means; it has one severity.
        least: how many symptoms without a long pause make a finding.
        words: the summary.
        holds: a further condition on the episode.
    """

    rule: Rule
    advice: str
    least: Callable[[FindingSettings], int]
    words: Callable[[Episode], str]
    holds: Callable[[Episode, FindingSettings], bool] = lambda _episode, _settings: True


def find(sources: Sources, settings: FindingSettings) -> list[Finding]:
    """Apply all counted rules."""
    return [
        finding(one, counted.rule.severities[0], counted.words(one), counted.advice, sources, counted.least(settings))
        for counted in COUNTED
        for one in last_of_each(
            e
            for e in sources.episodes.get(counted.rule.name, ())
            if e.times >= counted.least(settings) and counted.holds(e, settings)
        )
    ]


def last_of_each(episodes: Iterable[Episode]) -> list[Episode]:
    """Of each subject in its cluster the last episode, with those of other hosts and brokers at the same time."""
    last: dict[tuple[str, str], Episode] = {}
    for episode in sorted(episodes, key=lambda e: (e.last_us, e.server), reverse=True):
        known = last.setdefault((episode.cluster, episode.subject), episode)
        if known is not episode and episode.last_us >= known.first_us:
            last[episode.cluster, episode.subject] = known.with_another(episode)
    return list(last.values())


def finding(episode: Episode, severity: str, summary: str, advice: str, sources: Sources, least: int = 1) -> Finding:
    """The finding that an episode makes; ``least`` is how many symptoms were enough."""
    return Finding(
        rule=episode.rule, severity=severity, subject=episode.subject,
        state=sources.state(episode.cluster, episode.first_us, episode.last_us, episode.times),
        cluster=episode.cluster, topic=episode.topic, partition=episode.partition, group_id=episode.group_id,
        first_us=episode.first_us, last_us=episode.last_us, summary=summary, advice=advice, evidence=episode.evidence,
        details={
            "times": episode.times, "clients": list(episode.clients), "kinds": list(episode.names),
            "server": episode.server, "total": episode.total, "peak": episode.peak,
            "enough_us": episode.times_us[min(least, len(episode.times_us)) - 1],
        },
    )  # fmt: skip


def when(episode: Episode) -> str:
    """How often and when, for people."""
    if episode.times == 1:
        return f"once, at {clock(episode.first_us)} UTC"
    return f"{episode.times} times from {clock(episode.first_us)} to {clock(episode.last_us)} UTC"


def names(episode: Episode) -> str:
    """The kinds of its symptoms, for people."""
    return ", ".join(episode.names)


def clients(episode: Episode) -> str:
    """Who showed it, for people."""
    shown = ", ".join(episode.clients[:3])
    more = len(episode.clients) - 3
    return f"{shown} and {more} more" if more > 0 else shown


def place(episode: Episode) -> str:
    """Topic and partition, for people."""
    return episode.topic or "?" if episode.partition is None else f"{episode.topic}-{episode.partition}"


def _command(episode: Episode) -> str:
    """A command and what it works on, of a subject ``namespace/command``."""
    namespace, _, command = episode.subject.rpartition("/")
    return f"{command} on {namespace}"


def _only_rebalancing(episode: Episode) -> bool:
    return episode.names == ("REBALANCE_IN_PROGRESS",)


COUNTED = (
    CountedRule(
        Rule(
            "commit_rejected",
            "kafka",
            ("critical",),
            "The coordinator refused commits.",
            ("commit_rejected_times", "commit_rejected_times_rebalancing"),
        ),
        "The coordinator does not take the offsets: after a restart these records are processed again. Commit only "
        "while the member owns the partition: finish or drop the work in onPartitionsRevoked / the rebalance callback, "
        "keep the work between two polls below max.poll.interval.ms, and rejoin after the error instead of retrying.",
        lambda s: s.commit_rejected_times,
        lambda e: f"The coordinator refused commits of {clients(e)} to group {e.group_id} {when(e)}: {names(e)}.",
        lambda e, s: not _only_rebalancing(e) or e.times >= s.commit_rejected_times_rebalancing,
    ),
    CountedRule(
        Rule(
            "zombie_member",
            "kafka",
            ("warning",),
            "A client goes on as a member of a group that has put it out.",
            ("zombie_times", "zombie_seconds"),
        ),
        "The client does not know that it is out of the group: it was too slow (max.poll.interval.ms, "
        "session.timeout.ms), or another took its group.instance.id. Let it rejoin (poll) or end it, and see that what "
        "it works on is not written twice.",
        lambda s: s.zombie_times,
        lambda e: (
            f"{clients(e)} went on as a member of group {e.group_id} for {seconds(e.span_us)} after the coordinator "
            f"had put it out: it was refused {when(e)} ({names(e)})."
        ),
        lambda e, s: e.span_us >= s.zombie_seconds * 1_000_000,
    ),
    CountedRule(
        CRC_MISMATCH,
        "Something on the way changes bytes: look at the client's memory and library, and at the network.",
        lambda _: 1,
        lambda e: f"The broker refused batches of {clients(e)} to {place(e)} as corrupt {when(e)}.",
    ),
    CountedRule(
        Rule(
            "unknown_topic_loop",
            "kafka",
            ("warning",),
            "A client asks again and again for a topic that the cluster does not have.",
            ("unknown_topic_times",),
        ),
        "Create the topic, or correct its name in the client's configuration. Where the topic was deleted on purpose, "
        "take it out of the client.",
        lambda s: s.unknown_topic_times,
        lambda e: f"{clients(e)} asked for topic {e.topic}, which the cluster does not have, {when(e)}.",
    ),
    CountedRule(
        Rule(
            "fenced_leader_epoch",
            "kafka",
            ("warning",),
            "A client asks by a leader epoch that is over.",
            ("stale_metadata_times",),
        ),
        "The client goes by an older leader than the broker's. A client that asks for metadata again gets on at once; "
        "one that does not has a fault: update it. After an unclean election it may have read records that are gone.",
        lambda s: s.stale_metadata_times,
        lambda e: f"{clients(e)} asked for {place(e)} by a leader epoch of the past {when(e)}.",
    ),
    CountedRule(
        Rule(
            "stale_metadata",
            "kafka",
            ("warning",),
            "A client asks a broker that is not the leader that the client takes it for.",
            ("stale_metadata_times", "stale_metadata_seconds"),
        ),
        "The client asks a broker that is not, or not yet, the leader that it takes it for. If it lasts: look whether "
        "this broker gets metadata updates (it may be cut off from the controller), and whether the client refreshes "
        "its metadata.",
        lambda s: s.stale_metadata_times,
        lambda e: f"{clients(e)} and broker {e.server} do not agree on the leader of {place(e)}: {names(e)} {when(e)}.",
        lambda e, s: e.span_us >= s.stale_metadata_seconds * 1_000_000,
    ),
    CountedRule(
        Rule(
            "throttled",
            "kafka",
            ("warning",),
            "Brokers hold a client back because it exceeds its quota.",
            ("throttled_times", "throttled_seconds"),
        ),
        "The client exceeds its quota: raise the quota (`kafka-configs.sh --alter --entity-type clients`), or let the "
        "client do less.",
        lambda s: s.throttled_times,
        lambda e: (
            f"The brokers held {clients(e)} back {when(e)}, for {e.total / 1000:.1f} s together and up to "
            f"{e.peak / 1000:.1f} s at a time ({names(e)})."
        ),
        lambda e, s: e.total >= s.throttled_seconds * 1000,
    ),
    CountedRule(
        Rule(
            "auth_failed",
            "kafka",
            ("critical",),
            "A broker refused a login, or an operation that the principal may not do.",
            ("auth_failed_times",),
        ),
        "Check the client's credentials and the SASL mechanism, or its ACLs (`kafka-acls.sh --list`). If nobody knows "
        "the client, somebody tries passwords: look at the address.",
        lambda s: s.auth_failed_times,
        lambda e: f"{e.server} refused {clients(e)} {when(e)}: {names(e)}.",
    ),
    CountedRule(
        Rule(
            "acks0_producer",
            "kafka",
            ("info",),
            "A producer writes without asking for an answer (acks=0).",
            ("acks0_requests",),
        ),
        "With acks=0 nobody learns of records that the broker did not take. Use acks=all, unless losing them is fine.",
        lambda s: s.acks0_requests,
        lambda e: f"{clients(e)} writes without asking for an answer (acks=0): {when(e)}, to {names(e)}.",
    ),
    CountedRule(
        Rule(
            "unanswered_requests",
            "kafka",
            ("critical",),
            "A broker did not answer requests before their connection ended.",
            ("slow_seconds", "unanswered_times"),
        ),
        "The broker did not answer before the connection ended: look whether it hangs (garbage collection, disk, "
        "network), or whether the client's request.timeout.ms is shorter than what the broker takes.",
        lambda s: s.unanswered_times,
        lambda e: f"{e.server} left {e.times} requests of {clients(e)} without an answer ({names(e)}), {when(e)}.",
        # A client that is killed leaves all that it had in flight at once; one that waits in vain asks again.
        lambda e, s: e.span_us >= s.slow_seconds * 1_000_000,
    ),
    CountedRule(
        Rule(
            SLOW,
            "mongodb",
            ("warning",),
            "A MongoDB server took long for a command, several times.",
            ("mongo_slow_seconds", "mongo_slow_commands"),
            ("commands",),
        ),
        "Look at the query plan (`explain`) for a missing index, and at the server at that time: locks, a full cache, "
        "a slow disk, a write concern that waits for lagging members. `silver.mongo_commands` shows which, by "
        "latency_us.",
        lambda s: s.mongo_slow_commands,
        lambda e: (
            f"{e.server} took up to {e.peak / 1_000_000:.1f} s for {_command(e)}: {e.times} slow commands of "
            f"{clients(e)}, from {clock(e.first_us)} to {clock(e.last_us)} UTC."
        ),
    ),
    CountedRule(
        Rule(
            FAILED,
            "mongodb",
            ("warning",),
            "A MongoDB command fails again and again.",
            ("mongo_failures",),
            ("commands",),
        ),
        "Read the error: a command or operator that the server does not have, a document that its schema refuses, a "
        "missing right, a cursor that is gone. `silver.mongo_commands` has each one, with code and client.",
        lambda s: s.mongo_failures,
        lambda e: f"{_command(e)} of {clients(e)} failed {when(e)}: {names(e)}.",
    ),
    CountedRule(
        Rule(
            RETRIES,
            "mongodb",
            ("warning",),
            "Clients of MongoDB repeat writes all the time.",
            ("mongo_retries", "mongo_retry_interval_seconds"),
            ("commands",),
        ),
        "Drivers repeat a write once after an error of the network or of a change of primary, and applications a "
        "transaction after a conflict. So many mean that the cause stays: an election that does not end, connections "
        "that are cut, documents that many transactions want at once.",
        lambda s: s.mongo_retries,
        lambda e: f"{clients(e)} had to repeat {_command(e)} {when(e)} ({names(e)}).",
        lambda e, s: e.span_us <= e.times * s.mongo_retry_interval_seconds * 1_000_000,
    ),
)

finds(*(counted.rule for counted in COUNTED))(find)
