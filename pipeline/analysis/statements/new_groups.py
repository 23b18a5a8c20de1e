"""What heartbeats of share groups (KIP-932) and Streams groups (KIP-1071) state.

As in the consumer protocol (KIP-848) an answer holds the member's whole assignment when it changed, and epochs below 0
leave the group.

In a share group several members are given the same partition. In a Streams group the broker gives tasks, a subtopology
and a partition of each topic that it reads; which topics those are a member says but when it joins.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from decoder.fields import Json, integer, items, struct, text, texts
from decoder.kafka.apis import ApiKey
from decoder.kafka.errors import NO_ERROR
from decoder.kafka.extractors.state import topics_of
from decoder.kafka.extractors.statement import Repeated, StateEvent, Statements, changed, each, numbered
from pipeline.analysis.safety.guard import TooMuchToJudge

SHARE, STREAMS = int(ApiKey.SHARE_GROUP_HEARTBEAT), int(ApiKey.STREAMS_GROUP_HEARTBEAT)
APIS = {SHARE: "share", STREAMS: "streams"}
"""By api key the group's protocol."""
TOPOLOGY = "topology"
"""The kind of a statement that a subtopology reads a topic."""
MOST_OF_A_MEMBER = 1_000
"""Topics that a member of a Streams group may name, and tasks assigned to it, at once. A task takes 4 bytes on the wire
and a row of 25 columns here, one for each topic that it reads. What is more is not stated, not even in part:
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
    return each(group_statements_alike(api_key, request, response))


def group_statements_alike(
    api_key: int, request: Json | None, response: Json | None
) -> list[Statements[GroupStatement]]:
    """The same, where many that are alike are one object."""
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
    )
    topics, tasks = _sizes(api_key, asked, answer)
    topology = () if code or topics > MOST_OF_A_MEMBER else _topology(statement, asked)
    return numbered([*topology, *_given(api_key, statement, epoch, {} if tasks > MOST_OF_A_MEMBER else answer)])


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


Found = Iterator[Statements[GroupStatement]]


def _topology(statement: GroupStatement, asked: Json) -> Found:
    for one in items(struct(asked, "topology"), "subtopologies"):
        made = (text(topic, "name") for topic in items(one, "repartitionSourceTopics"))
        topics = [*filter(None, [*texts(one, "sourceTopics"), *made])]
        read = changed(statement, kind=TOPOLOGY, subtopology=text(one, "subtopologyId"))
        yield Repeated(read, {"topic": topics})


def _given(api_key: int, statement: GroupStatement, epoch: int | None, answer: Json) -> Found:
    if epoch is not None and epoch < 0:
        yield changed(statement, kind="leave", generation=None)
        return
    holder, tasks = (answer, "activeTasks") if api_key == STREAMS else (struct(answer, "assignment"), "topicPartitions")
    if not isinstance(holder.get(tasks), list) or statement.error_code != NO_ERROR:
        yield statement
        return
    given = changed(statement, kind="assignment")
    columns = _tasks(holder) if api_key == STREAMS else _partitions(holder)
    yield Repeated(given, columns) if columns["partitions"] else given


def _tasks(answer: Json) -> dict[str, Sequence[Any]]:
    subtopologies, partitions = topics_of(items(answer, "activeTasks"), "subtopologyId")
    return {"subtopology": subtopologies, "partitions": partitions}


def _partitions(assignment: Json) -> dict[str, Sequence[Any]]:
    topics = items(assignment, "topicPartitions")
    topic_ids, partitions = topics_of(topics, "topicId")
    return {"topic_id": topic_ids, "topic": topics_of(topics, "topicName")[0], "partitions": partitions}
