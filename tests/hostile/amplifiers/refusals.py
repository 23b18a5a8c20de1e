"""What refusals, silence and names can multiply."""

from __future__ import annotations

from decoder.kafka.apis import ApiKey
from tests.hostile.amplifiers.talk import S, Talk, asked_for, fetched, records
from tests.hostile.traffic import Landing


def refused_partitions(n: int) -> Landing:
    """Partitions that are refused in several ways: findings times findings that they may follow from."""
    talk = Talk()
    for _ in range(4):
        for code in (6, 5, 3, 16):
            parts = [{"index": p, "errorCode": code} for p in range(n)]
            data = [{"index": p, "records": records(producer=-1)} for p in range(n)]
            talk.say(
                ApiKey.PRODUCE,
                8,
                {"acks": 1, "timeoutMs": 1, "topicData": [{"name": f"t{code}", "partitionData": data}]},
                {"responses": [{"name": f"t{code}", "partitionResponses": parts}]},
                after_us=S,
            )
            got = [{"partitionIndex": p, "errorCode": code} for p in range(n)]
            talk.say(ApiKey.FETCH, 11, asked_for(f"t{code}", range(n)), fetched(f"t{code}", got), after_us=S)
    return talk


def refused_topics(n: int) -> Landing:
    """The same of topics, and of groups that commit them."""
    talk = Talk()
    for _ in range(3):
        for code in (6, 3, 16, 29):
            names = [f"t{i}" for i in range(n)]
            talk.say(
                ApiKey.METADATA,
                8,
                {"topics": [{"name": name} for name in names]},
                {"clusterId": "c", "topics": [{"name": name, "errorCode": code} for name in names]},
                after_us=S,
            )
            got = [{"topic": name, "partitions": [{"partitionIndex": 0, "errorCode": code}]} for name in names]
            asked = [{"topic": name, "partitions": [{"partition": 0}]} for name in names]
            talk.say(ApiKey.FETCH, 11, {"topics": asked}, {"responses": got}, after_us=S)
            parts = [{"name": name, "partitions": [{"partitionIndex": 0, "committedOffset": 1}]} for name in names]
            done = [{"name": name, "partitions": [{"partitionIndex": 0, "errorCode": code}]} for name in names]
            talk.say(
                ApiKey.OFFSET_COMMIT,
                7,
                {"groupId": "g", "generationIdOrMemberEpoch": 1, "memberId": "m", "topics": parts},
                {"topics": done},
                after_us=S,
            )
    return talk


def refused_groups(n: int) -> Landing:
    """Groups, members and producers that are refused one by one."""
    talk = Talk()
    for i in range(n):
        for code in (25, 22, 16):
            who = {"client_id": f"c{i % 9}", "connection": i % 50}
            talk.say(
                ApiKey.HEARTBEAT,
                3,
                {"groupId": f"g{i}", "generationId": 1, "memberId": "m"},
                {"errorCode": code},
                **who,
            )
            topics = [{"name": "t", "partitions": [{"partitionIndex": 0, "committedOffset": 1}]}]
            talk.say(
                ApiKey.OFFSET_COMMIT,
                7,
                {"groupId": f"g{i}", "generationIdOrMemberEpoch": 1, "memberId": "m", "topics": topics},
                {"topics": [{"name": "t", "partitions": [{"partitionIndex": 0, "errorCode": code}]}]},
                **who,
            )
        talk.say(
            ApiKey.INIT_PRODUCER_ID,
            3,
            {"transactionalId": f"x{i}", "transactionTimeoutMs": 1},
            {"errorCode": 90, "producerId": i},
        )
    return talk


def coordinators(n: int) -> Landing:
    """Groups whose coordinator is not available, asked for again and again."""
    talk = Talk()
    for i in range(n):
        talk.say(
            ApiKey.FIND_COORDINATOR,
            4,
            {"keyType": i % 2, "coordinatorKeys": [f"g{i % (n // 3 + 1)}"]},
            {"coordinators": [{"key": f"g{i % (n // 3 + 1)}", "errorCode": 15, "host": "", "port": -1, "nodeId": -1}]},
            after_us=200_000,
            client_id=f"c{i % 10}",
        )
    return talk


def throttled(n: int) -> Landing:
    """Clients that are throttled, slow, or speak old versions, each of which is told of."""
    talk = Talk()
    for i in range(n):
        talk.say(
            ApiKey.METADATA,
            3,
            {"topics": [{"name": f"t{i}"}]},
            {"throttleTimeMs": 500, "clusterId": "c", "topics": [{"name": f"t{i}", "errorCode": 3}]},
            client_id=f"c{i}",
            connection=i % 500,
            after_us=700_000,
            latency_us=4 * S,
        )
    return talk


def long_names(n: int) -> Landing:
    """Names of 30 kB of groups, members, topics and clients, all of them refused."""
    talk = Talk()
    for i in range(n):
        name = f"{i}".ljust(30_000, "x")
        topics = [{"name": name, "partitions": [{"partitionIndex": 0, "committedOffset": 1}]}]
        talk.say(
            ApiKey.OFFSET_COMMIT,
            7,
            {"groupId": name, "generationIdOrMemberEpoch": 1, "memberId": name, "topics": topics},
            {"topics": [{"name": name, "partitions": [{"partitionIndex": 0, "errorCode": 22}]}]},
            client_id=name,
        )
        talk.say(
            ApiKey.HEARTBEAT,
            3,
            {"groupId": name, "generationId": 1, "memberId": name},
            {"errorCode": 25},
            client_id=name,
        )
    return talk


def unanswered(n: int) -> Landing:
    """Requests of all kinds without answers, of many clients."""
    talk = Talk()
    for i in range(n):
        talk.say(
            (ApiKey.METADATA, ApiKey.FIND_COORDINATOR, ApiKey.HEARTBEAT)[i % 3],
            1,
            {},
            connection=i % 300,
            client_id=f"c{i}",
            after_us=10 * S,
        )
    return talk


def unanswered_beside_answers(n: int) -> Landing:
    """Clients that a server leaves without answers times those that it answers meanwhile."""
    talk = Talk()
    for turn in range(6):
        for i in range(n):
            who = {"connection": 2 * i + turn % 2, "client_id": f"c{i}"}
            answer = {} if turn % 2 else None
            talk.say(ApiKey.METADATA, 1, {}, answer, **who, after_us=30 * S if i == 0 else 1000)
    return talk


def churn(n: int) -> Landing:
    """Connections that each ask once, at one moment."""
    talk = Talk()
    for i in range(n):
        talk.say(
            ApiKey.API_VERSIONS,
            3,
            {"clientSoftwareName": f"s{i}", "clientSoftwareVersion": f"{i}"},
            {"apiKeys": []},
            connection=i,
            client_id=f"c{i}",
            after_us=0,
        )
    return talk
