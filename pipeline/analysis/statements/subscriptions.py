"""What members of the consumer protocol (KIP-848) subscribe to by name, and which topics they are given by id.

A heartbeat states the names when they change, and at the first of a member; an answer states the whole assignment, by
topic ids alone, when it changes. Together they may show which name an id has, where nothing else joins both.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from decoder.fields import Json, integer, items, struct, text, texts
from decoder.kafka.apis import ApiKey
from decoder.kafka.errors import NO_ERROR
from pipeline.tables import Column

API = int(ApiKey.CONSUMER_GROUP_HEARTBEAT)
COLUMNS = (
    Column("group_id", "string", ""), Column("member_id", "string", ""), Column("names", "array<string>", ""),
    Column("topic_ids", "array<string>", ""),
)  # fmt: skip
MOST = 100
"""Names of a subscription, or topic ids of an assignment, that are compared; of what is more nothing is concluded."""


@dataclass(frozen=True, slots=True)
class Subscription:
    """What one heartbeat states.

    Attributes:
        names: the topics that the member subscribes to; None: not stated; empty: more than names, or too many.
        topic_ids: those that the member is given partitions of; None: not stated; empty: none, or too many.
    """

    group_id: str
    member_id: str
    names: list[str] | None
    topic_ids: list[str] | None


def subscriptions(request: Json | None, response: Json | None) -> Iterator[Subscription]:
    """What an exchange states, if it was accepted and states any of it."""
    asked, answer = request or {}, response or {}
    group, member = text(asked, "groupId"), text(answer, "memberId") or text(asked, "memberId")
    if not group or not member or integer(answer, "errorCode") != NO_ERROR:
        return
    names = texts(asked, "subscribedTopicNames") if isinstance(asked.get("subscribedTopicNames"), list) else None
    if text(asked, "subscribedTopicRegex") or len(names or ()) > MOST:
        names = []
    given, topic_ids = struct(answer, "assignment"), None
    if isinstance(given.get("topicPartitions"), list):
        of_topics = items(given, "topicPartitions")[: MOST + 1]
        topic_ids = sorted({id_ for topic in of_topics if (id_ := text(topic, "topicId"))})
        topic_ids = topic_ids if len(of_topics) <= MOST else []
    if names is not None or topic_ids:
        yield Subscription(group, member, names, topic_ids)
