"""What offsets, topics and clusters can multiply."""

from __future__ import annotations

from typing import Any

from decoder.kafka.apis import ApiKey
from tests.decoder.mongodb.build import command, reply
from tests.hostile.amplifiers.talk import DAY, S, Talk, asked_for, fetched, records
from tests.hostile.traffic import Landing, uuid


def clusters_of_a_server(n: int) -> Landing:
    """Cluster ids that one address states in turn times exchanges with it."""
    talk = Talk()
    for i in range(n):
        talk.say(ApiKey.DESCRIBE_CLUSTER, 0, {}, {"clusterId": f"c{i}", "brokers": []})
    return talk


def ids_of_a_topic(n: int) -> Landing:
    """Ids of one topic name, each another topic times statements about that name."""
    talk = Talk()
    topics = [{"name": "t", "topicId": uuid(i)} for i in range(n)]
    talk.say(ApiKey.METADATA, 12, {}, {"clusterId": "c", "topics": topics})
    parts = [{"partitionIndex": i % 3, "committedOffset": i} for i in range(n)]
    asked = {
        "groupId": "g",
        "generationIdOrMemberEpoch": 1,
        "memberId": "m",
        "topics": [{"name": "t", "partitions": parts}],
    }
    talk.say(
        ApiKey.OFFSET_COMMIT,
        8,
        asked,
        {"topics": [{"name": "t", "partitions": [{"partitionIndex": p["partitionIndex"]} for p in parts]}]},
    )
    return talk


def recreated_topics(n: int) -> Landing:
    """Topics, each deleted and created again: a finding for every two ids that Metadata names."""
    talk = Talk()
    for half in range(2):
        topics = [{"name": f"t{i}", "topicId": uuid(2 * i + half)} for i in range(n)]
        talk.say(ApiKey.METADATA, 12, {}, {"clusterId": "c", "topics": topics})
    return talk


def names_and_ids(n: int) -> Landing:
    """Topics that a group names times topics that it reads by id, all at one offset of partition 0."""
    return _at_one_offset(n, server=0)


def names_and_ids_of_two_servers(n: int) -> Landing:
    """The same where the coordinator is another server, and no message says that both are of one cluster."""
    return _at_one_offset(n, server=1)


def _at_one_offset(n: int, server: int) -> Landing:
    talk = Talk()
    asked = [{"topicId": uuid(i), "partitions": [{"partition": 0, "fetchOffset": 7}]} for i in range(n)]
    given = [{"topicId": uuid(i), "partitions": [{"partitionIndex": 0, "highWatermark": 9}]} for i in range(n)]
    talk.say(ApiKey.FETCH, 13, {"topics": asked}, {"responses": given})
    named = [{"name": f"t{i}", "partitions": [{"partitionIndex": 0, "committedOffset": 7}]} for i in range(n)]
    taken = [{"name": f"t{i}", "partitions": [{"partitionIndex": 0}]} for i in range(n)]
    group = {"groupId": "g", "memberId": "m", "generationIdOrMemberEpoch": 1, "topics": named}
    talk.say(ApiKey.OFFSET_COMMIT, 8, group, {"topics": taken}, server=server)
    return talk


def days_of_a_session(n: int) -> Landing:
    """Partitions of a fetch session times days on which it fetches."""
    talk = Talk()
    parts = [{"partitionIndex": p, "highWatermark": 9} for p in range(n)]
    talk.say(ApiKey.FETCH, 11, asked_for("t", range(n), sessionEpoch=0), {"sessionId": 7, **fetched("t", parts)})
    for i in range(n):
        talk.say(ApiKey.FETCH, 11, asked_for("t", (), sessionId=7, sessionEpoch=i + 1), {"sessionId": 7}, after_us=DAY)
    return talk


def lagging_groups(n: int) -> Landing:
    """Groups that commit one partition, each of which lags, while records are written."""
    talk = Talk()
    for round_ in range(5):
        data = [{"index": 0, "records": records(producer=-1)}]
        talk.say(
            ApiKey.PRODUCE,
            8,
            {"acks": 1, "timeoutMs": 1, "topicData": [{"name": "t", "partitionData": data}]},
            {"responses": [{"name": "t", "partitionResponses": [{"index": 0, "baseOffset": 1000 * (round_ + 1)}]}]},
            after_us=30 * S,
        )
        for i in range(n):
            topics = [{"name": "t", "partitions": [{"partitionIndex": 0, "committedOffset": round_}]}]
            talk.say(
                ApiKey.OFFSET_COMMIT,
                7,
                {"groupId": f"g{i}", "generationIdOrMemberEpoch": 1, "memberId": "m", "topics": topics},
                {"topics": [{"name": "t", "partitions": [{"partitionIndex": 0}]}]},
                connection=i % 100,
            )
    return talk


