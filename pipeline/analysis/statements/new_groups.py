"""What do heartbeats of share groups (KIP-932) and Streams groups (KIP-1071) state?

As in the consumer protocol (KIP-848) an answer holds the member's whole assignment when it changed, and epochs below 0
leave the group.

In a share group several members are given the same partition. In a Streams group the broker gives tasks, a subtopology
and a partition of each topic that it reads; which topics those are a member says but when it joins.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from decoder.fields import Json, integer, integers, items, struct, text, texts
from decoder.kafka.apis import ApiKey
from decoder.kafka.errors import NO_ERROR, error_name
from decoder.kafka.facts.offsets import is_partition
from decoder.kafka.facts.state import StateEvent, changed
from pipeline.analysis.safety.guard import TooMuchToJudge

SHARE, STREAMS = int(ApiKey.SHARE_GROUP_HEARTBEAT), int(ApiKey.STREAMS_GROUP_HEARTBEAT)
APIS = {SHARE: "share", STREAMS: "streams"}
"""By api key the group's protocol."""
TOPOLOGY = "topology"
"""The kind of a statement that a subtopology reads a topic."""
MOST_OF_A_MEMBER = 1_000
"""Topics that a member of a Streams group may name, and tasks that it may be given, at once. A task takes 4 bytes on
the wire and a row of 25 columns here, one for each topic that it reads. What is more is not stated, not even in part:
the rest would look as if it was taken away."""


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
    code = None if response is None else integer(answer, "errorCode")
    epoch = integer(asked, "memberEpoch")
    statement = GroupStatement(
        "heartbeat",
        group_id=text(asked, "groupId"),
        member_id=text(answer, "memberId") or text(asked, "memberId"),
        generation=integer(answer, "memberEpoch") if code == NO_ERROR and "memberEpoch" in answer else epoch,
        group_protocol=APIS[api_key],
        error_code=code,
        error_name=None if code is None else error_name(code),
    )
    topics, tasks = _sizes(api_key, asked, answer)
    topology = () if code or topics > MOST_OF_A_MEMBER else _topology(statement, asked)
    found = [*topology, *_given(api_key, statement, epoch, {} if tasks > MOST_OF_A_MEMBER else answer)]
    for ordinal, one in enumerate(found):
        object.__setattr__(one, "ordinal", ordinal)  # each is ours; replace() would take most of the time
    return found


def check_size(api_key: int, request: Json | None, response: Json | None) -> None:
    """Find out whether an exchange names more than its statements hold.

    Raises:
        TooMuchToJudge: its topics, or its tasks, are not stated.
    """
    if api_key != STREAMS:
        return
    for count, what in zip(_sizes(api_key, request or {}, response or {}), ("topics", "tasks"), strict=True):
        if count > MOST_OF_A_MEMBER:
            raise TooMuchToJudge(
                f"a member of a Streams group has {count:,} {what}, and more than {MOST_OF_A_MEMBER:,} are not read"
            )


def _sizes(api_key: int, asked: Json, answer: Json) -> tuple[int, int]:
    """How many topics a member of a Streams group names, and how many tasks it is given."""
    if api_key != STREAMS:
        return 0, 0
    named = ("sourceTopics", "repartitionSourceTopics")
    topology = items(struct(asked, "topology"), "subtopologies")
    lists = (one.get(name) for one in topology for name in named)
    tasks = (one.get("partitions") for one in items(answer, "activeTasks"))
    return _total(lists), _total(tasks)


def _total(lists: Iterable[object]) -> int:
    return sum(len(one) for one in lists if isinstance(one, list))


def _topology(statement: GroupStatement, asked: Json) -> Iterator[GroupStatement]:
    for one in items(struct(asked, "topology"), "subtopologies"):
        made = (text(topic, "name") for topic in items(one, "repartitionSourceTopics"))
        for topic in filter(None, [*texts(one, "sourceTopics"), *made]):
            yield changed(statement, kind=TOPOLOGY, topic=topic, subtopology=text(one, "subtopologyId"))


def _given(api_key: int, statement: GroupStatement, epoch: int | None, answer: Json) -> Iterator[GroupStatement]:
    if epoch is not None and epoch < 0:
        yield changed(statement, kind="leave", generation=None)
        return
    holder, tasks = (answer, "activeTasks") if api_key == STREAMS else (struct(answer, "assignment"), "topicPartitions")
    if not isinstance(holder.get(tasks), list) or statement.error_code != NO_ERROR:
        yield statement
        return
    given = changed(statement, kind="assignment")
    parts = list(_tasks(given, holder) if api_key == STREAMS else _partitions(given, holder))
    yield from parts or [given]


def _tasks(given: GroupStatement, answer: Json) -> Iterator[GroupStatement]:
    for task in items(answer, "activeTasks"):
        for partition in filter(is_partition, integers(task, "partitions")):
            yield changed(given, subtopology=text(task, "subtopologyId"), partition=partition)


def _partitions(given: GroupStatement, assignment: Json) -> Iterator[GroupStatement]:
    for topic in items(assignment, "topicPartitions"):
        for partition in filter(is_partition, integers(topic, "partitions")):
            yield changed(given, topic_id=text(topic, "topicId"), topic=text(topic, "topicName"), partition=partition)
