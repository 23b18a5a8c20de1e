"""What members of groups can multiply."""

from __future__ import annotations

from decoder.kafka.apis import ApiKey
from pipeline.analysis.statements.new_groups import MOST_OF_A_MEMBER
from tests.decoder.kafka.encode import consumer_protocol
from tests.hostile.amplifiers.talk import S, Talk, asked_for, fetched, records
from tests.hostile.traffic import Landing, uuid


def tasks_and_topics(n: int) -> Landing:
    """Tasks of a Streams group times topics that their subtopology reads."""
    talk = Talk()
    topology = {"epoch": 1, "subtopologies": [{"subtopologyId": "0", "sourceTopics": [f"t{i}" for i in range(n)]}]}
    tasks = [{"subtopologyId": "0", "partitions": list(range(n))}]
    asked = {"groupId": "g", "memberId": "m", "memberEpoch": 0, "topology": topology}
    talk.say(ApiKey.STREAMS_GROUP_HEARTBEAT, 0, asked, {"memberId": "m", "memberEpoch": 1, "activeTasks": tasks})
    return talk


def subtopologies(n: int) -> Landing:
    """The same of many small subtopologies."""
    talk = Talk()
    names = range(max(n // 30, 1))
    reads = [{"subtopologyId": str(s), "sourceTopics": [f"t{i}" for i in range(30)]} for s in names]
    tasks = [{"subtopologyId": str(s), "partitions": list(range(30))} for s in names]
    asked = {"groupId": "g", "memberId": "m", "memberEpoch": 0, "topology": {"epoch": 1, "subtopologies": reads}}
    talk.say(ApiKey.STREAMS_GROUP_HEARTBEAT, 0, asked, {"memberId": "m", "memberEpoch": 1, "activeTasks": tasks})
    return talk


def tasks_of_members(n: int) -> Landing:
    """Tasks of members of a Streams group, as many of each as are read, times topics of their subtopology."""
    talk = Talk()
    reads = [{"subtopologyId": "0", "sourceTopics": [f"t{i}" for i in range(30)]}]
    topology = {"epoch": 1, "subtopologies": reads}
    for first in range(0, n, MOST_OF_A_MEMBER):
        tasks = [{"subtopologyId": "0", "partitions": list(range(first, min(first + MOST_OF_A_MEMBER, n)))}]
        asked = {"groupId": "g", "memberId": f"m{first}", "memberEpoch": 0, "topology": topology}
        answered = {"memberId": f"m{first}", "memberEpoch": 1, "activeTasks": tasks}
        talk.say(ApiKey.STREAMS_GROUP_HEARTBEAT, 0, asked, answered)
    return talk


def partitions_of_a_member(n: int) -> Landing:
    """Partitions that one answer gives to a member of a group."""
    talk = Talk()
    owned = {"topicPartitions": [{"topicId": uuid(1), "partitions": list(range(n))}]}
    beat = {
        "groupId": "g",
        "memberId": "m",
        "memberEpoch": 0,
        "rebalanceTimeoutMs": 1000,
        "subscribedTopicNames": ["t"],
    }
    talk.say(ApiKey.CONSUMER_GROUP_HEARTBEAT, 0, beat, {"memberId": "m", "memberEpoch": 1, "assignment": owned})
    return talk


def departures_and_fetches(n: int) -> Landing:
    """Members that leave a group times partitions that their host fetched."""
    talk = Talk()
    parts = [{"partitionIndex": p, "highWatermark": 9, "lastStableOffset": 9, "records": records()} for p in range(n)]
    talk.say(ApiKey.FETCH, 11, asked_for("t", range(n)), fetched("t", parts))
    members = [{"memberId": f"m{i}", "reason": "consumer poll timeout has expired."} for i in range(n)]
    talk.say(
        ApiKey.LEAVE_GROUP,
        5,
        {"groupId": "g", "members": members},
        {"members": [{"memberId": m["memberId"]} for m in members]},
    )
    return talk


def owners_of_a_partition(n: int) -> Landing:
    """Members that all own, fetch and commit one partition."""
    talk = Talk()
    for i in range(n):
        who = {"client_id": f"c{i}", "connection": i}
        owned = {"topicPartitions": [{"topicId": uuid(1), "partitions": [0]}]}
        beat = {
            "groupId": "g",
            "memberId": f"m{i}",
            "memberEpoch": 0,
            "rebalanceTimeoutMs": 1000,
            "subscribedTopicNames": ["t"],
        }
        talk.say(
            ApiKey.CONSUMER_GROUP_HEARTBEAT,
            0,
            beat,
            {"memberId": f"m{i}", "memberEpoch": 1, "assignment": owned},
            **who,
        )
    for i in range(n):
        who = {"client_id": f"c{i}", "connection": i}
        topics = [{"name": "t", "partitions": [{"partitionIndex": 0, "committedOffset": i}]}]
        commit = {"groupId": "g", "generationIdOrMemberEpoch": 1, "memberId": f"m{i}", "topics": topics}
        talk.say(
            ApiKey.OFFSET_COMMIT, 9, commit, {"topics": [{"name": "t", "partitions": [{"partitionIndex": 0}]}]}, **who
        )
    return talk


def writers_and_members(n: int) -> Landing:
    """Classic members of one group that all are given one partition, again and again, and commit it in turn."""

    talk = Talk()
    held = consumer_protocol(
        "ConsumerProtocolAssignment", 0, {"assignedPartitions": [{"topic": "t", "partitions": [0]}]}
    )
    for i in range(n):
        who = {"client_id": f"c{i % 7}", "connection": i % 50, "after_us": 3 * S}
        member = f"m{i % max(n // 3, 1)}"
        joined = {"generationId": i, "protocolName": "range", "leader": "x", "memberId": member}
        talk.say(
            ApiKey.JOIN_GROUP,
            5,
            {
                "groupId": "g",
                "sessionTimeoutMs": 1,
                "rebalanceTimeoutMs": 1,
                "memberId": member,
                "protocolType": "consumer",
            },
            joined,
            **who,
        )
        talk.say(
            ApiKey.SYNC_GROUP, 3, {"groupId": "g", "generationId": i, "memberId": member}, {"assignment": held}, **who
        )
        topics = [{"name": "t", "partitions": [{"partitionIndex": 0, "committedOffset": n - i}]}]
        talk.say(
            ApiKey.OFFSET_COMMIT, 7,
            {"groupId": "g", "generationIdOrMemberEpoch": i, "memberId": member, "topics": topics},
            {"topics": [{"name": "t", "partitions": [{"partitionIndex": 0, "errorCode": (0, 22)[i % 2]}]}]}, **who,
        )  # fmt: skip
    return talk


def silent_members(n: int) -> Landing:
    """Members that fall silent one after the other times joins that wait."""
    talk = Talk()
    for i in range(n):
        who = {"client_id": f"c{i % 5}", "connection": i % 100, "after_us": 500_000}
        member = f"m{i}"
        joined = {"generationId": i // 10, "protocolName": "range", "leader": "x", "memberId": member}
        latency = (500, 20 * S)[i % 2]
        talk.say(
            ApiKey.JOIN_GROUP,
            5,
            {
                "groupId": "g",
                "sessionTimeoutMs": 10_000,
                "rebalanceTimeoutMs": 60_000,
                "memberId": member,
                "protocolType": "consumer",
            },
            joined,
            latency_us=latency,
            **who,
        )
        talk.say(
            ApiKey.HEARTBEAT,
            3,
            {"groupId": "g", "generationId": i // 10, "memberId": member},
            {"errorCode": (0, 27)[i % 3 == 0]},
            **who,
        )
    for i in range(n // 2):
        talk.say(
            ApiKey.JOIN_GROUP,
            5,
            {
                "groupId": "g",
                "sessionTimeoutMs": 10_000,
                "rebalanceTimeoutMs": 600_000,
                "memberId": f"m{i}",
                "protocolType": "consumer",
            },
            client_id="c",
            connection=1000 + i,
        )
    return talk


def deliveries_of_share_groups(n: int) -> Landing:
    """Offsets of overlapping ranges that are delivered again times deliveries of them."""
    talk = Talk()
    for at in range(0, n, 50):
        acquired = [{"firstOffset": i, "lastOffset": i + 998, "deliveryCount": 3} for i in range(at, min(at + 50, n))]
        parts = [{"partitionIndex": 0, "acquiredRecords": acquired}]
        given = [
            {"firstOffset": i, "lastOffset": i + 998, "acknowledgeTypes": [1 + i % 2]}
            for i in range(at, min(at + 50, n))
        ]
        asked = {
            "groupId": "g",
            "memberId": "m",
            "topics": [{"topicId": uuid(1), "partitions": [{"partitionIndex": 0, "acknowledgementBatches": given}]}],
        }
        talk.say(
            ApiKey.SHARE_FETCH,
            1,
            asked,
            {"acquisitionLockTimeoutMs": 1000, "responses": [{"topicId": uuid(1), "partitions": parts}]},
            after_us=S,
        )
    return talk


def poison(n: int) -> Landing:
    """Lives of members that each end at one offset times fetches and commits in them."""

    talk = Talk()
    held = consumer_protocol(
        "ConsumerProtocolAssignment", 0, {"assignedPartitions": [{"topic": "t", "partitions": [0]}]}
    )
    for i in range(n):
        who = {"client_id": "c", "connection": i, "after_us": 3 * S}
        ids = {"groupId": "g", "generationId": i, "memberId": f"m{i}"}
        talk.say(
            ApiKey.JOIN_GROUP,
            5,
            {
                "groupId": "g",
                "sessionTimeoutMs": 1,
                "rebalanceTimeoutMs": 1,
                "memberId": f"m{i}",
                "protocolType": "consumer",
            },
            {"generationId": i, "protocolName": "range", "leader": "x", "memberId": f"m{i}"},
            **who,
        )
        talk.say(ApiKey.SYNC_GROUP, 3, ids, {"assignment": held}, **who)
        talk.say(
            ApiKey.OFFSET_FETCH,
            7,
            {"groupId": "g", "topics": [{"name": "t", "partitionIndexes": [0]}]},
            {"topics": [{"name": "t", "partitions": [{"partitionIndex": 0, "committedOffset": 5}]}]},
            **who,
        )
        talk.say(
            ApiKey.FETCH,
            11,
            {"topics": [{"topic": "t", "partitions": [{"partition": 0, "fetchOffset": 5}]}]},
            fetched("t", [{"partitionIndex": 0, "highWatermark": 1000, "records": records(5)}]),
            **who,
        )
    return talk


def halts_and_requests(n: int) -> Landing:
    """Members of one client that all stand still at one time, times requests of that client meanwhile."""
    talk = Talk()
    for code in (0, 25):
        for i in range(n):
            beat = {"groupId": "g", "generationId": 1, "memberId": f"m{i}"}
            talk.say(ApiKey.HEARTBEAT, 3, beat, {"errorCode": code}, after_us=50_000)
        talk.us += 60 * S
    return talk