def lagging_partitions(n: int) -> Landing:
    """Partitions of one group that lag and stop, with many of them in each exchange."""
    talk = Talk()
    for round_ in range(8):
        data = [{"index": p, "records": records(producer=-1)} for p in range(n)]
        talk.say(
            ApiKey.PRODUCE,
            8,
            {"acks": 1, "timeoutMs": 1, "topicData": [{"name": "t", "partitionData": data}]},
            {
                "responses": [
                    {
                        "name": "t",
                        "partitionResponses": [{"index": p, "baseOffset": 1000 * (round_ + 1)} for p in range(n)],
                    }
                ]
            },
            after_us=30 * S,
        )
        parts = [{"partitionIndex": p, "committedOffset": min(round_, 3)} for p in range(n)]
        talk.say(
            ApiKey.OFFSET_COMMIT,
            7,
            {
                "groupId": "g",
                "generationIdOrMemberEpoch": 1,
                "memberId": "m",
                "topics": [{"name": "t", "partitions": parts}],
            },
            {"topics": [{"name": "t", "partitions": [{"partitionIndex": p} for p in range(n)]}]},
        )
    return talk


def resets(n: int) -> Landing:
    """Offsets out of range times fetches behind them, of one client."""
    talk = Talk()
    for i in range(n):
        talk.say(
            ApiKey.FETCH,
            11,
            {"topics": [{"topic": "t", "partitions": [{"partition": 0, "fetchOffset": i}]}]},
            fetched(
                "t", [{"partitionIndex": 0, "errorCode": (1, 0)[i % 2], "highWatermark": 10, "records": records(i)}]
            ),
            after_us=100_000,
        )
        talk.say(
            ApiKey.LIST_OFFSETS,
            5,
            {"replicaId": -1, "topics": [{"name": "t", "partitions": [{"partitionIndex": 0, "timestamp": -2}]}]},
            {"topics": [{"name": "t", "partitions": [{"partitionIndex": 0, "offset": i}]}]},
        )
    return talk


def mongodb_namespaces(n: int) -> Landing:
    """Namespaces, cursors and applications of which all fail, are slow, or leak."""
    talk = Talk()
    for i in range(n):
        talk.us += 400_000
        logical = {"lsid": {"id": i % 5}, "txnNumber": 1}
        kinds: list[dict[str, Any]] = [
            {"find": f"n{i}", "$db": "d", "lsid": {"id": i}, "txnNumber": i},
            {"getMore": i + 1, "collection": f"n{i}", "$db": "d"},
            {"insert": f"n{i % 9}", "documents": [{"a": 1}], "$db": "d", **logical},
            {"aggregate": f"n{i % 9}", "pipeline": [{"$changeStream": {}}], "cursor": {}, "$db": "d"},
        ]
        answers: list[dict[str, Any]] = [
            {"ok": 1.0, "cursor": {"id": i + 1, "ns": f"d.n{i}", "firstBatch": []}},
            {"ok": 0.0, "code": 43, "errmsg": "x", "codeName": "CursorNotFound"},
            {"ok": 0.0, "code": 10107, "errmsg": "x", "codeName": "NotWritablePrimary"},
            {"ok": 0.0, "code": 286, "errmsg": "x", "codeName": "ChangeStreamHistoryLost"},
        ]
        talk.add(
            i,
            "request",
            command(kinds[i % 4], request_id=i),
            talk.us,
            i % 100,
            protocol="mongodb",
            ids=(i, None),
            api=(2013, 0),
        )
        talk.add(
            i,
            "response",
            reply(answers[i % 4], response_to=i),
            talk.us + (500, 2 * S)[i % 3 == 0],
            i % 100,
            protocol="mongodb",
            ids=(i, i),
            api=(2013, 0),
        )
    return talk
