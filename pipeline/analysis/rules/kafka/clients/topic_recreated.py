"""Rule ``topic_recreated``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import pairwise
from shlex import quote

from pipeline.analysis.claims.kafka.brokers import TOPIC_RECREATED
from pipeline.analysis.rules.budget import budget_of
from pipeline.analysis.rules.case.case import Case, arg
from pipeline.analysis.rules.case.entities import TOPIC
from pipeline.analysis.rules.case.texts import LOSES, SEEN, Texts, topics
from pipeline.analysis.rules.kafka.links import STANDSTILL
from pipeline.analysis.rules.kafka.once_over import OffsetRule
from pipeline.analysis.rules.kafka.symptoms import TOPIC_CHANGED
from pipeline.analysis.rules.model import Finding, Sources
from pipeline.analysis.rules.recurrence import earlier
from pipeline.analysis.rules.rule import Link
from pipeline.analysis.rules.thresholds import RuleThresholds
from pipeline.analysis.tables import Tables
from pipeline.humanize import clock, listed, moment

RECREATED = (
    "Now: check the positions of its groups: what they committed before belongs to the topic that is gone; set "
    "those to the beginning, while they are stopped, that have not committed since (`kafka-consumer-groups.sh "
    "--bootstrap-server BROKER --reset-offsets --to-earliest --topic {topic} --group GROUP --execute`). Fix: delete "
    "its groups' offsets with a topic. Clients that know the old id get UNKNOWN_TOPIC_ID until they refresh their "
    "metadata."
)


def _committed_since(case: Case) -> str:
    """Groups that are in the new topic."""
    names = case.details.get("committed_since")
    known = listed(name for name in names if isinstance(name, str)) if isinstance(names, list) else ""
    return f"; those that committed since need nothing: {known}" if known else ""


class TopicRecreated(OffsetRule):
    """A topic of the same name has another topic id: its offsets start over."""

    name = "topic_recreated"
    title = "Topic recreated"
    protocol = "kafka"
    about = "metadata"
    severities = ("warning",)
    reads = ("exchanges", "events")
    advice = (RECREATED,)
    urgency = LOSES
    texts = Texts(
        headline=lambda case: (
            f"Topic {case.places} was deleted and created again: offsets that groups committed belong to the old topic"
        ),
        now=lambda case: (
            "Check each group that reads it (`kafka-consumer-groups.sh --bootstrap-server BROKER --describe "
            f"--all-groups`){_committed_since(case)}. Reset only a group whose offset was committed before "
            f"{moment(case.lead.last_us)[11:]} UTC, or is beyond the log's end: stop it, set it to the beginning "
            f"(`kafka-consumer-groups.sh --bootstrap-server BROKER --reset-offsets --to-earliest --topic "
            f"{arg(case.topic)} --group GROUP --execute`), start it again."
        ),
        fix="Delete records (`kafka-delete-records.sh`) instead of the topic, or delete its groups' offsets with it.",
        reasoning=f"{SEEN}the topic's name has another id now.",
        affected=topics,
    )
    effects = (
        Link(
            (
                "offset_reset",
                "rewound",
                "commit_regressed",
                "unknown_topic_loop",
                "stale_metadata",
                "fenced_leader_epoch",
                "partition_unavailable",
                "request_refused",
                *STANDSTILL,
            ),
            (TOPIC,),
            "offsets and ids that clients know belong to the topic that is gone",
        ),
    )
    claims = TOPIC_RECREATED

    @classmethod
    def detect(cls, sources: Sources, settings: RuleThresholds) -> Iterator[Finding]:
        """One name, two topic ids, one after the other."""
        lives = sources.catalog.recreated
        topics = budget_of(sources).worst(cls.name, sorted(lives), lambda topic: (lives[topic][-1][0], topic))
        changed = sources.by_subject(TOPIC_CHANGED)
        committed = _last_commits(sources.tables, topics) if topics else {}
        for cluster, name in topics:
            ids = lives[cluster, name]
            (_, last_old_us, old_id), (first_us, _, new_id) = ids[-2:]
            times = [(min(old_last_us, us), us) for (_, old_last_us, _), (us, _, _) in pairwise(ids)]
            changes = changed.get((cluster, name), ())
            by = sorted({client for e in changes for client in e.clients})
            since = sorted(group for group, us in committed.get((cluster, name), ()) if us > first_us)
            summary = (
                f"Topic {name} is another one since {clock(first_us)} UTC: it was deleted and created again "
                f"(id {old_id} was last seen at {clock(last_old_us)} UTC, now it is {new_id})"
                f"{', by ' + ', '.join(by) if by else ''}. Its offsets start over."
            )
            yield Finding(
                rule=cls.name, severity="warning", subject=name,
                state=sources.state(cluster, first_us, first_us, 1), cluster=cluster, topic=name, partition=None,
                group_id=None, first_us=min(last_old_us, first_us), last_us=first_us, summary=summary,
                advice=RECREATED.format(topic=quote(name)),
                evidence=[one for e in changes for one in e.evidence][: settings.max_evidence],
                details={
                    "old_id": old_id, "new_id": new_id, "lives": len(ids), "enough_us": first_us,
                    "committed_since": since[:_GROUPS_KEPT], **earlier(times),
                },
            )  # fmt: skip


_GROUPS_KEPT = 50
_LAST_COMMITS = """
    WITH asked AS (SELECT unnest($clusters) AS cluster, unnest($topics) AS topic)
    SELECT cluster, topic, group_id, max(epoch_us(ts)) AS us FROM events SEMI JOIN asked USING (cluster, topic)
    WHERE kind = 'committed' AND group_id IS NOT NULL GROUP BY ALL
"""


def _last_commits(tables: Tables, topics: Iterable[tuple[str, str]]) -> dict[tuple[str, str], list[tuple[str, int]]]:
    """Of topics (cluster, name) the groups that have committed them, each with the time of its last commit, µs."""
    clusters, called = zip(*topics, strict=True)
    found = defaultdict(list)
    for row in tables.rows(_LAST_COMMITS, clusters=clusters, topics=called):
        found[row.cluster, row.topic].append((row.group_id, row.us))
    return found
