"""A group whose leader gives a partition to a member of which nothing is seen any more."""

from __future__ import annotations

from tests.decoder.kafka import encode
from tests.pipeline.analysis.rules.kafka.positions.stage import JOIN, SYNC, Client, Stage, records
from tests.pipeline.analysis.rules.kafka.positions.unread_stages import GROUP

AWAY = "away-7a0b6c1d-2e3f-4a5b-8c7d-9e0f1a2b3c4d"
"""Its member id, as coordinators make them."""


def led(stage: Stage, at: float, leader: Client, given: dict[str, list[int]]) -> None:
    """The leader joins and gives partitions to all members."""

    def message(kind: str, content: dict[str, object]) -> bytes:
        return encode.consumer_protocol(kind, 0, content)

    subscription = message("ConsumerProtocolSubscription", {"topics": [stage.topic]})
    assignments = {
        member: message(
            "ConsumerProtocolAssignment", {"assignedPartitions": [{"topic": stage.topic, "partitions": partitions}]}
        )
        for member, partitions in given.items()
    }
    stage.say(
        at, leader, JOIN,
        {"groupId": leader.group, "sessionTimeoutMs": 600_000, "rebalanceTimeoutMs": 300_000,
         "memberId": leader.member, "protocolType": "consumer",
         "protocols": [{"name": "range", "metadata": subscription}]},
        {"generationId": leader.generation, "protocolName": "range", "leader": leader.member,
         "memberId": leader.member, "members": [{"memberId": name, "metadata": subscription} for name in given]},
    )  # fmt: skip
    stage.say(
        at + 0.02, leader, SYNC,
        {"groupId": leader.group, "generationId": leader.generation, "memberId": leader.member,
         "assignments": [{"memberId": name, "assignment": one} for name, one in assignments.items()]},
        {"assignment": assignments[leader.member]},
    )  # fmt: skip


def gives_away(
    *, joins: bool = True, others: bool = True, before: bool = False, returns: bool = False, read_by: str | None = None,
    seconds: int = 200, written: bool = True,
) -> Stage:  # fmt: skip
    """The leader keeps two partitions and gives the third one to a member that is silent since.

    Args:
        joins: whether that member is seen to join.
        others: whether another group on another host uses these brokers.
        before: whether an older generation of the group is seen.
        returns: whether the member sends heartbeats all the same.
        read_by: the client id of somebody who reads the third partition.
        written: whether records are written to it.
    """
    stage, leader = Stage(), Client("leader", GROUP, 42_000, "leader-1", generation=2)
    away = Client("away", GROUP, 42_001, AWAY, generation=2, host="10.0.0.6")
    neighbour = Client("neighbour", "reports", 42_002, "neighbour-1", host="10.0.0.8")
    if before:
        stage.heartbeat(0.05, Client("leader", GROUP, 42_000, "leader-1", generation=1))
    if joins:
        stage.join(0.1, away, [2])
        stage = Stage(stage.topic, [one for one in stage._said if one[2] == JOIN])
    led(stage, 0.3, leader, {"leader-1": [0, 1], AWAY: [2]})
    if others:
        stage.join(0.4, neighbour, [0])
    for second in range(1, seconds):
        base, end = 3 * second, 3 * (second + 1)
        for partition in range(3):
            if written or partition < 2:
                stage.produce(second + 0.3 + partition / 50, partition, base, 3)
        stage.fetch(second + 0.5, leader, *((number, base, end, records(base, 3)) for number in (0, 1)))
        stage.heartbeat(second + 0.8, leader)
        if second % 5 == 4:
            stage.commit(second + 0.7, leader, {0: end, 1: end})
        if others:
            stage.fetch(second + 0.55, neighbour, (0, base, end, records(base, 3)))
            stage.heartbeat(second + 0.85, neighbour)
        if returns:
            stage.heartbeat(second + 0.86, away)
        if read_by is not None:
            reader = Client(read_by, "", 42_003, host="10.0.0.7")
            stage.fetch(second + 0.6, reader, (2, base, end, records(base, 3)))
    return stage
