"""Rule ``topic_recreated``."""

from __future__ import annotations

from pipeline.analysis.rules.case.case import Case, arg
from pipeline.analysis.rules.case.entities import TOPIC
from pipeline.analysis.rules.case.texts import LOSES, SEEN, Texts, topics
from pipeline.analysis.rules.kafka.links import STANDSTILL
from pipeline.analysis.rules.rule import Link, Rule
from pipeline.humanize import listed, moment

RECREATED = (
    "Now: check the positions of its groups: what they committed before belongs to the topic that is gone; set "
    "those to the beginning, while they are stopped, that have not committed since (`kafka-consumer-groups.sh "
    "--bootstrap-server BROKER --reset-offsets --to-earliest --topic {topic} --group GROUP --execute`). Fix: delete "
    "its groups' offsets with a topic. Clients that know the old id get UNKNOWN_TOPIC_ID until they refresh their "
    "metadata."
)


def _committed_since(case: Case) -> str:
    """Groups that stand in the new topic."""
    names = case.details.get("committed_since")
    known = listed(name for name in names if isinstance(name, str)) if isinstance(names, list) else ""
    return f"; those that committed since need nothing: {known}" if known else ""


class TopicRecreated(Rule):
    """A topic of the same name has another topic id: its offsets begin anew."""

    name = "topic_recreated"
    title = "Topic recreated"
    protocol = "kafka"
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
