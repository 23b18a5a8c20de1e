"""What do heartbeats of share groups (KIP-932) and Streams groups (KIP-1071) state?

As in the consumer protocol (KIP-848) an answer holds the member's whole assignment when it changed, and epochs below 0
leave the group.

In a share group several members are given the same partition. In a Streams group the broker gives tasks, a subtopology
and a partition of each topic that it reads; which topics those are a member says but when it joins.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from decoder.kafka.apis import ApiKey
from decoder.kafka.errors import NO_ERROR, error_name
from decoder.kafka.facts.state import StateEvent

SHARE, STREAMS = int(ApiKey.SHARE_GROUP_HEARTBEAT), int(ApiKey.STREAMS_GROUP_HEARTBEAT)
APIS = {SHARE: "share", STREAMS: "streams"}
"""By api key the group's protocol."""
TOPOLOGY = "topology"
"""The kind of a statement that a subtopology reads a topic."""

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class GroupStatement(StateEvent):
    """A statement of these groups.

    Attributes:
        subtopology: of a Streams group: which one reads the topic, or which one a task is of.
    """

    subtopology: str | None = None


def group_statements(api_key: int, request: Json | None, response: Json | None) -> list[GroupStatement]:
    """What an exchange states of such a group, in the order of its bodies; nothing if it is of another api.

    Args:
        api_key: of the request.
        request, response: bodies; None if there is none.
    """
    if api_key not in APIS:
        return []
    asked, answer = request or {}, response or {}
    code = None if response is None else answer.get("errorCode", NO_ERROR)
    epoch = asked.get("memberEpoch")
    statement = GroupStatement(
        "heartbeat",
        group_id=asked.get("groupId"),
        member_id=answer.get("memberId") or asked.get("memberId"),
        generation=answer.get("memberEpoch", epoch) if code == NO_ERROR else epoch,
        group_protocol=APIS[api_key],
        error_code=code,
        error_name=None if code is None else error_name(code),
    )
    topology = () if code else _topology(statement, asked)
    found = [*topology, *_given(api_key, statement, epoch, answer)]
    return [replace(one, ordinal=ordinal) for ordinal, one in enumerate(found)]


def _topology(statement: GroupStatement, asked: Json) -> Iterator[GroupStatement]:
    for one in _items(asked.get("topology"), "subtopologies"):
        made = (topic.get("name") for topic in _items(one, "repartitionSourceTopics"))
        for topic in [*(one.get("sourceTopics") or []), *made]:
            yield replace(statement, kind=TOPOLOGY, topic=topic, subtopology=one.get("subtopologyId"))


def _given(api_key: int, statement: GroupStatement, epoch: int | None, answer: Json) -> Iterator[GroupStatement]:
    if epoch is not None and epoch < 0:
        yield replace(statement, kind="leave", generation=None)
        return
    tasks = answer.get("activeTasks") if api_key == STREAMS else answer.get("assignment")
    if tasks is None or statement.error_code != NO_ERROR:
        yield statement
        return
    given = replace(statement, kind="assignment")
    parts = list(_tasks(given, tasks) if api_key == STREAMS else _partitions(given, tasks))
    yield from parts or [given]


def _tasks(given: GroupStatement, tasks: Iterable[Json]) -> Iterator[GroupStatement]:
    for task in tasks:
        for partition in task.get("partitions") or []:
            yield replace(given, subtopology=task.get("subtopologyId"), partition=partition)


def _partitions(given: GroupStatement, assignment: Json) -> Iterator[GroupStatement]:
    for topic in _items(assignment, "topicPartitions"):
        for partition in topic.get("partitions") or []:
            yield replace(given, topic_id=topic.get("topicId"), topic=topic.get("topicName"), partition=partition)


def _items(body: Json | None, name: str) -> list[Json]:
    return (body or {}).get(name) or []
