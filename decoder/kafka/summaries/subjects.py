"""Groups, topics and errors that a body names, of whatever api: found by the names of its fields."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from decoder.fields import Json, integer, items, text, texts
from decoder.kafka.errors import error_name
from decoder.kafka.summaries.pieces import topic_name

_TOPICS = frozenset(
    {
        "topics", "topicData", "responses", "forgottenTopicsData", "topicPartitions", "assignedPartitions",
        "ownedPartitions", "v3AndBelowTopics", "resultsByTopicV3AndBelow", "topicResults", "ungroupedPartitionStates",
        "partitionErrors", "topicStates",
    }
)  # fmt: skip
"""Arrays of structs that name a topic."""
_TOPIC_NAMES = frozenset({"topicNames", "subscribedTopicNames", "topics"})
_PARTITIONS = frozenset({"partitions", "partitionIndexes"})
_INDEXES = ("partitionIndex", "partition", "index")
_GROUPS = frozenset({"groupId"})
_GROUP_NAMES = frozenset({"groups", "groupIds", "groupsNames"})
_LEAVES = frozenset({"recordBatches", "apiKeys", "brokers", "configs", "records", "abortedTransactions"})
"""Arrays in which nothing is named, and which may be long."""


def groups_of(body: Json) -> Iterator[str]:
    """Consumer groups, share groups and their likes that a request names."""
    for name, value in body.items():
        if name in _GROUPS and isinstance(value, str):
            yield value
        elif name in _GROUP_NAMES and isinstance(value, list):
            yield from texts(body, name)
            yield from (text(one, "groupId") or "" for one in items(body, name))
    if body.get("keyType", 0) != 1:  # FindCoordinator: 1 is a transaction
        yield from texts(body, "coordinatorKeys") or filter(None, [text(body, "key")])


def places_of(body: Any, names: dict[str, str], topic: str | None = None) -> Iterator[tuple[str, int | None]]:
    """Topics of a body, each with every partition that is named, or None.

    Args:
        body: a body or a part of it.
        names: topics by id.
        topic: that the part belongs to.
    """
    if topic is not None:
        found = (integer(body, name) for name in _INDEXES)
        yield from ((topic, number) for number in found if number is not None)
    for name, value in body.items():
        if name in _LEAVES or not value:
            continue
        if isinstance(value, dict):
            yield from places_of(value, names, topic)
        elif isinstance(value, list):
            yield from _listed_places(name, value, names, topic)


def _listed_places(
    name: str, value: list[Any], names: dict[str, str], topic: str | None
) -> Iterator[tuple[str, int | None]]:
    first = value[0]
    if isinstance(first, int) and name in _PARTITIONS and topic is not None:
        yield from ((topic, one) for one in value if type(one) is int)
    elif isinstance(first, str) and name in _TOPIC_NAMES:
        yield from ((one, None) for one in value if isinstance(one, str))
    elif isinstance(first, dict):
        for one in (one for one in value if isinstance(one, dict)):
            inner = topic_name(one, names) if name in _TOPICS else topic
            if inner is not None and name in _TOPICS:
                yield inner, None
            yield from places_of(one, names, inner)


def errors_of(body: Any) -> Iterator[str]:
    """Names of the errors in a response, in the order of its fields."""
    for name, value in body.items():
        if not value or name in _LEAVES:
            continue
        if type(value) is int:
            if name.endswith("rrorCode"):
                yield error_name(value)
        elif isinstance(value, dict):
            yield from errors_of(value)
        elif isinstance(value, list):
            for one in items(body, name):
                yield from errors_of(one)
